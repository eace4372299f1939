// RUN: inductile-opt %s -p kernel-lead-products | filecheck %s
// RUN: inductile-opt %s -p kernel-lead-products -t triton | filecheck %s --check-prefix=TRITON

// The second product needs nothing of the first one, and stands beside it; what is made of both comes behind.
kernel.func @gradient(%q: !kernel.buffer<bf16, 8192>, %k: !kernel.buffer<bf16, 8192>, %t: !kernel.buffer<bf16, 8192>, %o: !kernel.buffer<f32, 8192>, %u: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g, %h = kernel.reduce [sum, sum] i3 in 0 to 512 map matrix tile 32 {
        %s = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %e = math.exp2 %s : f32
        %p = kernel.reduce sum i5 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %t[16*i1 + i5]
          %b = kernel.load %k[16*i3 + i5]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %y = arith.mulf %e, %p : f32
        %n = scalar.narrow %y : f32 to bf16
        %w = scalar.widen %n : bf16 to f32
        %v = kernel.load %k[16*i3 + i2]
        %vw = scalar.widen %v : bf16 to f32
        %r = arith.mulf %w, %vw : f32
        %en = scalar.narrow %e : f32 to bf16
        %ew = scalar.widen %en : bf16 to f32
        %x = kernel.load %t[16*i3 + i2]
        %xw = scalar.widen %x : bf16 to f32
        %z = arith.mulf %ew, %xw : f32
        kernel.yield %r, %z
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.store %h, %u[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @gradient
// CHECK: %[[S:.*]] = kernel.reduce sum i4
// CHECK: %[[P:.*]] = kernel.reduce sum i5
// CHECK: %[[E:.*]] = math.exp2 %[[S]]
// CHECK-NEXT: arith.mulf %[[E]], %[[P]]

// TRITON: for i3_start
// TRITON: = tl.dot(
// TRITON: = tl.dot(
// TRITON: exp2(
