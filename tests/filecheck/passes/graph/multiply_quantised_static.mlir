// RUN: inductile-opt %s --target cpp -p graph-multiply-quantised | filecheck %s
// RUN: inductile-opt %s --target cpp -p 'graph-multiply-quantised{integer-products=floats}' --remarks 2>&1 | filecheck %s --check-prefix=FLOATS
// RUN: inductile-opt %s --target cpp -p 'graph-multiply-quantised{packed-products=false}' | filecheck %s --check-prefix=OFF
// OFF-NOT: inductile::

// A static layer as PT2E writes it: activations of 7 bits are multiplied as integers on any processor.
func.func @seven_bits(%x: !aten.tensor<4x64xf32>, %w: !aten.tensor<32x64xi8>, %s: !aten.tensor<32xf32>, %z: !aten.tensor<32xi64>, %b: !aten.tensor<32xf32>) -> !aten.tensor<4x32xf32> {
  %0 = aten.clamp(%x, min = 0, max = 127) : !aten.tensor<4x64xf32>
  %1 = aten._to_copy(%0, dtype = torch.uint8) : !aten.tensor<4x64xui8>
  %2 = aten._to_copy(%1, dtype = torch.float32) : !aten.tensor<4x64xf32>
  %3 = aten.sub.Scalar(%2, other = 57) : !aten.tensor<4x64xf32>
  %4 = aten.mul.Scalar(%3, other = 0.5) : !aten.tensor<4x64xf32>
  %5 = aten.view(%z, size = [32, 1]) : !aten.tensor<32x1xi64>
  %6 = aten.sub.Tensor(%w, %5) : !aten.tensor<32x64xi64>
  %7 = aten.view(%s, size = [32, 1]) : !aten.tensor<32x1xf32>
  %8 = aten.mul.Tensor(%6, %7) : !aten.tensor<32x64xf32>
  %9 = aten.t(%8) : !aten.tensor<64x32xf32, strides = [1, 64]>
  %10 = aten.addmm(%b, %4, %9) : !aten.tensor<4x32xf32>
  func.return %10 : !aten.tensor<4x32xf32>
}
// CHECK-LABEL: @seven_bits
// CHECK: %[[X:.*]] = aten._to_copy(%{{.*}}, dtype = torch.uint8)
// CHECK-NEXT: aten.call pure "inductile::quantised_linear"(%[[X]], 0.5, 57, %w, %s, %z, %b)
// CHECK-NEXT: func.return
// FLOATS: passed: aten.addmm: 'quantised_addmm' replaces 9 ops

// Of 8 bits the library's sums may saturate; and so may those of what is clamped below 0 and made unsigned.
func.func @eight_bits(%x: !aten.tensor<4x64xui8>, %w: !aten.tensor<32x64xi8>, %s: !aten.tensor<32xf32>, %z: !aten.tensor<32xi64>) -> !aten.tensor<4x32xf32> {
  %2 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<4x64xf32>
  %3 = aten.sub.Scalar(%2, other = 57) : !aten.tensor<4x64xf32>
  %4 = aten.mul.Scalar(%3, other = 0.5) : !aten.tensor<4x64xf32>
  %5 = aten.view(%z, size = [32, 1]) : !aten.tensor<32x1xi64>
  %6 = aten.sub.Tensor(%w, %5) : !aten.tensor<32x64xi64>
  %7 = aten.view(%s, size = [32, 1]) : !aten.tensor<32x1xf32>
  %8 = aten.mul.Tensor(%6, %7) : !aten.tensor<32x64xf32>
  %9 = aten.t(%8) : !aten.tensor<64x32xf32, strides = [1, 64]>
  %10 = aten.mm(%4, %9) : !aten.tensor<4x32xf32>
  func.return %10 : !aten.tensor<4x32xf32>
}
// CHECK-LABEL: @eight_bits
// CHECK: aten.call pure "inductile::quantised_linear"(%x, 0.5, 57, %w, %s, %z, none)
// FLOATS: missed: aten.mm: matches 'quantised_mm', but numbers go up to 255: this processor has no instructions for them (VNNI)

func.func @wrapped(%x: !aten.tensor<4x64xf32>, %w: !aten.tensor<32x64xi8>, %s: !aten.tensor<32xf32>, %z: !aten.tensor<32xi64>) -> !aten.tensor<4x32xf32> {
  %0 = aten.clamp(%x, min = -128, max = 127) : !aten.tensor<4x64xf32>
  %1 = aten._to_copy(%0, dtype = torch.uint8) : !aten.tensor<4x64xui8>
  %2 = aten._to_copy(%1, dtype = torch.float32) : !aten.tensor<4x64xf32>
  %3 = aten.sub.Scalar(%2, other = 57) : !aten.tensor<4x64xf32>
  %4 = aten.mul.Scalar(%3, other = 0.5) : !aten.tensor<4x64xf32>
  %5 = aten.view(%z, size = [32, 1]) : !aten.tensor<32x1xi64>
  %6 = aten.sub.Tensor(%w, %5) : !aten.tensor<32x64xi64>
  %7 = aten.view(%s, size = [32, 1]) : !aten.tensor<32x1xf32>
  %8 = aten.mul.Tensor(%6, %7) : !aten.tensor<32x64xf32>
  %9 = aten.t(%8) : !aten.tensor<64x32xf32, strides = [1, 64]>
  %10 = aten.mm(%4, %9) : !aten.tensor<4x32xf32>
  func.return %10 : !aten.tensor<4x32xf32>
}
// CHECK-LABEL: @wrapped
// FLOATS: missed: aten.mm: matches 'quantised_mm', but numbers go up to 255

// What a recurrent layer gives does not lie as a matrix: such a linear layer is a batch of products by one weight.
func.func @batch(%x: !aten.tensor<4x8x64xui8, strides = [64, 256, 1]>, %w: !aten.tensor<32x64xi8>, %s: !aten.tensor<32xf32>, %z: !aten.tensor<32xi64>, %b: !aten.tensor<32xf32>) -> !aten.tensor<4x8x32xf32> {
  %0 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<4x8x64xf32, strides = [64, 256, 1]>
  %1 = aten.sub.Scalar(%0, other = 7) : !aten.tensor<4x8x64xf32, strides = [64, 256, 1]>
  %2 = aten.mul.Scalar(%1, other = 0.5) : !aten.tensor<4x8x64xf32, strides = [64, 256, 1]>
  %3 = aten.view(%z, size = [32, 1]) : !aten.tensor<32x1xi64>
  %4 = aten.sub.Tensor(%w, %3) : !aten.tensor<32x64xi64>
  %5 = aten.view(%s, size = [32, 1]) : !aten.tensor<32x1xf32>
  %6 = aten.mul.Tensor(%4, %5) : !aten.tensor<32x64xf32>
  %7 = aten.t(%6) : !aten.tensor<64x32xf32, strides = [1, 64]>
  %8 = aten.expand(%7, size = [4, 64, 32]) : !aten.tensor<4x64x32xf32, strides = [0, 1, 64]>
  %9 = aten.bmm(%2, %8) : !aten.tensor<4x8x32xf32>
  %10 = aten.add.Tensor(%9, %b) : !aten.tensor<4x8x32xf32>
  func.return %10 : !aten.tensor<4x8x32xf32>
}
// CHECK-LABEL: @batch
// CHECK-NEXT: %[[X:.*]] = aten.clone(%x, memory_format = torch.contiguous_format)
// CHECK-NEXT: "inductile::quantised_linear"(%[[X]], 0.5, 7, %w, %s, %z, %b)
