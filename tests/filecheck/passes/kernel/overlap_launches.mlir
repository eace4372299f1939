// RUN: inductile-opt %s --target cuda:90 --verify-each -p kernel-overlap-launches{overlap-launches=true} | filecheck %s
// RUN: inductile-opt %s --target cuda:90 --verify-each -p kernel-overlap-launches{overlap-launches=true},kernel-overlap-launches{overlap-launches=true} | filecheck %s
// RUN: inductile-opt %s --target cuda:80 -p kernel-overlap-launches{overlap-launches=true} | filecheck %s --check-prefix=APART
// APART-NOT: kernel.await

// It follows @double.
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
// CHECK-NEXT: kernel.release
// CHECK-NEXT: kernel.await
// CHECK-NEXT: kernel.load %r
// CHECK-NOT: kernel.await

// Each nest has programs of its own, which wait by themselves.
kernel.func @both(%x: !kernel.buffer<f32, 128>, %y: !kernel.buffer<f32, 128>, %z: !kernel.buffer<f32, 128>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 128 map grid tile 128 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.for i1 in 0 to 2 map grid {
    kernel.for i2 in 0 to 64 map grid tile 64 {
      %w = kernel.load %x[64*i1 + i2]
      kernel.store %w, %z[64*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @both
// CHECK-NEXT: kernel.for i0
// CHECK-NEXT: kernel.release
// CHECK-NEXT: kernel.await
// CHECK: kernel.for i1
// CHECK-NEXT: kernel.for i2
// CHECK-NEXT: kernel.release
// CHECK-NEXT: kernel.await

// It has too many programs: those that wait by themselves start slowly.
kernel.func @many(%x: !kernel.buffer<f32, 65536>, %y: !kernel.buffer<f32, 65536>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 65536 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @many
// CHECK-NOT: kernel.await

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
// CHECK-NEXT: kernel.release
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

// All follow one another but @alone, which follows a call.
host.func @layers(%r: !aten.tensor<128xf32, device = "cuda:0">, %w: !aten.tensor<128x128xf32, device = "cuda:0">)
    -> (!aten.tensor<128xf32, device = "cuda:0">, !aten.tensor<128xf32, device = "cuda:0">) {
  %l = host.empty : !aten.tensor<65536xf32, device = "cuda:0">
  %m = host.empty : !aten.tensor<65536xf32, device = "cuda:0">
  host.launch @many(%l, %m)
  %y = host.empty : !aten.tensor<128xf32, device = "cuda:0">
  %z = host.empty : !aten.tensor<128xf32, device = "cuda:0">
  host.launch @double(%r, %y)
  host.launch @both(%r, %y, %z)
  host.launch @double(%y, %r)
  host.launch @sum(%y, %w, %r, %z)
  %s = aten.cumsum(%z, dim = 0) : !aten.tensor<128xf32, device = "cuda:0">
  host.launch @alone(%s, %y)
  host.return %y, %z
}
