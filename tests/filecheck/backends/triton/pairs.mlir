// RUN: inductile-opt %s -p kernel-pair-accesses -t triton | filecheck %s

// Neighbours are read and stored as pairs, also where a tile is not full; a place read alone is read alone.

kernel.func @rotate(%x: !kernel.buffer<bf16, 800>, %c: !kernel.buffer<f32, 99>, %y: !kernel.buffer<bf16, 800>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 8 map grid tile 4 {
    kernel.for i1 in 0 to 50 map grid tile 64 {
      %a = kernel.load %x[100*i0 + 2*i1]
      %b = kernel.load %x[100*i0 + 2*i1 + 1]
      %k = kernel.load %c[2*i1]
      %n = scalar.narrow %k : f32 to bf16
      %s = arith.mulf %b, %n : bf16
      kernel.store %s, %y[100*i0 + 2*i1 + 1]
      kernel.store %a, %y[100*i0 + 2*i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: def rotate
// CHECK:         x_even, x_odd = tl.split(tl.load(tl.expand_dims(x + (100 * i0 + 2 * i1), 2) + tl.arange(0, 2), mask=tl.expand_dims(i1_mask, 2)))
// CHECK:         tl.load(c + 2 * i1
// CHECK:         tl.store(tl.expand_dims(y + (100 * i0 + 2 * i1), 2) + tl.arange(0, 2), tl.join(a, s), mask=tl.expand_dims(i1_mask, 2))

// A place that is stored to again in front of its neighbour keeps the second value.

kernel.func @again(%x: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 128>) target "cuda:90" num_warps 1 {
  kernel.for i0 in 0 to 64 map grid tile 64 {
    %a = kernel.load %x[i0]
    %b = kernel.load %z[i0]
    kernel.store %a, %y[2*i0]
    kernel.store %b, %y[2*i0]
    kernel.store %b, %y[2*i0 + 1]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: def again
// CHECK:         tl.store(y + 2 * i0, a)
// CHECK-NEXT:    tl.store(y + 2 * i0, b)
// CHECK-NEXT:    tl.store(y + (2 * i0 + 1), b)
