// RUN: inductile-opt %s --target cuda:90 --verify-each -p 'kernel-overlap-launches{overlap-launches=true read-ahead=true}' | filecheck %s

// The weight is read before what the launch in front wrote is there, the residual, which the sum does not need, behind.
kernel.func @sum(%x: !kernel.buffer<f32, 128>, %w: !kernel.buffer<f32, 16384>, %r: !kernel.buffer<f32, 128>, %y: !kernel.buffer<f32, 128>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 128 map grid {
    %r0 = kernel.load %r[i0]
    %s = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %x[i1]
      %b = kernel.load %w[128*i0 + i1]
      %p = arith.mulf %a, %b : f32
      kernel.yield %p
    }
    %z = arith.addf %s, %r0 : f32
    kernel.store %z, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @sum
// CHECK-NEXT: kernel.for i0 in 0 to 128 map grid {
// CHECK-NEXT: kernel.reduce sum
// CHECK-NEXT: kernel.load %w
// CHECK-NEXT: kernel.await
// CHECK-NEXT: kernel.load %x
// CHECK: }
// CHECK-NEXT: kernel.load %r

// Nothing that it reads is constant.
kernel.func @double(%x: !kernel.buffer<f32, 128>, %y: !kernel.buffer<f32, 128>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 128 map grid tile 128 {
    %v = kernel.load %x[i0]
    %d = arith.addf %v, %v : f32
    kernel.store %d, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @double
// CHECK-NEXT: kernel.for
// CHECK-NEXT: kernel.await
// CHECK-NEXT: kernel.load

// No launch is beside it.
kernel.func @alone(%x: !kernel.buffer<f32, 128>, %y: !kernel.buffer<f32, 128>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 128 map grid tile 128 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @alone
// CHECK-NOT: kernel.await

// @sum follows @double, and @alone a call.
host.func @layers(%r: !aten.tensor<128xf32, device = "cuda:0">, %w: !aten.tensor<128x128xf32, device = "cuda:0">)
    -> (!aten.tensor<128xf32, device = "cuda:0">, !aten.tensor<128xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<128xf32, device = "cuda:0">
  %z = host.empty : !aten.tensor<128xf32, device = "cuda:0">
  host.launch @double(%r, %y)
  host.launch @double(%y, %r)
  host.launch @sum(%y, %w, %r, %z)
  %s = aten.cumsum(%z, dim = 0) : !aten.tensor<128xf32, device = "cuda:0">
  host.launch @alone(%s, %y)
  host.return %y, %z
}
