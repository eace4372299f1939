// RUN: inductile-opt %s -p kernel-peel-masked-steps | filecheck %s

// Of a causal mask the first steps of a tile of rows see everything. What goes on reads what is left of the sums.
kernel.func @causal(%x: !kernel.buffer<f32, 262144>, %v: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %m, %s, %t = kernel.reduce softmax_sum i3 in 0 to 64*(i1 floordiv 64) + 64 map matrix tile 32 {
        %p = kernel.load %x[512*i1 + i3]
        %row = kernel.index i1
        %key = kernel.index i3
        %hidden = arith.cmpi sgt, %key, %row : i64
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
// CHECK-LABEL: kernel.func @causal
// CHECK: %[[M:.*]], %[[S:.*]], %[[T:.*]] = kernel.reduce softmax_sum i3 in 0 to 64*(i1 floordiv 64) map matrix tile 32 {
// CHECK-NOT: arith.select
// CHECK: kernel.reduce softmax_sum init(%[[M]], %[[S]], %[[T]]) i3 in 64*(i1 floordiv 64) to 64*(i1 floordiv 64) + 64 map matrix tile 32 {
// CHECK: arith.select

// Rows that see each other within 300 places: steps at both ends have a mask, and those between them are enough.
kernel.func @window(%w: !kernel.buffer<f32, 4194304>, %k: !kernel.buffer<f32, 32768>, %o: !kernel.buffer<f32, 32768>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 2048 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 2048 map matrix tile 32 {
        %p = kernel.load %w[2048*i1 + i3]
        %ahead = kernel.index i3 - i1
        %behind = kernel.index i1 - i3
        %300 = arith.constant 300 : i64
        %near = arith.cmpi slt, %ahead, %300 : i64
        %past = arith.cmpi slt, %behind, %300 : i64
        %seen = arith.andi %near, %past : i1
        %zero = arith.constant 0.0 : f32
        %x = arith.select %seen, %p, %zero : f32
        %v = kernel.load %k[16*i3 + i2]
        %r = arith.mulf %x, %v : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @window
// CHECK: kernel.reduce sum i3 in 0 to
// CHECK: arith.select
// CHECK: kernel.reduce sum init
// CHECK-NOT: arith.select
// CHECK: kernel.reduce sum init
// CHECK: arith.select

// A comparison with a loaded number says nothing, and few steps are not worth a loop of their own.
kernel.func @others(%x: !kernel.buffer<f32, 262144>, %n: !kernel.buffer<i64, 512>, %v: !kernel.buffer<f32, 8192>, %o: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 512 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 512 map matrix tile 64 {
        %p = kernel.load %x[512*i1 + i3]
        %row = kernel.index i1
        %key = kernel.index i3
        %a = kernel.load %n[i1]
        %b = kernel.load %n[i3]
        %past = arith.cmpi sle, %key, %row : i64
        %same = arith.cmpi eq, %a, %b : i64
        %seen = arith.andi %past, %same : i1
        %zero = arith.constant 0.0 : f32
        %y = arith.select %seen, %p, %zero : f32
        %w = kernel.load %v[16*i3 + i2]
        %r = arith.mulf %y, %w : f32
        kernel.yield %r
      }
      %h = kernel.reduce sum i3 in 0 to 512 map matrix tile 128 {
        %p = kernel.load %x[512*i1 + i3]
        %row = kernel.index i1
        %key = kernel.index i3
        %hidden = arith.cmpi sgt, %key, %row : i64
        %zero = arith.constant 0.0 : f32
        %y = arith.select %hidden, %zero, %p : f32
        %w = kernel.load %v[16*i3 + i2]
        %r = arith.mulf %y, %w : f32
        kernel.yield %r
      }
      %sum = arith.addf %g, %h : f32
      kernel.store %sum, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @others
// CHECK: kernel.reduce sum i3 in 0 to 512 map matrix tile 64
// CHECK: kernel.reduce sum i3 in 0 to 512 map matrix tile 128
// CHECK-NOT: kernel.reduce
