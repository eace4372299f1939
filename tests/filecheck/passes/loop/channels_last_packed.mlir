// RUN: inductile-opt %s -p 'loop-channels-last{packed-weights="f32"}' | filecheck %s
// RUN: inductile-opt %s -p loop-channels-last | filecheck %s --check-prefix=PLAIN

// Images of one dimension lie as a library wants them that arranges the weight once; ATen's call would not keep that.
// CHECK-LABEL: func.func @lines(
// CHECK: loop.generate
// CHECK: } : !aten.tensor<2x64x31xf32, strides = [1984, 1, 64]>
// CHECK-NEXT: %b = aten.convolution({{.*}} : !aten.tensor<2x64x31xf32, strides = [1984, 1, 64]>
// PLAIN-LABEL: func.func @lines(
// PLAIN-NOT: strides =
// PLAIN-LABEL: func.func @volume(
func.func @lines(%x: !aten.tensor<2x64x31xf32>, %w: !aten.tensor<64x64x3xf32> {frozen}) -> !aten.tensor<2x64x31xf32> {
  %a = loop.generate (i0 in 2, i1 in 64, i2 in 31) {
    %l = loop.load %x[i0, i1, i2]
    %n = arith.negf %l : f32
    loop.yield %n
  } : !aten.tensor<2x64x31xf32>
  %b = aten.convolution(%a, %w, none, stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 1) : !aten.tensor<2x64x31xf32>
  %c = loop.generate (i0 in 2, i1 in 64, i2 in 31) {
    %l = loop.load %b[i0, i1, i2]
    %n = arith.negf %l : f32
    loop.yield %n
  } : !aten.tensor<2x64x31xf32>
  func.return %c : !aten.tensor<2x64x31xf32>
}

// A volume is copied for it, since ATen would lay all windows side by side; what would meet in the cache stays.
// CHECK-LABEL: func.func @volume(
// CHECK: %{{.*}} = aten.convolution({{.*}} : !aten.tensor<1x8x6x6x6xf32, strides = [1728, 1, 288, 48, 8]>
// CHECK: aten.convolution({{.*}} : !aten.tensor<1x512x14xf32>
func.func @volume(%x: !aten.tensor<1x8x8x8x8xf32>, %w: !aten.tensor<8x8x3x3x3xf32> {frozen}, %y: !aten.tensor<1x512x31xf32, strides = [15872, 1, 512]>, %v: !aten.tensor<512x512x5xf32> {frozen}) -> (!aten.tensor<1x8x6x6x6xf32>, !aten.tensor<1x512x14xf32>) {
  %a = aten.convolution(%x, %w, none, stride = [1, 1, 1], padding = [0, 0, 0], dilation = [1, 1, 1], transposed = false, output_padding = [0, 0, 0], groups = 1) : !aten.tensor<1x8x6x6x6xf32>
  %b = aten.convolution(%y, %v, none, stride = [2], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1) : !aten.tensor<1x512x14xf32>
  func.return %a, %b : !aten.tensor<1x8x6x6x6xf32>, !aten.tensor<1x512x14xf32>
}
