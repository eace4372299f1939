// RUN: inductile-opt %s -p lower-aten-to-loop | filecheck %s

// On a GPU a mean and a variance are one reduction, until somebody knows how rows lie in memory.
func.func @on_gpu(%x: !aten.tensor<8x64xf32, device = "cuda:0">) -> (!aten.tensor<8xf32, device = "cuda:0">, !aten.tensor<8xf32, device = "cuda:0">) {
  %v, %m = aten.var_mean.correction(%x, dim = [1], correction = 0) : !aten.tensor<8xf32, device = "cuda:0">, !aten.tensor<8xf32, device = "cuda:0">
  func.return %v, %m : !aten.tensor<8xf32, device = "cuda:0">, !aten.tensor<8xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @on_gpu
// CHECK: %[[S:.*]], %[[A:.*]], %[[B:.*]], %[[N:.*]] = loop.reduce [sum, welford] (r0 in 64)
// CHECK: %[[M:.*]] = arith.divf %[[S]], %
// CHECK: arith.subf %[[M]], %[[A]]
// CHECK-NOT: loop.reduce

// Rows that may be empty have no mean to deviate from, and a CPU keeps a row at hand.
func.func @perhaps_empty(%x: !aten.tensor<8x(s0)xf32, device = "cuda:0">) -> !aten.tensor<8xf32, device = "cuda:0"> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1, min = 0>]} {
  %v = aten.var.correction(%x, dim = [1], correction = 0) : !aten.tensor<8xf32, device = "cuda:0">
  func.return %v : !aten.tensor<8xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @perhaps_empty
// CHECK-NOT: welford
func.func @on_cpu(%x: !aten.tensor<8x64xf32>) -> !aten.tensor<8xf32> {
  %v = aten.var.correction(%x, dim = [1], correction = 0) : !aten.tensor<8xf32>
  func.return %v : !aten.tensor<8xf32>
}
// CHECK-LABEL: func.func @on_cpu
// CHECK-NOT: welford
