// RUN: inductile-opt %s -p graph-join-moments | filecheck %s
// RUN: inductile-opt %s -p graph-join-moments --verify-each=numerics | filecheck %s

// A variance and a mean of the same dims, however they are written; the op stands where the first of them stood.
func.func @both(%x: !aten.tensor<6x5xf32>) -> (!aten.tensor<5xf32>, !aten.tensor<5xf32>) {
  %0 = aten.mean.dim(%x, dim = [-2], keepdim = false) : !aten.tensor<5xf32>
  %1 = aten.var.correction(%x, dim = [0], correction = 0, keepdim = false) : !aten.tensor<5xf32>
  func.return %1, %0 : !aten.tensor<5xf32>, !aten.tensor<5xf32>
}
// CHECK-LABEL: @both
// CHECK-NEXT: %0, %1 = aten.var_mean.correction(%x, dim = [0], correction = 0) :
// CHECK-NEXT: func.return %0, %1

// Of all elements, dims kept.
func.func @whole(%x: !aten.tensor<6x5xf32>) -> (!aten.tensor<1x1xf32>, !aten.tensor<1x1xf32>) {
  %0 = aten.var.correction(%x, correction = 1, keepdim = true) : !aten.tensor<1x1xf32>
  %1 = aten.mean.dim(%x, dim = [0, 1], keepdim = true) : !aten.tensor<1x1xf32>
  func.return %0, %1 : !aten.tensor<1x1xf32>, !aten.tensor<1x1xf32>
}
// CHECK-LABEL: @whole
// CHECK-NEXT: aten.var_mean.correction(%x, correction = 1, keepdim = true)

// Other dims, kept dims and another type are other reductions.
func.func @apart(%x: !aten.tensor<6x5xf32>) -> (!aten.tensor<5xf32>, !aten.tensor<6xf32>, !aten.tensor<1x5xf32>, !aten.tensor<5xf64>) {
  %0 = aten.var.correction(%x, dim = [0], correction = 1, keepdim = false) : !aten.tensor<5xf32>
  %1 = aten.mean.dim(%x, dim = [1], keepdim = false) : !aten.tensor<6xf32>
  %2 = aten.mean.dim(%x, dim = [0], keepdim = true) : !aten.tensor<1x5xf32>
  %3 = aten.mean.dim(%x, dim = [0], keepdim = false, dtype = torch.float64) : !aten.tensor<5xf64>
  func.return %0, %1, %2, %3 : !aten.tensor<5xf32>, !aten.tensor<6xf32>, !aten.tensor<1x5xf32>, !aten.tensor<5xf64>
}
// CHECK-LABEL: @apart
// CHECK-NOT: var_mean
