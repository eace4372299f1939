func.func @f(%x: !aten.tensor<5x3xf32>) -> !aten.tensor<5x3xf32> {
  %0 = aten.abs(%x) : !aten.tensor<5x3xf32>
  %1 = aten.add.Scalar(%0, other = 1) : !aten.tensor<5x3xf32>
  %2 = aten.div.Tensor(%x, %1) : !aten.tensor<5x3xf32>
  func.return %2 : !aten.tensor<5x3xf32>
}
