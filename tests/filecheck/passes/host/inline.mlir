// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p host-inline | filecheck %s

// Each call gets memory of its own; the view that two calls make of one argument is made once.

kernel.func @exp(%w: !kernel.buffer<f32, 4>, %x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 {
    %0 = kernel.load %x[i0]
    %1 = kernel.load %w[i0]
    %2 = arith.addf %0, %1 : f32
    kernel.store %2, %y[i0]
    kernel.yield
  }
  kernel.yield
}

host.func @f(%w: !aten.tensor<2x2xf32>, %x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %y = host.call @layer(%w, %x) : !aten.tensor<4xf32>
  %z = host.call @layer(%w, %y) : !aten.tensor<4xf32>
  host.return %z
}

host.func @layer(%w: !aten.tensor<2x2xf32>, %x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %flat = host.view %w offset 0 : !aten.tensor<4xf32>
  %y = host.empty : !aten.tensor<4xf32>
  host.launch @exp(%flat, %x, %y)
  host.return %y
}

// CHECK-LABEL: host.func @f
// CHECK-NEXT: %flat = host.view %w
// CHECK-NEXT: %y = host.empty
// CHECK-NEXT: host.launch @exp(%flat, %x, %y)
// CHECK-NEXT: %z = host.empty
// CHECK-NEXT: host.launch @exp(%flat, %y, %z)
// CHECK-NEXT: host.return %z
// CHECK-NOT: @layer

// -----

// Calls in a called program are calls of the caller.

host.func @g(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %y = host.call @outer(%x) : !aten.tensor<4xf32>
  host.return %y
}

host.func @outer(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %0 = host.call @inner(%x) : !aten.tensor<4xf32>
  %1 = host.call @inner(%0) : !aten.tensor<4xf32>
  host.return %1
}

host.func @inner(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  host.return %0
}

// CHECK-LABEL: host.func @g
// CHECK-NEXT: %[[A:.*]] = aten.exp(%x)
// CHECK-NEXT: %[[B:.*]] = aten.exp(%[[A]])
// CHECK-NEXT: host.return %[[B]]
// CHECK-NOT: host.func
