// RUN: inductile-opt %s -p loop-expand-convolutions,loop-dce --split-input-file --verify-each | filecheck %s
// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p loop-expand-convolutions,loop-dce

// Each channel by itself: masked where the window leaves the row.

func.func @depthwise(%x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x1x3xf32>, %b: !aten.tensor<8xf32>) -> !aten.tensor<2x8x32xf32> {
  %y = aten.convolution(%x, %w, %b, stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8) : !aten.tensor<2x8x32xf32>
  func.return %y : !aten.tensor<2x8x32xf32>
}

// CHECK-LABEL: func.func @depthwise
// CHECK-NEXT:    loop.generate (i0 in 2, i1 in 8, i2 in 32) {
// CHECK-NEXT:      %[[SUM:.*]] = loop.reduce sum (r0 in 3) {
// CHECK:             arith.cmpi sge
// CHECK:             arith.cmpi slt
// CHECK:             %[[X:.*]] = loop.load %x[i0, i1, i2 + r0 - 1] if %{{.*}} else
// CHECK-NEXT:        %[[W:.*]] = loop.load %w[i1, 0, r0]
// CHECK-NEXT:        arith.mulf %[[X]], %[[W]] : f32
// CHECK:           loop.load %b[i1]
// CHECK-NOT:     aten.convolution

// -----

// Two channels of a group, 16 bits: summed in float32. No padding, so no mask.

func.func @grouped(%x: !aten.tensor<2x8x34xbf16>, %w: !aten.tensor<8x2x3xbf16>) -> !aten.tensor<2x8x32xbf16> {
  %y = aten.convolution(%x, %w, none, stride = [1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 4) : !aten.tensor<2x8x32xbf16>
  func.return %y : !aten.tensor<2x8x32xbf16>
}

// CHECK-LABEL: func.func @grouped
// CHECK:           loop.reduce sum (r0 in 2, r1 in 3) {
// CHECK-NOT:         if %
// CHECK:             loop.load %x[i0, 2*(i1 floordiv 2) + r0, i2 + r1]
// CHECK:             loop.load %w[i1, r0, r1]
// CHECK:             arith.mulf %{{.*}} : f32
// CHECK:           scalar.narrow %{{.*}} : f32 to bf16

// -----

// The gradient of the input is a nest, those of weight and bias stay a call.

func.func @backward(%g: !aten.tensor<2x8x32xf32>, %x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x1x3xf32>) -> (!aten.tensor<2x8x32xf32>, !aten.tensor<8x1x3xf32>, !aten.tensor<8xf32>) {
  %0, %1, %2 = aten.convolution_backward(%g, %x, %w, bias_sizes = [8], stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8, output_mask = [true, true, true]) : !aten.tensor<2x8x32xf32>, !aten.tensor<8x1x3xf32>, !aten.tensor<8xf32>
  func.return %0, %1, %2 : !aten.tensor<2x8x32xf32>, !aten.tensor<8x1x3xf32>, !aten.tensor<8xf32>
}

// CHECK-LABEL: func.func @backward
// CHECK:           loop.load %g[i0, i1, i2 - r0 + 1] if
// CHECK:         aten.convolution_backward({{.*}}output_mask = [false, true, true]) : none,

// -----

// Nobody wants the gradient of the weight: no call is left.

func.func @input_alone(%g: !aten.tensor<2x8x32xf32>, %x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x1x3xf32>) -> !aten.tensor<2x8x32xf32> {
  %0, %1, %2 = aten.convolution_backward(%g, %x, %w, bias_sizes = none, stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8, output_mask = [true, false, false]) : !aten.tensor<2x8x32xf32>, none, none
  func.return %0 : !aten.tensor<2x8x32xf32>
}

// CHECK-LABEL: func.func @input_alone
// CHECK-NOT:     aten.convolution_backward

// -----

// Left to ATen: one group, many channels of a group, a long step, rows that do not lie along memory, a GPU.

func.func @dense(%x: !aten.tensor<2x8x32xf32>, %w: !aten.tensor<8x8x3xf32>) -> !aten.tensor<2x8x32xf32> {
  %y = aten.convolution(%x, %w, none, stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 1) : !aten.tensor<2x8x32xf32>
  func.return %y : !aten.tensor<2x8x32xf32>
}

// CHECK-LABEL: func.func @dense
// CHECK:         aten.convolution

// -----

func.func @many_channels(%x: !aten.tensor<2x16x32xf32>, %w: !aten.tensor<16x8x3xf32>) -> !aten.tensor<2x16x32xf32> {
  %y = aten.convolution(%x, %w, none, stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 2) : !aten.tensor<2x16x32xf32>
  func.return %y : !aten.tensor<2x16x32xf32>
}

// CHECK-LABEL: func.func @many_channels
// CHECK:         aten.convolution

// -----

func.func @long_step(%x: !aten.tensor<2x8x96xf32>, %w: !aten.tensor<8x1x3xf32>) -> !aten.tensor<2x8x32xf32> {
  %y = aten.convolution(%x, %w, none, stride = [3], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8) : !aten.tensor<2x8x32xf32>
  func.return %y : !aten.tensor<2x8x32xf32>
}

// CHECK-LABEL: func.func @long_step
// CHECK:         aten.convolution

// -----

func.func @columns(%x: !aten.tensor<2x8x32xf32, strides = [256, 1, 8]>, %w: !aten.tensor<8x1x3xf32>) -> !aten.tensor<2x8x32xf32, strides = [256, 1, 8]> {
  %y = aten.convolution(%x, %w, none, stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8) : !aten.tensor<2x8x32xf32, strides = [256, 1, 8]>
  func.return %y : !aten.tensor<2x8x32xf32, strides = [256, 1, 8]>
}

// CHECK-LABEL: func.func @columns
// CHECK:         aten.convolution

// -----

func.func @on_gpu(%x: !aten.tensor<2x8x32xf32, device = "cuda:0">, %w: !aten.tensor<8x1x3xf32, device = "cuda:0">) -> !aten.tensor<2x8x32xf32, device = "cuda:0"> {
  %y = aten.convolution(%x, %w, none, stride = [1], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 8) : !aten.tensor<2x8x32xf32, device = "cuda:0">
  func.return %y : !aten.tensor<2x8x32xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @on_gpu
// CHECK:         aten.convolution

// -----

// An image by itself; and one whose layout another convolution may choose.

func.func @image(%x: !aten.tensor<2x8x32x32xf32>, %w: !aten.tensor<8x1x3x3xf32>) -> !aten.tensor<2x8x32x32xf32> {
  %y = aten.convolution(%x, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 8) : !aten.tensor<2x8x32x32xf32>
  func.return %y : !aten.tensor<2x8x32x32xf32>
}

// CHECK-LABEL: func.func @image
// CHECK:         loop.reduce sum (r0 in 3, r1 in 3) {
// CHECK:           loop.load %x[i0, i1, i2 + r0 - 1, i3 + r1 - 1] if
// CHECK-NOT:     aten.convolution

// -----

func.func @beside(%x: !aten.tensor<2x8x32x32xf32>, %w: !aten.tensor<8x1x3x3xf32>, %u: !aten.tensor<8x8x1x1xf32>) -> !aten.tensor<2x8x32x32xf32> {
  %y = aten.convolution(%x, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 8) : !aten.tensor<2x8x32x32xf32>
  %z = aten.convolution(%y, %u, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x32x32xf32>
  func.return %z : !aten.tensor<2x8x32x32xf32>
}

// CHECK-LABEL: func.func @beside
// CHECK:         aten.convolution
// CHECK:         aten.convolution
