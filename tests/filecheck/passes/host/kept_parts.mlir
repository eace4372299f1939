// RUN: inductile-opt %s --target cuda:90 -p 'host-split-parts{cudagraphs=true}' | filecheck %s

// The look at the weights is the only step that is not recorded: what follows is one part, however short it is. Results
// that are kept are made by a program that is never recorded.
// CHECK-LABEL: host.func @f(
// CHECK: %[[P:.*]] = host.call kept @f_weights(%w)
// CHECK-NEXT: %[[Y:.*]] = host.call @f_part_0(%{{.*}}) : !aten.tensor<4xf32, device = "cuda:0">
// CHECK-NEXT: host.return %[[Y]]
// CHECK-LABEL: host.func @f_part_0(
// CHECK-SAME: recorded {
// CHECK-LABEL: host.func @f_weights(
// CHECK-SAME: kept {
// CHECK-NEXT: host.empty
// CHECK-NEXT: host.launch
// CHECK-NEXT: host.return

kernel.func @add(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>, %z: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %0 = kernel.load %x[i0]
    %1 = kernel.load %y[i0]
    %2 = arith.addf %0, %1 : f32
    kernel.store %2, %z[i0]
    kernel.yield
  }
  kernel.yield
}

host.func @f(%x: !aten.tensor<4xf32, device = "cuda:0">, %w: !aten.tensor<4xf32, device = "cuda:0">) -> (!aten.tensor<4xf32, device = "cuda:0">) symbols [] {
  %p = host.call kept @f_weights(%w) : !aten.tensor<4xf32, device = "cuda:0">
  %y = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @add(%x, %p, %y)
  host.return %y
}

host.func @f_weights(%w: !aten.tensor<4xf32, device = "cuda:0">) -> (!aten.tensor<4xf32, device = "cuda:0">) symbols [] kept {
  %p = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @add(%w, %w, %p)
  host.return %p
}
