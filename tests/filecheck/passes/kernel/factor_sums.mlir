// RUN: inductile-opt %s -p kernel-factor-sums | filecheck %s

// The scale of scores is multiplied with the gradient; what was rounded before it stays so.
kernel.func @gradient(%q: !kernel.buffer<bf16, 8192>, %k: !kernel.buffer<bf16, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 512 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %rounded = scalar.cast %p : f32 to bf16
        %wide = scalar.widen %rounded : bf16 to f32
        %eighth = arith.constant 0.125 : f32
        %y = arith.mulf %wide, %eighth : f32
        %n = scalar.narrow %y : f32 to bf16
        %w = scalar.widen %n : bf16 to f32
        %v = kernel.load %k[16*i3 + i2]
        %vw = scalar.widen %v : bf16 to f32
        %r = arith.mulf %w, %vw : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @gradient
// CHECK: %[[G:.*]] = kernel.reduce sum i3
// CHECK: %[[N:.*]] = scalar.cast %{{.*}} : f32 to bf16
// CHECK-NEXT: %[[W:.*]] = scalar.widen %[[N]]
// CHECK: arith.mulf %[[W]], %
// CHECK: %[[C:.*]] = arith.constant 1.250000e-01
// CHECK-NEXT: arith.mulf %[[G]], %[[C]]

// What is multiplied with something that is no number stays.
kernel.func @scores(%q: !kernel.buffer<bf16, 8192>, %k: !kernel.buffer<bf16, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 512 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %y = arith.mulf %p, %p : f32
        %n = scalar.narrow %y : f32 to bf16
        %w = scalar.widen %n : bf16 to f32
        %v = kernel.load %k[16*i3 + i2]
        %vw = scalar.widen %v : bf16 to f32
        %r = arith.mulf %w, %vw : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @scores
// CHECK: %[[S:.*]] = kernel.reduce sum i3
// CHECK: kernel.store %[[S]]
