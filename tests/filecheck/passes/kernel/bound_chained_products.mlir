// RUN: inductile-opt %s -p kernel-bound-chained-products | filecheck %s

// Rows in front of the first one of a tile add nothing: exp(-inf - m) is 0.
kernel.func @weights(%q: !kernel.buffer<f32, 8192>, %k: !kernel.buffer<f32, 8192>, %h: !kernel.buffer<f32, 512>, %t: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 512 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i3 + i4]
          %b = kernel.load %k[16*i1 + i4]
          %c = arith.mulf %a, %b : f32
          kernel.yield %c
        }
        %key = kernel.index i1
        %row = kernel.index i3
        %hidden = arith.cmpi sgt, %key, %row : i64
        %lowest = arith.constant 0xff800000 : f32
        %x = arith.select %hidden, %lowest, %p : f32
        %m = kernel.load %h[i3]
        %d = arith.subf %x, %m : f32
        %w = math.exp %d : f32
        %v = kernel.load %t[16*i3 + i2]
        %r = arith.mulf %w, %v : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @weights
// CHECK: kernel.for i1 in 0 to 512 map grid tile 64 {
// CHECK: kernel.reduce sum i3 in 64*(i1 floordiv 64) to 512 map matrix tile 32 {

// A choice of 0 says so too, and sums of rows run by lanes. What is added to it may be anything.
kernel.func @rows(%q: !kernel.buffer<f32, 8192>, %k: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 512>, %u: !kernel.buffer<f32, 512>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    %g = kernel.reduce sum i3 in 0 to 512 map vector tile 32 {
      %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
        %a = kernel.load %q[16*i1 + i4]
        %b = kernel.load %k[16*i3 + i4]
        %c = arith.mulf %a, %b : f32
        kernel.yield %c
      }
      %key = kernel.index i3
      %row = kernel.index i1
      %hidden = arith.cmpi sgt, %key, %row : i64
      %zero = arith.constant 0.0 : f32
      %x = arith.select %hidden, %zero, %p : f32
      %y = arith.mulf %x, %p : f32
      kernel.yield %y
    }
    kernel.store %g, %o[i1]
    %h = kernel.reduce sum i3 in 0 to 512 map vector tile 32 {
      %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
        %a = kernel.load %q[16*i1 + i4]
        %b = kernel.load %k[16*i3 + i4]
        %c = arith.mulf %a, %b : f32
        kernel.yield %c
      }
      %key = kernel.index i3
      %row = kernel.index i1
      %hidden = arith.cmpi sgt, %key, %row : i64
      %zero = arith.constant 0.0 : f32
      %x = arith.select %hidden, %zero, %p : f32
      %y = arith.addf %x, %p : f32
      kernel.yield %y
    }
    kernel.store %h, %u[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @rows
// CHECK: kernel.for i1 in 0 to 512 map grid tile 64 {
// CHECK: kernel.reduce sum i3 in 0 to 64*(i1 floordiv 64) + 64 map vector tile 32 {
// CHECK: kernel.reduce sum i3 in 0 to 512 map vector tile 32 {
