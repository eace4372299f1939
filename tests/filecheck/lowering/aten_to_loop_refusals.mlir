// What eager's kernels refuse stays an ATen call, which says so.
// RUN: inductile-opt %s -p lower-aten-to-loop | filecheck %s

// CHECK-LABEL: func.func @wide_unsigned
func.func @wide_unsigned(%x: !aten.tensor<4xui16>, %y: !aten.tensor<4xui16>) -> (!aten.tensor<4xui16>, !aten.tensor<4xi1>, !aten.tensor<4xui16>, !aten.tensor<4xf32>) {
  // CHECK: aten.add.Tensor
  %0 = aten.add.Tensor(%x, %y) : !aten.tensor<4xui16>
  // CHECK: aten.lt.Tensor
  %1 = aten.lt.Tensor(%x, %y) : !aten.tensor<4xi1>
  // CHECK-NOT: = aten.
  %2 = aten.mul.Tensor(%x, %y) : !aten.tensor<4xui16>
  %3 = aten.add.Scalar(%x, other = 1.5) : !aten.tensor<4xf32>
  // CHECK: func.return
  func.return %0, %1, %2, %3 : !aten.tensor<4xui16>, !aten.tensor<4xi1>, !aten.tensor<4xui16>, !aten.tensor<4xf32>
}

// CHECK-LABEL: func.func @dtypes
func.func @dtypes(%x: !aten.tensor<1x4x8x8xi64>, %b: !aten.tensor<4xi1>) -> (!aten.tensor<1x4x5x5xi64>, !aten.tensor<4xi1>, !aten.tensor<4xi64>) {
  // CHECK: aten._adaptive_avg_pool2d
  %0 = aten._adaptive_avg_pool2d(%x, output_size = [5, 5]) : !aten.tensor<1x4x5x5xi64>
  // CHECK: aten.abs
  %1 = aten.abs(%b) : !aten.tensor<4xi1>
  // CHECK-NOT: = aten.
  %2 = aten.pow.Tensor_Scalar(%b, exponent = 2) : !aten.tensor<4xi64>
  // CHECK: func.return
  func.return %0, %1, %2 : !aten.tensor<1x4x5x5xi64>, !aten.tensor<4xi1>, !aten.tensor<4xi64>
}

// CHECK-LABEL: func.func @numbers
func.func @numbers(%x: !aten.tensor<4xui8>, %f: !aten.tensor<4xf32>) -> (!aten.tensor<4xui8>, !aten.tensor<4xui8>, !aten.tensor<4xf32>, !aten.tensor<4xui8>) {
  // CHECK: aten.full_like
  %0 = aten.full_like(%x, fill_value = 300) : !aten.tensor<4xui8>
  // CHECK: aten.clamp
  %1 = aten.clamp(%x, min = 0, max = 256) : !aten.tensor<4xui8>
  // CHECK: aten.smooth_l1_loss
  %2 = aten.smooth_l1_loss(%f, %f, reduction = 0, beta = -1.0) : !aten.tensor<4xf32>
  // CHECK-NOT: = aten.
  %3 = aten.add.Scalar(%x, other = 300) : !aten.tensor<4xui8>
  // CHECK: func.return
  func.return %0, %1, %2, %3 : !aten.tensor<4xui8>, !aten.tensor<4xui8>, !aten.tensor<4xf32>, !aten.tensor<4xui8>
}

// Of types for which there is no scalar code nothing is left of what was begun; floats beside them are lowered.
// CHECK-LABEL: func.func @quotients
func.func @quotients(%x: !aten.tensor<8x16xi32>, %b: !aten.tensor<4xi1>, %f: !aten.tensor<8x16xf32>) -> (!aten.tensor<8x16xi32>, !aten.tensor<4xi1>, !aten.tensor<8x16xf32>) {
  // CHECK-NEXT: aten._softmax(%x
  %0 = aten._softmax(%x, dim = 1, half_to_float = false) : !aten.tensor<8x16xi32>
  // CHECK-NEXT: aten.floor_divide(%b, %b)
  %1 = aten.floor_divide(%b, %b) : !aten.tensor<4xi1>
  // CHECK-NOT: = aten.
  %2 = aten._softmax(%f, dim = 1, half_to_float = false) : !aten.tensor<8x16xf32>
  // CHECK: func.return
  func.return %0, %1, %2 : !aten.tensor<8x16xi32>, !aten.tensor<4xi1>, !aten.tensor<8x16xf32>
}
