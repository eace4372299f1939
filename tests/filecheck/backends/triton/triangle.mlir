// RUN: inductile-opt %s --target cuda:90 --pipeline schedule -t triton | filecheck %s

// A loop as long as the number of its row says is no axis of the grid: programs take rows, and go along them.

kernel.func @below_diagonal(%x: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 16384>) {
  kernel.for i0 in 0 to 128 {
    kernel.for i1 in 0 to i0 + 1 {
      %v = kernel.load %x[128*i0 + i1]
      %o = arith.negf %v : f32
      kernel.store %o, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: def below_diagonal
// CHECK-NEXT:    i0 = tl.program_id(0)
// CHECK-NEXT:    for i1_start in tl.range(0, i0 + 1, BLOCK_I1
// CHECK:           i1_mask = i1 < (i0 + 1)
