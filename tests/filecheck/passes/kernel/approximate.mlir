// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-approximate | filecheck %s
// RUN: inductile-opt %s --split-input-file --target cuda:90 -p "kernel-approximate{emulate_precision_casts=true}" | filecheck %s --check-prefixes=EXACT
// RUN: inductile-opt %s --split-input-file -p kernel-approximate | filecheck %s --check-prefixes=EXACT

// EXACT-NOT: fastmath

// silu: all that the exponential and the quotient reach is rounded to 16 bits

kernel.func @silu(%x: !kernel.buffer<bf16, 80>, %y: !kernel.buffer<bf16, 80>) {
  kernel.for i0 in 0 to 80 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    %g = arith.negf %w : f32
    %e = math.exp %g : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %w, %d : f32
    %n = scalar.narrow %q : f32 to bf16
    kernel.store %n, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @silu
// CHECK: math.exp %g fastmath<afn> : f32
// CHECK: arith.divf %w, %d fastmath<arcp> : f32

// -----

// softmax's backward: through a sum over a row, and rows of local buffers. The difference could magnify the error of a
// quotient, and nothing else than the argument's rounding is magnified for an exponential.

kernel.func @rows(%x: !kernel.buffer<bf16, 80>, %y: !kernel.buffer<f16, 80>) {
  kernel.for i0 in 0 to 10 {
    %row = kernel.local : !kernel.buffer<f32, 8, local>
    %s = kernel.reduce sum i1 in 0 to 8 {
      %v = kernel.load %x[8*i0 + i1]
      %w = scalar.widen %v : bf16 to f32
      %e = math.exp %w : f32
      kernel.store %e, %row[i1]
      kernel.yield %e
    }
    kernel.for i2 in 0 to 8 {
      %u = kernel.load %row[i2]
      %q = arith.divf %u, %s : f32
      %one = arith.constant 1.0 : f32
      %r = arith.subf %one, %q : f32
      %n = scalar.cast %r : f32 to f16
      kernel.store %n, %y[8*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @rows
// CHECK: math.exp %w fastmath<afn> : f32
// CHECK: arith.divf %u, %s : f32

// -----

// One result of two is wide; an index or a comparison would jump.

kernel.func @wide(%x: !kernel.buffer<f32, 80>, %y: !kernel.buffer<f32, 80>, %z: !kernel.buffer<bf16, 80>) {
  kernel.for i0 in 0 to 80 {
    %v = kernel.load %x[i0]
    %e = math.exp %v : f32
    kernel.store %e, %y[i0]
    %n = scalar.narrow %e : f32 to bf16
    kernel.store %n, %z[i0]
    kernel.yield
  }
  kernel.for i1 in 0 to 80 {
    %v = kernel.load %x[i1]
    %f = math.exp %v : f32
    %two = arith.constant 2.0 : f32
    %c = arith.cmpf olt, %f, %two : f32
    %s = arith.select %c, %f, %two : f32
    %n = scalar.narrow %s : f32 to bf16
    kernel.store %n, %z[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: @wide
// CHECK-NOT: fastmath
