// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p kernel-sink-stores | filecheck %s

// The first result waits until the last input is on its way.

kernel.func @three(%x: !kernel.buffer<f32, 4096>, %w: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 4096>, %o: !kernel.buffer<f32, 4096>) target "cuda:90" per_thread 8 {
  kernel.for i0 in 0 to 4096 map grid tile 1024 {
    %a = kernel.load %x[i0]
    kernel.store %a, %z[i0]
    %d = kernel.load %w[i0]
    %e = arith.mulf %a, %d : f32
    kernel.store %e, %o[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<4096xf32, device = "cuda:0">, %w: !aten.tensor<4096xf32, device = "cuda:0">, %z: !aten.tensor<4096xf32, device = "cuda:0">, %o: !aten.tensor<4096xf32, device = "cuda:0">) -> (!aten.tensor<4096xf32, device = "cuda:0">, !aten.tensor<4096xf32, device = "cuda:0">, !aten.tensor<4096xf32, device = "cuda:0">, !aten.tensor<4096xf32, device = "cuda:0">) {
  host.launch @three(%x, %w, %z, %o)
  host.return %x, %w, %z, %o
}

// CHECK-LABEL: @three
// CHECK: %d = kernel.load %w[i0]
// CHECK-NEXT: %e = arith.mulf
// CHECK-NEXT: kernel.store %a, %z[i0]
// CHECK-NEXT: kernel.store %e, %o[i0]

// -----

// What is read back stays behind its store, and an atomic one where it is.

kernel.func @back(%x: !kernel.buffer<f32, 4096>, %y: !kernel.buffer<f32, 4096>, %z: !kernel.buffer<f32, 8192>, %t: !kernel.buffer<f32, 4096>) target "cuda:90" per_thread 8 {
  kernel.for i0 in 0 to 4096 map grid tile 1024 {
    %a = kernel.load %x[i0]
    kernel.store %a, %z[i0]
    kernel.store add atomic %a, %t[0]
    %b = kernel.load %y[i0]
    %c = kernel.load %z[i0]
    %d = arith.addf %b, %c : f32
    kernel.store %d, %z[i0 + 4096]
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<4096xf32, device = "cuda:0">, %y: !aten.tensor<4096xf32, device = "cuda:0">, %z: !aten.tensor<8192xf32, device = "cuda:0">, %t: !aten.tensor<4096xf32, device = "cuda:0">) -> (!aten.tensor<4096xf32, device = "cuda:0">, !aten.tensor<4096xf32, device = "cuda:0">, !aten.tensor<8192xf32, device = "cuda:0">, !aten.tensor<4096xf32, device = "cuda:0">) {
  host.launch @back(%x, %y, %z, %t)
  host.return %x, %y, %z, %t
}

// CHECK-LABEL: @back
// CHECK: kernel.store %a, %z[i0]
// CHECK-NEXT: kernel.store add atomic %a, %t[0]
// CHECK-NEXT: kernel.load %y
// CHECK-NEXT: kernel.load %z
