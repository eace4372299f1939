// RUN: inductile-opt %s --pipeline default --start-at graph-hoist-weights --stop-after loop-hoist-weights --target cuda:90 | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p lower-aten-to-loop,loop-channels-last,loop-hoist-weights --remarks 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: inductile-opt %s --target cuda:90 --pipeline default | filecheck %s --check-prefix=HOST

// The layout that a library wants of a weight is made where the weight is: once, of the argument, or of what is kept.
// CHECK-LABEL: func.func @convolutions(
// CHECK: %[[A:.*]], %[[B:.*]] = func.call @convolutions_weights(%v, %w) {kept} : ({{.*}}) -> (!aten.tensor<64x64x3x3xbf16, strides = [576, 1, 192, 64], device = "cuda:0">, !aten.tensor<64x64x3x3xbf16, strides = [576, 1, 192, 64], device = "cuda:0">)
// CHECK-NEXT: aten.convolution(%x, %[[A]]
// CHECK: aten.convolution(%{{.*}}, %[[B]]
// CHECK: func.func private @convolutions_weights(
// CHECK: math.exp
// CHECK: loop.generate
// CHECK: loop.generate
// CHECK: func.return
// ALONE: remark: [loop-hoist-weights] passed: loop.generate: the layout of a frozen weight is made once
// HOST-LABEL: host.func @convolutions(
// HOST: host.call kept
// HOST-LABEL: host.func @convolutions_weights(
func.func @convolutions(%x: !aten.tensor<2x64x14x14xbf16, strides = [12544, 1, 896, 64], device = "cuda:0">, %w: !aten.tensor<64x64x3x3xbf16, device = "cuda:0"> {frozen}, %v: !aten.tensor<64x64x3x3xbf16, device = "cuda:0"> {frozen}) -> !aten.tensor<2x64x14x14xbf16, strides = [12544, 1, 896, 64], device = "cuda:0"> {
  %e = aten.exp(%v) : !aten.tensor<64x64x3x3xbf16, device = "cuda:0">
  %0 = aten.convolution(%x, %w, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x64x14x14xbf16, strides = [12544, 1, 896, 64], device = "cuda:0">
  %1 = aten.relu(%0) : !aten.tensor<2x64x14x14xbf16, strides = [12544, 1, 896, 64], device = "cuda:0">
  %2 = aten.convolution(%1, %e, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x64x14x14xbf16, strides = [12544, 1, 896, 64], device = "cuda:0">
  func.return %2 : !aten.tensor<2x64x14x14xbf16, strides = [12544, 1, 896, 64], device = "cuda:0">
}
