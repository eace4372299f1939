// RUN: inductile-opt %s --target cuda:90 -t triton | filecheck %s

// Each scale of 64 neighbours is loaded once, also where 44 groups do not fill the tile.
kernel.func @scaled(%w: !kernel.buffer<ui8, 5767168>, %s: !kernel.buffer<bf16, 90112>, %y: !kernel.buffer<f32, 2048>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 2048 map grid tile 4 {
    %t = kernel.reduce sum i1 in 0 to 2816 map vector tile 4096 {
      %b = kernel.load %w[2816*i0 + i1]
      %l = scalar.low_digits %b less 8
      %c = kernel.load %s[44*i0 + i1 floordiv 64]
      %cw = scalar.widen %c : bf16 to f32
      %p = arith.mulf %l, %cw : f32
      kernel.yield %p
    }
    kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK: def scaled(
// CHECK: i1_group = tl.arange(0, BLOCK_I1 // 64)[None, :]
// CHECK-NEXT: i1_group_mask = i1_group < 44
// CHECK-NEXT: tl.reshape(tl.broadcast_to(tl.expand_dims(tl.load(s + (44 * i0 + i1_group), mask=i1_group_mask), 2), [BLOCK_I0, BLOCK_I1 // 64, 64]), [BLOCK_I0, BLOCK_I1])

// Of 2,800 numbers the last group is in part of the row: each number loads its scale.
kernel.func @ragged(%w: !kernel.buffer<ui8, 5734400>, %s: !kernel.buffer<bf16, 90112>, %y: !kernel.buffer<f32, 2048>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 2048 map grid tile 4 {
    %t = kernel.reduce sum i1 in 0 to 2800 map vector tile 4096 {
      %b = kernel.load %w[2800*i0 + i1]
      %l = scalar.low_digits %b less 8
      %c = kernel.load %s[44*i0 + i1 floordiv 64]
      %cw = scalar.widen %c : bf16 to f32
      %p = arith.mulf %l, %cw : f32
      kernel.yield %p
    }
    kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK: def ragged(
// CHECK: tl.load(s + (44 * i0 + i1 // 64), mask=i1_mask)
