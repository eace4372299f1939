// RUN: inductile-opt %s --split-input-file -p kernel-share-scales | filecheck %s

// Both numbers of a byte have the scale of its group: what they add is multiplied with it once.
kernel.func @digits(%x: !kernel.buffer<f32, 2048>, %w: !kernel.buffer<ui8, 1048576>, %s: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 1024>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 1024 map grid {
    %t = kernel.reduce sum i1 in 0 to 1024 map vector tile 1024 {
      %u = kernel.load %x[2*i1]
      %v = kernel.load %x[2*i1 + 1]
      %b = kernel.load %w[1024*i0 + i1]
      %c = kernel.load %s[16*i0 + i1 floordiv 64]
      %l = scalar.low_digits %b less 8
      %h = scalar.high_digits %b less 8
      %lc = arith.mulf %l, %c : f32
      %p = arith.mulf %u, %lc : f32
      %hc = arith.mulf %c, %h : f32
      %q = arith.mulf %hc, %v : f32
      %r = arith.addf %p, %q : f32
      kernel.yield %r
    }
    kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @digits
// CHECK-DAG: %[[L:.*]] = scalar.low_digits
// CHECK-DAG: %[[H:.*]] = scalar.high_digits
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[L]] : f32
// CHECK-NEXT: %[[Q:.*]] = math.fma %{{.*}}, %[[H]], %[[P]] : f32
// CHECK-NEXT: %[[R:.*]] = arith.mulf %[[Q]], %{{.*}} : f32
// CHECK-NEXT: kernel.yield %[[R]]

// -----

// What a user scales twice is rounded twice.
kernel.func @floats(%x: !kernel.buffer<f32, 2048>, %w: !kernel.buffer<f32, 1048576>, %s: !kernel.buffer<f32, 16384>, %y: !kernel.buffer<f32, 1024>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 1024 map grid {
    %t = kernel.reduce sum i1 in 0 to 1024 map vector tile 1024 {
      %u = kernel.load %x[2*i1]
      %v = kernel.load %x[2*i1 + 1]
      %b = kernel.load %w[1024*i0 + i1]
      %c = kernel.load %s[16*i0 + i1 floordiv 64]
      %lc = arith.mulf %b, %c : f32
      %p = arith.mulf %u, %lc : f32
      %hc = arith.mulf %b, %c : f32
      %q = arith.mulf %v, %hc : f32
      %r = arith.addf %p, %q : f32
      kernel.yield %r
    }
    kernel.store %t, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @floats
// CHECK-NOT: math.fma
