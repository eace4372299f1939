// RUN: inductile-opt %s --split-input-file --verify-each --target cuda:75 -p kernel-stream-results | filecheck %s
// RUN: inductile-opt %s --split-input-file -p kernel-stream-results | filecheck %s --check-prefixes=CPU

// CPU-NOT: streams

// More than the cache holds, and the end of the program: also through a view.

kernel.func @last(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) {
  kernel.for i0 in 0 to 1048576 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// What is read by the next launch is wanted in the cache.
kernel.func @first(%x: !kernel.buffer<f32, 1048576>, %y: !kernel.buffer<f32, 1048576>) {
  kernel.for i0 in 0 to 1048576 {
    %v = kernel.load %x[i0]
    %w = arith.negf %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// Few bytes stay in any case.
kernel.func @small(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @forward(%x: !aten.tensor<1048576xf32, device = "cuda:0">, %s: !aten.tensor<64xf32, device = "cuda:0">) -> (!aten.tensor<1024x1024xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<1048576xf32, device = "cuda:0">
  host.launch @first(%x, %a)
  %b = host.empty : !aten.tensor<1048576xf32, device = "cuda:0">
  host.launch @last(%a, %b)
  %v = host.view %b offset 0 : !aten.tensor<1024x1024xf32, device = "cuda:0">
  %t = host.empty : !aten.tensor<64xf32, device = "cuda:0">
  host.launch @small(%s, %t)
  host.return %v, %t
}
// CHECK: kernel.func @last({{.*}}) streams {
// CHECK: kernel.func @first({{.*}}1048576>) {
// CHECK: kernel.func @small({{.*}}64>) {
