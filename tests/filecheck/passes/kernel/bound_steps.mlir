// RUN: inductile-opt %s -p kernel-bound-steps | filecheck %s

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

// Keys behind the last row of a tile are hidden from all of it, and those more than 64 in front of the first one.
kernel.func @window(%x: !kernel.buffer<f32, 262144>, %v: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 32 {
        %p = kernel.load %x[512*i1 + i3]
        %row = kernel.index i1
        %key = kernel.index i3
        %distance = kernel.index i1 - i3
        %64 = arith.constant 64 : i64
        %past = arith.cmpi sle, %key, %row : i64
        %near = arith.cmpi slt, %distance, %64 : i64
        %seen = arith.andi %past, %near : i1
        %lowest = arith.constant 0xff800000 : f32
        %y = arith.select %seen, %p, %lowest : f32
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
// CHECK-LABEL: kernel.func @window
// CHECK: kernel.reduce softmax_sum i3 in 32*(max(64*(i1 floordiv 64) - 63, 0) floordiv 32) to 64*(i1 floordiv 64) + 64 map matrix tile 32 {

// What either of two conditions shows is seen; a comparison with a loaded number says nothing.
kernel.func @prefix(%x: !kernel.buffer<f32, 250000>, %n: !kernel.buffer<i64, 1>, %v: !kernel.buffer<f32, 8000>, %o: !kernel.buffer<f32, 8000>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 500 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 500 map matrix tile 32 {
        %p = kernel.load %x[500*i1 + i3]
        %row = kernel.index i1
        %key = kernel.index i3
        %100 = arith.constant 100 : i64
        %true = arith.constant true
        %size = kernel.load %n[0]
        %past = arith.cmpi sle, %key, %row : i64
        %first = arith.cmpi slt, %key, %100 : i64
        %either = arith.ori %past, %first : i1
        %short = arith.cmpi slt, %key, %size : i64
        %seen = arith.andi %either, %short : i1
        %hidden = arith.xori %seen, %true : i1
        %lowest = arith.constant 0xff800000 : f32
        %y = arith.select %hidden, %lowest, %p : f32
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
// CHECK-LABEL: kernel.func @prefix
// CHECK: kernel.reduce softmax_sum i3 in 0 to min({{.*}}, 500) map matrix tile 32 {

// A mask that is no -inf hides nothing for sure: where all is hidden, all weighs alike.
kernel.func @finite(%x: !kernel.buffer<f32, 262144>, %v: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 32 {
        %p = kernel.load %x[512*i1 + i3]
        %row = kernel.index i1
        %key = kernel.index i3
        %past = arith.cmpi sle, %key, %row : i64
        %low = arith.constant -1.0e+30 : f32
        %y = arith.select %past, %p, %low : f32
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
// CHECK-LABEL: kernel.func @finite
// CHECK: kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 32 {
