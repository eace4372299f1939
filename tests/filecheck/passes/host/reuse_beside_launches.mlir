// RUN: inductile-opt %s --target cuda:90 --verify-each -p host-reuse | filecheck %s

// %c is as large as %a, which dies with the launch in front of the one that writes %c, and small: both launches may
// become one.

kernel.func @exp(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[31 - i0]
    %w = math.exp %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @pairs(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 16>) {
  kernel.for i0 in 0 to 16 {
    %v = kernel.load %x[31 - i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @twice(%x: !kernel.buffer<f32, 16>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0 floordiv 2]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @small(%given: !aten.tensor<32xf32, device = "cuda:0">) -> (!aten.tensor<32xf32, device = "cuda:0">) symbols [] {
  %a = host.empty : !aten.tensor<32xf32, device = "cuda:0">
  host.launch @exp(%given, %a)
  %b = host.empty : !aten.tensor<16xf32, device = "cuda:0">
  host.launch @pairs(%a, %b)
  %c = host.empty : !aten.tensor<32xf32, device = "cuda:0">
  host.launch @twice(%b, %c)
  %d = host.empty : !aten.tensor<32xf32, device = "cuda:0">
  host.launch @exp(%c, %d)
  host.return %d
}

// CHECK-LABEL: host.func @small
// CHECK: host.launch @pairs(%a, %b)
// CHECK-NEXT: %c = host.empty
// CHECK-NEXT: host.launch @twice(%b, %c)
