// RUN: inductile-opt %s --verify-each -p kernel-narrow-choices | filecheck %s
// RUN: inductile-opt %s -p kernel-narrow-choices -t cpp | filecheck %s --check-prefix=CODE

// A rectifier chooses between a number and zero.
kernel.func @rectified(%x: !kernel.buffer<bf16, 512>, %y: !kernel.buffer<bf16, 512>) target "cpp" {
  kernel.for i0 in 0 to 512 map vector {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    %zero = arith.constant 0.0 : f32
    %c = arith.cmpf olt, %w, %zero : f32
    %s = arith.select %c, %zero, %w : f32
    %n = scalar.narrow %s : f32 to bf16
    kernel.store %n, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @rectified
// CHECK: %[[C:.*]] = arith.cmpf olt
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : bf16
// CHECK-NEXT: %[[N:.*]] = arith.select %[[C]], %[[ZERO]], %v : bf16
// CHECK-NEXT: kernel.store %[[N]]
// CODE: y[i0] = cut_bf16((v0 < 0.0f) ? 0.0f : v0);

// A number that bfloat16 lacks, and a sum, are rounded.
kernel.func @rounded(%x: !kernel.buffer<bf16, 512>, %y: !kernel.buffer<bf16, 512>) target "cpp" {
  kernel.for i0 in 0 to 512 map vector {
    %v = kernel.load %x[i0]
    %w = scalar.widen %v : bf16 to f32
    %most = arith.constant 0.3 : f32
    %m = arith.maximumf %w, %most : f32
    %n = scalar.narrow %m : f32 to bf16
    kernel.store %n, %y[i0]
    %two = arith.addf %w, %w : f32
    %l = arith.minimumf %two, %w : f32
    %k = scalar.narrow %l : f32 to bf16
    kernel.store %k, %x[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @rounded
// CHECK: scalar.narrow %m
// CHECK: scalar.narrow %l
