// RUN: inductile-opt %s -p kernel-fold-exponents | filecheck %s

// The scale of scores and the maximum of their row are parts of one multiply-add.
kernel.func @weights(%q: !kernel.buffer<bf16, 8192>, %k: !kernel.buffer<bf16, 8192>, %h: !kernel.buffer<f32, 512>, %o: !kernel.buffer<bf16, 512>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    %g = kernel.reduce sum i3 in 0 to 512 map vector tile 32 {
      %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
        %a = kernel.load %q[16*i3 + i4]
        %b = kernel.load %k[16*i1 + i4]
        %c = scalar.widen %a : bf16 to f32
        %d = scalar.widen %b : bf16 to f32
        %e = arith.mulf %c, %d : f32
        kernel.yield %e
      }
      %half = arith.constant 0.5 : f32
      %s = arith.mulf %p, %half : f32
      %key = kernel.index i1
      %row = kernel.index i3
      %hidden = arith.cmpi sgt, %key, %row : i64
      %lowest = arith.constant 0xff800000 : f32
      %x = arith.select %hidden, %lowest, %s : f32
      %m = kernel.load %h[i3]
      %z = arith.subf %x, %m : f32
      %w = math.exp %z fastmath<afn> : f32
      kernel.yield %w
    }
    %r = scalar.narrow %g : f32 to bf16
    kernel.store %r, %o[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @weights
// CHECK: %p = kernel.reduce sum i4
// CHECK: [[X:%[0-9a-z]+]] = arith.select %hidden, %lowest, %p
// CHECK-NEXT: [[LOG:%[0-9a-z]+]] = arith.constant -1.44269502
// CHECK-NEXT: [[SHIFT:%[0-9a-z]+]] = arith.mulf %m, [[LOG]]
// CHECK-NEXT: [[SCALE:%[0-9a-z]+]] = arith.constant 0.72134751
// CHECK-NEXT: [[E:%[0-9a-z]+]] = math.fma [[X]], [[SCALE]], [[SHIFT]]
// CHECK-NEXT: math.exp2 [[E]] fastmath<afn>

// An exact exponential stays one, and so does one of a difference that varies along rows and steps.
kernel.func @exact(%q: !kernel.buffer<f32, 8192>, %k: !kernel.buffer<f32, 8192>, %h: !kernel.buffer<f32, 262144>, %o: !kernel.buffer<f32, 512>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    %g = kernel.reduce sum i3 in 0 to 512 map vector tile 32 {
      %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
        %a = kernel.load %q[16*i3 + i4]
        %b = kernel.load %k[16*i1 + i4]
        %c = arith.mulf %a, %b : f32
        kernel.yield %c
      }
      %m = kernel.load %h[i3]
      %z = arith.subf %p, %m : f32
      %w = math.exp %z : f32
      %n = kernel.load %h[512*i1 + i3]
      %y = arith.subf %p, %n : f32
      %v = math.exp %y fastmath<afn> : f32
      %u = arith.addf %w, %v : f32
      kernel.yield %u
    }
    kernel.store %g, %o[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @exact
// CHECK-NOT: math.exp2

// The scale of scores is a factor of the sum over their softmax, and of its maximum.
kernel.func @softmax(%q: !kernel.buffer<f32, 8192>, %k: !kernel.buffer<f32, 8192>, %v: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 8192>, %h: !kernel.buffer<f32, 512>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %c = arith.mulf %a, %b : f32
          kernel.yield %c
        }
        %quarter = arith.constant 0.25 : f32
        %scaled = arith.mulf %p, %quarter : f32
        %row = kernel.index i1
        %key = kernel.index i3
        %hidden = arith.cmpi sgt, %key, %row : i64
        %lowest = arith.constant 0xff800000 : f32
        %x = arith.select %hidden, %lowest, %scaled : f32
        %g = kernel.load %v[16*i3 + i2]
        %one = arith.constant 1.0 : f32
        kernel.yield %x, %one, %g
      }
      %r = arith.divf %t, %s : f32
      kernel.store %r, %o[16*i1 + i2]
      %u = arith.addf %m, %r : f32
      kernel.store %u, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @softmax
// CHECK: %[[M:.*]], %{{.*}}, %{{.*}} = kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 32 factor 0.25 {
// CHECK: %[[P:.*]] = kernel.reduce sum i4
// CHECK-NOT: arith.mulf %[[P]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[P]]
// CHECK: %[[Q:.*]] = arith.constant 2.500000e-01
// CHECK-NEXT: %[[H:.*]] = arith.mulf %[[M]], %[[Q]]
// CHECK: arith.addf %[[H]]
