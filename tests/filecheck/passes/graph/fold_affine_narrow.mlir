// RUN: inductile-opt %s -p graph-fold-affine,graph-dce | filecheck %s

// A transposed convolution has its channels in dimension 1 of the weight; bfloat16 is scaled in float32.
// CHECK-LABEL: func.func @transposed(
// CHECK: aten.view(%{{.*}}, size = [8, 1, 1])
// CHECK: aten._to_copy(%w, dtype = torch.float32)
// CHECK: %[[K:.*]] = aten._to_copy(%{{.*}}, dtype = torch.bfloat16) : !aten.tensor<4x8x3x3xbf16>
// CHECK: %[[B:.*]] = aten._to_copy(%{{.*}}, dtype = torch.bfloat16) : !aten.tensor<8xbf16>
// CHECK: %[[C:.*]] = aten.convolution(%x, %[[K]], %[[B]]
// CHECK-NEXT: func.return %[[C]]
func.func @transposed(%x: !aten.tensor<2x4x5x5xbf16>, %w: !aten.tensor<4x8x3x3xbf16> {frozen}, %h: !aten.tensor<8xbf16> {frozen}, %g: !aten.tensor<8x1x1xbf16> {frozen}) -> !aten.tensor<2x8x7x7xbf16> {
  %c = aten.convolution(%x, %w, %h, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = true, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x7x7xbf16>
  %0 = aten.div.Tensor(%c, %g) : !aten.tensor<2x8x7x7xbf16>
  func.return %0 : !aten.tensor<2x8x7x7xbf16>
}
