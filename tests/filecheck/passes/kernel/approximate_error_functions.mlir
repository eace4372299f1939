// RUN: inductile-opt %s --verify-each -p kernel-approximate | filecheck %s
// RUN: inductile-opt %s -p "kernel-approximate{emulate_precision_casts=true}" | filecheck %s --check-prefix=EXACT
// RUN: inductile-opt %s --target cuda:90 -p kernel-approximate | filecheck %s --check-prefix=EXACT

// EXACT-NOT: fastmath

// gelu: one is added to the function, the sum is scaled and rounded.
// CHECK-LABEL: @gelu
// CHECK: math.erf %w fastmath<afn> : f32
kernel.func @gelu(%x: !kernel.buffer<bf16, 80>, %y: !kernel.buffer<bf16, 80>) {
  kernel.for i0 in 0 to 80 {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    %e = math.erf %w : f32
    %one = arith.constant 1.0 : f32
    %d = arith.addf %e, %one : f32
    %q = arith.mulf %w, %d : f32
    %n = scalar.narrow %q : f32 to bf16
    kernel.store %n, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// Small results of the function itself would lose digits, a difference could magnify the error, floats would show it.
// CHECK-LABEL: @others
// CHECK-NOT: fastmath
kernel.func @others(%x: !kernel.buffer<f32, 80>, %y: !kernel.buffer<bf16, 80>, %z: !kernel.buffer<f32, 80>) {
  kernel.for i0 in 0 to 80 {
    %v = kernel.load %x[i0]
    %e = math.erf %v : f32
    %n = scalar.narrow %e : f32 to bf16
    kernel.store %n, %y[i0]
    kernel.yield
  }
  kernel.for i1 in 0 to 80 {
    %v = kernel.load %x[i1]
    %one = arith.constant 1.0 : f32
    %e = math.erf %v : f32
    %d = arith.addf %e, %one : f32
    %s = arith.subf %d, %v : f32
    %n = scalar.narrow %s : f32 to bf16
    kernel.store %n, %y[i1]
    kernel.yield
  }
  kernel.for i2 in 0 to 80 {
    %v = kernel.load %x[i2]
    %one = arith.constant 1.0 : f32
    %e = math.erf %v : f32
    %d = arith.addf %e, %one : f32
    kernel.store %d, %z[i2]
    kernel.yield
  }
  kernel.yield
}
