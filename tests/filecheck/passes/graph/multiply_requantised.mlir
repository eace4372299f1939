// RUN: inductile-opt %s --target cpp -p graph-multiply-quantised | filecheck %s
// RUN: inductile-opt %s --target cpp -p 'graph-multiply-quantised{packed-products=false}' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:90 -p graph-multiply-quantised --remarks 2>&1 | filecheck %s --check-prefix=OFF
// OFF-NOT: inductile::

// What quantises the result again is a part of the library's call; fewer steps are a clamp of integers.
func.func @again(%x: !aten.tensor<4x64xui8>, %w: !aten.tensor<32x64xi8>, %s: !aten.tensor<32xf32>, %z: !aten.tensor<32xi64>, %b: !aten.tensor<32xf32>) -> !aten.tensor<4x32xui8> {
  %2 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<4x64xf32>
  %3 = aten.sub.Scalar(%2, other = 57) : !aten.tensor<4x64xf32>
  %4 = aten.mul.Scalar(%3, other = 0.5) : !aten.tensor<4x64xf32>
  %5 = aten.view(%z, size = [32, 1]) : !aten.tensor<32x1xi64>
  %6 = aten.sub.Tensor(%w, %5) : !aten.tensor<32x64xi64>
  %7 = aten.view(%s, size = [32, 1]) : !aten.tensor<32x1xf32>
  %8 = aten.mul.Tensor(%6, %7) : !aten.tensor<32x64xf32>
  %9 = aten.t(%8) : !aten.tensor<64x32xf32, strides = [1, 64]>
  %10 = aten.addmm(%b, %4, %9) : !aten.tensor<4x32xf32>
  %11 = aten.relu(%10) : !aten.tensor<4x32xf32>
  %12 = aten.mul.Scalar(%11, other = 4.0) : !aten.tensor<4x32xf32>
  %13 = aten.round(%12) : !aten.tensor<4x32xf32>
  %14 = aten.add.Scalar(%13, other = 3) : !aten.tensor<4x32xf32>
  %15 = aten.clamp(%14, min = 0, max = 127) : !aten.tensor<4x32xf32>
  %16 = aten._to_copy(%15, dtype = torch.uint8) : !aten.tensor<4x32xui8>
  func.return %16 : !aten.tensor<4x32xui8>
}
// CHECK-LABEL: @again
// CHECK: %[[Y:.*]] = aten.call pure "inductile::requantised_linear"(%x, 0.5, 57, %w, %s, %z, %b, "relu", 0.25, 3)
// CHECK-NEXT: aten.clamp(%[[Y]], min = 0, max = 127) : !aten.tensor<4x32xui8>
// CHECK-NEXT: func.return

// Maxima of steps are steps, where both quantisations are one.
func.func @maximum(%x: !aten.tensor<1x8x6x6xui8>) -> !aten.tensor<1x8x3x3xui8> {
  %0 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<1x8x6x6xf32>
  %1 = aten.sub.Scalar(%0, other = 5) : !aten.tensor<1x8x6x6xf32>
  %2 = aten.mul.Scalar(%1, other = 0.25) : !aten.tensor<1x8x6x6xf32>
  %3, %4 = aten.max_pool2d_with_indices(%2, kernel_size = [2, 2], stride = [2, 2]) : !aten.tensor<1x8x3x3xf32>, !aten.tensor<1x8x3x3xi64>
  %5 = aten.mul.Scalar(%3, other = 4.0) : !aten.tensor<1x8x3x3xf32>
  %6 = aten.round(%5) : !aten.tensor<1x8x3x3xf32>
  %7 = aten.add.Scalar(%6, other = 5) : !aten.tensor<1x8x3x3xf32>
  %8 = aten.clamp(%7, min = 0, max = 255) : !aten.tensor<1x8x3x3xf32>
  %9 = aten._to_copy(%8, dtype = torch.uint8) : !aten.tensor<1x8x3x3xui8>
  func.return %9 : !aten.tensor<1x8x3x3xui8>
}
// CHECK-LABEL: @maximum
// CHECK-NEXT: %[[M:.*]], %{{.*}} = aten.max_pool2d_with_indices(%x, kernel_size = [2, 2], stride = [2, 2]) : !aten.tensor<1x8x3x3xui8>
// CHECK-NEXT: func.return %[[M]]

