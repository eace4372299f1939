// RUN: inductile-opt %s -p graph-canonicalize | filecheck %s

// Tensors of one number.
func.func @uniform(%x: !aten.tensor<4xf32>, %n: !aten.tensor<4xi64>) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xi1>, !aten.tensor<4xi64>) {
  %one = aten.full(size = [4], fill_value = 1.0, dtype = torch.float32) : !aten.tensor<4xf32>
  %zero = aten.full(size = [], fill_value = 0.0, dtype = torch.float32) : !aten.tensor<f32>
  %zeros = aten.expand(%zero, size = [4]) : !aten.tensor<4xf32, strides = [0]>
  %0 = aten.mul.Tensor(%one, %x) : !aten.tensor<4xf32>
  %1 = aten.sub.Tensor(%0, %zeros) : !aten.tensor<4xf32>
  %2 = aten.add.Tensor(%1, %zeros) : !aten.tensor<4xf32>
  %3 = aten.exp(%2) : !aten.tensor<4xf32>
  %4 = aten.sub.Tensor(%one, %zeros) : !aten.tensor<4xf32>
  %5 = aten.mul.Scalar(%4, other = 0.1) : !aten.tensor<4xf32>
  %6 = aten.ge.Tensor(%one, %zeros) : !aten.tensor<4xi1>
  %7 = aten.where.self(%6, %3, %5) : !aten.tensor<4xf32>
  %8 = aten.exp(%7) : !aten.tensor<4xf32>
  %none = aten.full(size = [], fill_value = 0, dtype = torch.int64) : !aten.tensor<i64>
  %9 = aten.add.Tensor(%n, %none) : !aten.tensor<4xi64>
  %10 = aten.abs(%9) : !aten.tensor<4xi64>
  func.return %8, %5, %6, %10 : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xi1>, !aten.tensor<4xi64>
}
// 0.1 is no float32: the product stays. So does x + 0.0, which is not x for -0.0.
// CHECK-LABEL: @uniform
// CHECK: %[[ADD:.*]] = aten.add.Tensor(%x, %{{.*}})
// CHECK: %[[EXP:.*]] = aten.exp(%[[ADD]])
// CHECK: %[[ONES:.*]] = aten.full({{.*}}fill_value = 1.0
// CHECK: %[[TENTHS:.*]] = aten.mul.Scalar(%[[ONES]], other = 0.1)
// CHECK: %[[TRUE:.*]] = aten.full({{.*}}fill_value = true
// CHECK: aten.exp(%[[EXP]])
// CHECK: aten.abs(%n)

// Division by powers of two.
func.func @quotients(%x: !aten.tensor<4xf32>, %h: !aten.tensor<4xf16>) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf16>) {
  %0 = aten.div.Scalar(%x, other = 8) : !aten.tensor<4xf32>
  %1 = aten.div.Scalar(%x, other = 6.0) : !aten.tensor<4xf32>
  %2 = aten.div.Scalar(%h, other = 1.0e30) : !aten.tensor<4xf16>
  func.return %0, %1, %2 : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf16>
}
// CHECK-LABEL: @quotients
// CHECK: aten.mul.Scalar(%x, other = 0.125)
// CHECK: aten.div.Scalar(%x, other = 6.0)
// CHECK: aten.div.Scalar(%h, other = 1.0e+30)

// A number that is computed is no constant.
func.func @computed(%n: index, %x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.call pure "operator::truediv"(%n, 3) : f64
  %1 = aten.mul.Scalar(%x, other = %0) : !aten.tensor<4xf32>
  func.return %1 : !aten.tensor<4xf32>
}
// CHECK-LABEL: @computed
// CHECK: aten.mul.Scalar(%x, other = %{{.*}})
