// RUN: inductile-opt %s --target cuda:90 --verify-each -p 'kernel-overlap-launches{overlap-launches=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'kernel-overlap-launches{overlap-launches=true late-release=false}' | filecheck %s --check-prefix=ONCE

// A program has the row of the weight and its scale on their way before it waits for the vector. It releases the next
// launch behind them, as that has one program only: what follows would read beside this one.
kernel.func @sum(%x: !kernel.buffer<f32, 128>, %w: !kernel.buffer<f32, 32768>, %s: !kernel.buffer<f32, 256>, %r: !kernel.buffer<f32, 256>, %y: !kernel.buffer<f32, 256>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 256 map grid {
    %r0 = kernel.load %r[i0]
    %s0 = kernel.load %s[i0]
    %t = kernel.local : !kernel.buffer<f32, 128, local>
    kernel.for i1 in 0 to 128 map vector tile 128 {
      %b = kernel.load %w[128*i0 + i1]
      kernel.store %b, %t[i1]
      kernel.yield
    }
    %d = kernel.reduce sum i1 in 0 to 128 map vector tile 128 {
      %a = kernel.load %x[i1]
      %b = kernel.load %t[i1]
      %p = arith.mulf %a, %b : f32
      kernel.yield %p
    }
    %e = arith.mulf %d, %s0 : f32
    %z = arith.addf %e, %r0 : f32
    kernel.store %z, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @double(%x: !kernel.buffer<f32, 256>, %y: !kernel.buffer<f32, 256>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 256 map grid tile 256 {
    %v = kernel.load %x[i0]
    %d = arith.addf %v, %v : f32
    kernel.store %d, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @layers(%x: !aten.tensor<128xf32, device = "cuda:0">, %w: !aten.tensor<256x128xf32, device = "cuda:0">, %s: !aten.tensor<256xf32, device = "cuda:0">, %r: !aten.tensor<256xf32, device = "cuda:0">)
    -> (!aten.tensor<256xf32, device = "cuda:0">) {
  %y = host.empty : !aten.tensor<256xf32, device = "cuda:0">
  host.launch @sum(%x, %w, %s, %r, %y)
  host.launch @double(%y, %r)
  host.return %y
}

// CHECK-LABEL: kernel.func @sum
// CHECK-NEXT: kernel.for i0 in 0 to 256 map grid {
// CHECK-NEXT: kernel.load %s[i0]
// CHECK-NEXT: kernel.local
// CHECK-NEXT: kernel.for i1
// CHECK-NEXT: kernel.load %w
// CHECK: kernel.await
// CHECK-NEXT: kernel.load %r[i0]
// CHECK-NEXT: kernel.reduce
// CHECK: arith.mulf
// CHECK-NEXT: kernel.release
// CHECK-NEXT: kernel.yield
// CHECK-LABEL: kernel.func @double
// CHECK-NEXT: kernel.for
// CHECK-NEXT: kernel.release
// CHECK-NEXT: kernel.await
// ONCE-LABEL: kernel.func @sum
// ONCE-NEXT: kernel.for
// ONCE-NEXT: kernel.release
