// RUN: inductile-opt %s -p kernel-skip-hidden-steps | filecheck %s
// RUN: inductile-opt %s -p kernel-skip-hidden-steps | inductile-opt | filecheck %s

// Keys of other documents are hidden: what lies between the lowest and the highest number of the rows may be seen.
kernel.func @documents(%q: !kernel.buffer<f32, 8192>, %k: !kernel.buffer<f32, 8192>, %ids: !kernel.buffer<i64, 512>, %v: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 64*(i1 floordiv 64) + 64 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %c = arith.mulf %a, %b : f32
          kernel.yield %c
        }
        %row = kernel.load %ids[i1]
        %key = kernel.load %ids[i3]
        %same = arith.cmpi eq, %row, %key : i64
        %lowest = arith.constant 0xff800000 : f32
        %y = arith.select %same, %p, %lowest : f32
        %g = kernel.load %v[16*i3 + i2]
        %one = arith.constant 1.0 : f32
        kernel.yield %y, %one, %g
      }
      %r = arith.divf %t, %s : f32
      kernel.store %r, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @documents
// CHECK: [[LOW:%[0-9a-z]+]], [[HIGH:%[0-9a-z]+]] = kernel.reduce [min, max] [[R:i[0-9]+]] in 64*(i1 floordiv 64) to min(64*(i1 floordiv 64) + 64, 512) map vector tile 64 {
// CHECK-NEXT: kernel.load %ids{{\[}}[[R]]]
// CHECK: [[FIRST:%[0-9a-z]+]], [[LAST:%[0-9a-z]+]] = kernel.reduce [min, max] [[P:i[0-9]+]] in 0 to 64*(i1 floordiv 64) + 64 map vector tile 1024 {
// CHECK-NEXT: [[KEY:%[0-9a-z]+]] = kernel.load %ids{{\[}}[[P]]]
// CHECK-NEXT: arith.cmpi sle, [[LOW]], [[KEY]] : i64
// CHECK-NEXT: arith.cmpi sge, [[HIGH]], [[KEY]] : i64
// CHECK: kernel.reduce softmax_sum i3 in 0 to 64*(i1 floordiv 64) + 64 map matrix tile 32 within [[FIRST]], [[LAST]] {

// A truth of a key hides it from all rows; where a weight is 0 nothing is added.
kernel.func @truths(%q: !kernel.buffer<f32, 8192>, %k: !kernel.buffer<f32, 8192>, %seen: !kernel.buffer<i1, 512>, %o: !kernel.buffer<f32, 512>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    %s = kernel.reduce sum i3 in 0 to 512 map vector tile 32 {
      %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
        %a = kernel.load %q[16*i1 + i4]
        %b = kernel.load %k[16*i3 + i4]
        %c = arith.mulf %a, %b : f32
        kernel.yield %c
      }
      %key = kernel.load %seen[i3]
      %zero = arith.constant 0.0 : f32
      %y = arith.select %key, %p, %zero : f32
      kernel.yield %y
    }
    kernel.store %s, %o[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @truths
// CHECK: [[FIRST:%[0-9a-z]+]], [[LAST:%[0-9a-z]+]] = kernel.reduce [min, max] [[P:i[0-9]+]] in 0 to 512 map vector tile 512 {
// CHECK-NEXT: kernel.load %seen{{\[}}[[P]]]
// CHECK: kernel.reduce sum i3 in 0 to 512 map vector tile 32 within [[FIRST]], [[LAST]] {

// What varies along rows and keys says nothing of a tile.
kernel.func @matrix(%q: !kernel.buffer<f32, 8192>, %k: !kernel.buffer<f32, 8192>, %seen: !kernel.buffer<i1, 262144>, %o: !kernel.buffer<f32, 512>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    %s = kernel.reduce sum i3 in 0 to 512 map vector tile 32 {
      %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
        %a = kernel.load %q[16*i1 + i4]
        %b = kernel.load %k[16*i3 + i4]
        %c = arith.mulf %a, %b : f32
        kernel.yield %c
      }
      %key = kernel.load %seen[512*i1 + i3]
      %zero = arith.constant 0.0 : f32
      %y = arith.select %key, %p, %zero : f32
      kernel.yield %y
    }
    kernel.store %s, %o[i1]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @matrix
// CHECK-NOT: within