// Numbers that are clamped from below alone stay floats.

// CHECK-LABEL: @from_below
// CHECK: aten.max_pool2d_with_indices(%{{.*}}, kernel_size = [2, 2], stride = [2, 2]) : !aten.tensor<1x8x3x3xf32>
func.func @from_below(%x: !aten.tensor<1x8x6x6xui8>) -> !aten.tensor<1x8x3x3xui8> {
  %0 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<1x8x6x6xf32>
  %1 = aten.sub.Scalar(%0, other = 5) : !aten.tensor<1x8x6x6xf32>
  %2 = aten.mul.Scalar(%1, other = 0.25) : !aten.tensor<1x8x6x6xf32>
  %3, %4 = aten.max_pool2d_with_indices(%2, kernel_size = [2, 2], stride = [2, 2]) : !aten.tensor<1x8x3x3xf32>, !aten.tensor<1x8x3x3xi64>
  %5 = aten.mul.Scalar(%3, other = 4.0) : !aten.tensor<1x8x3x3xf32>
  %6 = aten.round(%5) : !aten.tensor<1x8x3x3xf32>
  %7 = aten.add.Scalar(%6, other = 5) : !aten.tensor<1x8x3x3xf32>
  %8 = aten.clamp(%7, min = 0) : !aten.tensor<1x8x3x3xf32>
  %9 = aten._to_copy(%8, dtype = torch.uint8) : !aten.tensor<1x8x3x3xui8>
  func.return %9 : !aten.tensor<1x8x3x3xui8>
}

// An activation that several read, a mean and what is scaled by it, is the library's.
func.func @active(%x: !aten.tensor<1x8x6x6xui8, strides = [288, 1, 48, 8]>, %w: !aten.tensor<8x8x1x1xi8>, %s: !aten.tensor<8xf32>, %z: !aten.tensor<8xi64>, %b: !aten.tensor<8xf32>) -> (!aten.tensor<1x8xf32>, !aten.tensor<1x8x6x6xf32, strides = [288, 1, 48, 8]>) {
  %3 = aten.clamp(%x, min = 0, max = 127) : !aten.tensor<1x8x6x6xui8, strides = [288, 1, 48, 8]>
  %4 = aten._to_copy(%3, dtype = torch.float32) : !aten.tensor<1x8x6x6xf32, strides = [288, 1, 48, 8]>
  %5 = aten.sub.Scalar(%4, other = 5) : !aten.tensor<1x8x6x6xf32, strides = [288, 1, 48, 8]>
  %6 = aten.mul.Scalar(%5, other = 0.25) : !aten.tensor<1x8x6x6xf32, strides = [288, 1, 48, 8]>
  %7 = aten.view(%z, size = [8, 1, 1, 1]) : !aten.tensor<8x1x1x1xi64>
  %8 = aten.sub.Tensor(%w, %7) : !aten.tensor<8x8x1x1xi64>
  %9 = aten.view(%s, size = [8, 1, 1, 1]) : !aten.tensor<8x1x1x1xf32>
  %10 = aten.mul.Tensor(%8, %9) : !aten.tensor<8x8x1x1xf32>
  %11 = aten.convolution(%6, %10, %b, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x8x6x6xf32, strides = [288, 1, 48, 8]>
  %12 = aten.hardswish(%11) : !aten.tensor<1x8x6x6xf32, strides = [288, 1, 48, 8]>
  %13 = aten.mean.dim(%12, dim = [2, 3]) : !aten.tensor<1x8xf32>
  func.return %13, %12 : !aten.tensor<1x8xf32>, !aten.tensor<1x8x6x6xf32, strides = [288, 1, 48, 8]>
}
// CHECK-LABEL: @active
// CHECK: %[[X:.*]] = aten.clamp(%x
// CHECK-NEXT: %[[Y:.*]] = aten.call pure "inductile::activated_convolution"(%[[X]], 0.25, 5, %w, %s, %z, %b, [1, 1], [0, 0], [1, 1], 1, "hardswish")
// CHECK-NEXT: %[[M:.*]] = aten.mean.dim(%[[Y]]
// CHECK-NEXT: func.return %[[M]], %[[Y]]
