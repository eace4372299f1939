// RUN: inductile-opt %s --split-input-file --verify-each --target cpp -p kernel-map,kernel-vectorize,kernel-relax-atomics | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:90 -p kernel-map,kernel-vectorize,kernel-relax-atomics | filecheck %s --check-prefix=GPU

// Rows that may meet run one after the other on a CPU, and all at once on a GPU.

kernel.func @bins(%x: !kernel.buffer<f32, 6400>, %y: !kernel.buffer<f32, 640>, %i: !kernel.buffer<i64, 100>) {
  kernel.for i0 in 0 to 100 {
    kernel.for i1 in 0 to 64 {
      %j = kernel.load %i[i0]
      %v = kernel.load %x[64*i0 + i1]
      kernel.store add atomic %v, %y[64*d0 + i1] (d0 = %j)
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_bins(%x: !aten.tensor<6400xf32, device = "cuda:0">, %y: !aten.tensor<640xf32, device = "cuda:0">, %i: !aten.tensor<100xi64, device = "cuda:0">) -> (!aten.tensor<640xf32, device = "cuda:0">) {
  host.launch @bins(%x, %y, %i)
  host.return %y
}

// CHECK-LABEL: @bins
// CHECK: kernel.for i1 in 0 to 64 map vector tile 16 {
// CHECK: kernel.store add %
// GPU-LABEL: @bins
// GPU: kernel.store add atomic %

// -----

// Threads that a user asked for meet.

kernel.func @pinned(%x: !kernel.buffer<f32, 100>, %y: !kernel.buffer<f32, 10>, %i: !kernel.buffer<i64, 100>) {
  kernel.for i0 in 0 to 100 map parallel {
    %j = kernel.load %i[i0]
    %v = kernel.load %x[i0]
    kernel.store add atomic %v, %y[d0] (d0 = %j)
    kernel.yield
  }
  kernel.yield
}
host.func @run_pinned(%x: !aten.tensor<100xf32, device = "cuda:0">, %y: !aten.tensor<10xf32, device = "cuda:0">, %i: !aten.tensor<100xi64, device = "cuda:0">) -> (!aten.tensor<10xf32, device = "cuda:0">) {
  host.launch @pinned(%x, %y, %i)
  host.return %y
}

// CHECK-LABEL: @pinned
// CHECK: kernel.store add atomic %

// -----

// A GPU does not multiply in memory: one program runs all iterations in order.

kernel.func @products(%x: !kernel.buffer<f32, 100>, %y: !kernel.buffer<f32, 10>, %i: !kernel.buffer<i64, 100>) {
  kernel.for i0 in 0 to 100 {
    %j = kernel.load %i[i0]
    %v = kernel.load %x[i0]
    kernel.store mul atomic %v, %y[d0] (d0 = %j)
    kernel.yield
  }
  kernel.yield
}
host.func @run_products(%x: !aten.tensor<100xf32, device = "cuda:0">, %y: !aten.tensor<10xf32, device = "cuda:0">, %i: !aten.tensor<100xi64, device = "cuda:0">) -> (!aten.tensor<10xf32, device = "cuda:0">) {
  host.launch @products(%x, %y, %i)
  host.return %y
}

// GPU-LABEL: @products
// GPU-NEXT: kernel.for i0 in 0 to 100 {
// GPU: kernel.store mul %
