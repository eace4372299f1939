// RUN: inductile-opt %s -t triton | filecheck %s

// The operands are read as they lie in memory, the sum is float32, the bias is added behind the loop. Programs take two
// tiles of rows for each tile of columns. What is beyond the depth is 0 in both operands.
kernel.func @ragged(%x: !kernel.buffer<bf16, 15000>, %w: !kernel.buffer<bf16, 20000>, %y: !kernel.buffer<bf16, 30000>) target "cuda:90" num_warps 4 num_stages 3 {
  kernel.for i0 in 0 to 150 map grid tile 32 swizzle 2 {
    kernel.for i1 in 0 to 200 map grid tile 64 {
      %s = kernel.reduce sum r0 in 0 to 100 map matrix tile 32 {
        %1 = kernel.load %x[100*i0 + r0]
        %2 = scalar.widen %1 : bf16 to f32
        %3 = kernel.load %w[200*r0 + i1]
        %4 = scalar.widen %3 : bf16 to f32
        %5 = arith.mulf %2, %4 : f32
        kernel.yield %5
      }
      %6 = scalar.narrow %s : f32 to bf16
      kernel.store %6, %y[200*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK: # grid 20, num_warps 4, num_stages 3
// CHECK-LABEL: def ragged(
// CHECK: i0_tile, i1_tile = tl.swizzle2d(pid // 4, pid % 4, 5, 4, 2)
// CHECK: i0_mask = i0 < 150
// CHECK: i1_mask = i1 < 200
// CHECK: s_acc = tl.zeros([BLOCK_I0, BLOCK_I1], tl.float32)
// CHECK-NEXT: for r0_start in range(0, 100, BLOCK_R0):
// CHECK-NEXT: r0 = r0_start + tl.arange(0, BLOCK_R0)[None, :]
// CHECK-NEXT: r0_mask = r0 < 100
// CHECK-NEXT: mask = i0_mask & r0_mask
// CHECK-NEXT: x_value = tl.load(x + (100 * i0 + r0), mask=mask, other=0)
// CHECK-NEXT: r0_1 = r0_start + tl.arange(0, BLOCK_R0)[:, None]
// CHECK: w_value = tl.load(w + (200 * r0_1 + i1), mask=mask_1, other=0)
// CHECK-NEXT: s_acc = tl.dot(x_value, w_value, s_acc)
// CHECK-NEXT: v = s_acc.to(tl.bfloat16)
// CHECK-NEXT: mask_2 = i0_mask & i1_mask
// CHECK-NEXT: tl.store(y + (200 * i0 + i1), v, mask=mask_2)

// No masks where tiles are full. The first factor is the one that varies along the rows. Factors are computed in the
// shape of their tile; one that says so is read as TF32, another one exactly.
kernel.func @full(%x: !kernel.buffer<f32, 4096>, %w: !kernel.buffer<i8, 4096>, %c: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 4096>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 64 map grid tile 64 {
    kernel.for i1 in 0 to 64 map grid tile 64 {
      %s, %t = kernel.reduce [sum, sum] r0 in 0 to 64 map matrix tile 32 {
        %1 = kernel.load %x[64*i0 + r0]
        %2 = kernel.load %w[64*r0 + i1]
        %3 = scalar.cast %2 : i8 to f32
        %4 = kernel.load %c[i1]
        %5 = arith.mulf %3, %4 : f32
        %6 = arith.mulf %5, %1 {precision = "tf32"} : f32
        %7 = arith.mulf %1, %3 : f32
        kernel.yield %6, %7
      }
      kernel.store %s, %y[64*i0 + i1]
      kernel.store %t, %z[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: def full(
// CHECK-NOT: mask
// CHECK: for r0_start in range(0, 64, BLOCK_R0):
// CHECK: x_value = tl.load(x + (64 * i0 + r0))
// CHECK: w_value = tl.load(w + (64 * r0_1 + i1))
// CHECK-NEXT: v = nvidia.float_of_int8(w_value)
// CHECK-NEXT: c_value = tl.load(c + i1)
// CHECK-NEXT: v_1 = v * c_value
// CHECK-NEXT: s_acc = tl.dot(x_value, v_1, s_acc, input_precision="tf32")
// CHECK-NEXT: t_acc = tl.dot(x_value, v, t_acc, input_precision="ieee")

// Numbers of 8 bits give a sum of 32.
kernel.func @bytes(%x: !kernel.buffer<i8, 4096>, %w: !kernel.buffer<i8, 4096>, %y: !kernel.buffer<i32, 4096>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 64 map grid tile 64 {
    kernel.for i1 in 0 to 64 map grid tile 64 {
      %s = kernel.reduce sum r0 in 0 to 64 map matrix tile 64 {
        %1 = kernel.load %x[64*i0 + r0]
        %2 = scalar.cast %1 : i8 to i32
        %3 = kernel.load %w[64*i1 + r0]
        %4 = scalar.cast %3 : i8 to i32
        %5 = arith.muli %2, %4 : i32
        kernel.yield %5
      }
      kernel.store %s, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: def bytes_(

// CHECK: s = tl.dot(x_value, w_value, out_dtype=tl.int32)
