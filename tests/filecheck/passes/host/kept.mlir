// RUN: inductile-opt %s -p host-inline,host-reuse,host-free --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s -p host-inline,host-plan-memory,host-free | filecheck %s
// RUN: not inductile-opt %S/Inputs/kept_unlike.mlir 2>&1 | filecheck %s --check-prefix=UNLIKE

// A call whose results are kept stays, the function behind it is a program by itself, and nothing writes its results.
// CHECK-LABEL: host.func @f(
// CHECK: %[[P:.*]] = host.call kept @f_weights(%w) : !aten.tensor<4xf32>
// CHECK: %[[Y:.*]] = host.empty
// CHECK: host.launch @add(%{{.*}}, %{{.*}}, %[[Y]])
// CHECK: host.return %[[Y]]
// CHECK-LABEL: host.func @f_weights(
// CHECK-SAME: kept {
// CHECK-NOT: host.call
// CHECK-NOT: kept :
// CHECK: host.launch @add
// CHECK: host.launch @add
// CHECK-NOT: host.func
// UNLIKE: error: {{.*}}of the call and @f_weights only one says that the results are kept

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

host.func @f(%x: !aten.tensor<4xf32>, %w: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %p = host.call kept @f_weights(%w) : !aten.tensor<4xf32>
  %y = host.empty : !aten.tensor<4xf32>
  host.launch @add(%x, %p, %y)
  host.return %y
}

host.func @f_weights(%w: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] kept {
  %t = host.call @inner(%w) : !aten.tensor<4xf32>
  %p = host.empty : !aten.tensor<4xf32>
  host.launch @add(%t, %w, %p)
  host.return %p
}

host.func @inner(%w: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) symbols [] {
  %t = host.empty : !aten.tensor<4xf32>
  host.launch @add(%w, %w, %t)
  host.return %t
}
