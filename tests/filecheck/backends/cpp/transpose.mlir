// RUN: inductile-opt -p kernel-tensorize -t cpp --split-input-file %s | filecheck %s

// A copy that swaps two axes; nothing else is in the loops.

kernel.func @turn(%x: !kernel.buffer<bf16, s0*s1>, %y: !kernel.buffer<bf16, s0*s1>) symbols (s0, s1) target "cpp" {
  kernel.for i0 in 0 to s0 {
    kernel.for i1 in 0 to s1 {
      %v = kernel.load %x[s1*i0 + i1]
      kernel.store %v, %y[s0*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK: transpose_copy<uint16_t>(&x[0], s1, &y[0], s0, s0, s1);

// -----

// Arithmetic inside: plain loops.

kernel.func @scaled(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) target "cpp" {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %w = arith.negf %v : f32
      kernel.store %w, %y[8*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: int scaled(
// CHECK-NOT: transpose_copy

// -----

// Rows read at neighbouring places meet no tile.

kernel.func @diagonals(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) target "cpp" {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 8 {
      %v = kernel.load %x[i0 + i1]
      kernel.store %v, %y[8*i1 + i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: int diagonals(
// CHECK-NOT: transpose_copy
