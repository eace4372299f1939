// RUN: inductile-opt %s -p "lower-aten-to-loop{deterministic=true}" | filecheck %s
// RUN: inductile-opt %s -p lower-aten-to-loop | filecheck %s --check-prefix=FREE

// Sums at equal indices are ATen's on a GPU; on the CPU, and where no two indices are equal, nothing changes.
func.func @gpu(%x: !aten.tensor<8x4xf32, device = "cuda:0">, %i: !aten.tensor<5xi64, device = "cuda:0">, %v: !aten.tensor<5x4xf32, device = "cuda:0">) -> !aten.tensor<8x4xf32, device = "cuda:0"> {
  %r = aten.relu(%x) : !aten.tensor<8x4xf32, device = "cuda:0">
  %s = aten.index_add(%r, %i, %v, dim = 0) : !aten.tensor<8x4xf32, device = "cuda:0">
  %y = aten.relu(%s) : !aten.tensor<8x4xf32, device = "cuda:0">
  func.return %y : !aten.tensor<8x4xf32, device = "cuda:0">
}
func.func @cpu(%x: !aten.tensor<8x4xf32>, %i: !aten.tensor<5xi64>, %v: !aten.tensor<5x4xf32>) -> !aten.tensor<8x4xf32> {
  %s = aten.index_add(%x, %i, %v, dim = 0) : !aten.tensor<8x4xf32>
  func.return %s : !aten.tensor<8x4xf32>
}

// CHECK-LABEL: func.func @gpu
// CHECK: loop.generate
// CHECK: aten.index_add
// CHECK-NOT: loop.scatter
// CHECK: loop.generate
// CHECK-LABEL: func.func @cpu
// CHECK: loop.scatter
// FREE-NOT: aten.index_add
