// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p kernel-online-softmax | filecheck %s

// A row of several tiles is read once for its maximum and the sum of exponentials.

kernel.func @looped(%x: !kernel.buffer<f32, 12288>, %y: !kernel.buffer<f32, 3>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 3 map grid {
    %m = kernel.reduce max i1 in 0 to 4096 map vector tile 1024 {
      %v = kernel.load %x[4096*i0 + i1]
      kernel.yield %v
    }
    %s = kernel.reduce sum i2 in 0 to 4096 map vector tile 1024 {
      %v = kernel.load %x[4096*i0 + i2]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.yield %e
    }
    %l = math.log %s : f32
    %r = arith.addf %l, %m : f32
    kernel.store %r, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<12288xf32, device = "cuda:0">, %y: !aten.tensor<3xf32, device = "cuda:0">) -> (!aten.tensor<12288xf32, device = "cuda:0">, !aten.tensor<3xf32, device = "cuda:0">) {
  host.launch @looped(%x, %y)
  host.return %x, %y
}

// CHECK-LABEL: @looped
// CHECK: [[M:%[a-z0-9_]+]], [[T:%[a-z0-9_]+]] = kernel.reduce logsumexp i1 in 0 to 4096 map vector tile 1024 {
// CHECK-NOT: kernel.reduce
// CHECK: [[Z:%[a-z0-9_]+]] = arith.subf [[M]], [[M]]
// CHECK-NEXT: arith.addf [[T]], [[Z]]

// -----

// In registers two passes cost nothing.

kernel.func @held(%x: !kernel.buffer<f32, 12288>, %y: !kernel.buffer<f32, 3>) target "cuda:90" per_thread 16 {
  kernel.for i0 in 0 to 3 map grid {
    %m = kernel.reduce max i1 in 0 to 4096 map vector tile 4096 {
      %v = kernel.load %x[4096*i0 + i1]
      kernel.yield %v
    }
    %s = kernel.reduce sum i2 in 0 to 4096 map vector tile 4096 {
      %v = kernel.load %x[4096*i0 + i2]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.yield %e
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<12288xf32, device = "cuda:0">, %y: !aten.tensor<3xf32, device = "cuda:0">) -> (!aten.tensor<12288xf32, device = "cuda:0">, !aten.tensor<3xf32, device = "cuda:0">) {
  host.launch @held(%x, %y)
  host.return %x, %y
}

// CHECK-LABEL: @held
// CHECK: kernel.reduce max
// CHECK: kernel.reduce sum
