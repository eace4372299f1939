// RUN: inductile-opt %s --split-input-file --verify-each --target cpp --pipeline schedule --start-at kernel-map --stop-after kernel-unroll-quotients | filecheck %s

// Two points of the axis read one place: a lane computes both.

kernel.func @nearest(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %x[32*i0 + i1 floordiv 2]
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @nearest
// CHECK:         kernel.for i1 in 0 to 32 map vector
// CHECK-NEXT:      %[[A:.*]] = kernel.load %x[32*i0 + i1]
// CHECK-NEXT:      kernel.store %[[A]], %y[64*i0 + 2*i1]
// CHECK-NEXT:      %[[B:.*]] = kernel.load %x[32*i0 + i1]
// CHECK-NEXT:      kernel.store %[[B]], %y[64*i0 + 2*i1 + 1]

// -----

// A remainder of three, and a step of two thirds.

kernel.func @thirds(%x: !kernel.buffer<f32, 4096>, %w: !kernel.buffer<f32, 3>, %y: !kernel.buffer<f32, 6144>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 96 {
      %a = kernel.load %x[64*i0 + (2*i1 + 1) floordiv 3]
      %b = kernel.load %w[i1 mod 3]
      %c = arith.mulf %a, %b : f32
      kernel.store %c, %y[96*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @thirds
// CHECK:         kernel.for i1 in 0 to 32 map vector
// CHECK:           kernel.load %x[64*i0 + 2*i1]
// CHECK:           kernel.load %x[64*i0 + 2*i1 + 1]
// CHECK:           kernel.load %x[64*i0 + 2*i1 + 1]
// CHECK:           kernel.load %w[2]
// CHECK-NOT:     floordiv

// -----

// A large divisor is left as it is, where no few parts have one quotient each.

kernel.func @large(%x: !kernel.buffer<f32, 2048>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 64 {
      %a = kernel.load %x[32*i0 + i1 floordiv 10]
      kernel.store %a, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @large
// CHECK:         i1 floordiv 10

// -----

// The last point has a loop by itself.

kernel.func @odd(%x: !kernel.buffer<f32, 2112>, %y: !kernel.buffer<f32, 4160>) {
  kernel.for i0 in 0 to 64 {
    kernel.for i1 in 0 to 65 {
      %a = kernel.load %x[33*i0 + i1 floordiv 2]
      kernel.store %a, %y[65*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: kernel.func @odd
// CHECK:         kernel.for i1 in 0 to 32 map vector
// CHECK-NOT:       floordiv
// CHECK:         kernel.for i1 in 64 to 65 map vector
// CHECK-NEXT:      kernel.load %x[33*i0 + i1 floordiv 2]
