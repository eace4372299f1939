// RUN: inductile-opt %s -p loop-channels-last | filecheck %s
// RUN: inductile-opt %s -p loop-channels-last,loop-channels-last | filecheck %s

// A weight that comes in another layout is copied once, in front of the first convolution that reads it. One that comes
// with channels last is not, nor is one of a single point, which lies alike in both.
func.func @argument(%x: !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">, %w: !aten.tensor<8x8x3x3xf32, device = "cuda:0">, %v: !aten.tensor<8x8x3x3xf32, strides = [72, 1, 24, 8], device = "cuda:0">, %p: !aten.tensor<8x8x1x1xf32, device = "cuda:0">) -> !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0"> {
  %a = aten.convolution(%x, %v, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
  %c = aten.convolution(%b, %p, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
  %d = aten.convolution(%c, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
  func.return %d : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
}

// Neither weight lies as channels last do, in whatever way it lies otherwise; a weight that others read as well is
// copied, too.
func.func @others(%x: !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, %w: !aten.tensor<8x8x3x3xbf16, strides = [72, 9, 1, 3], device = "cuda:0">, %m: !aten.tensor<8x8x3x3xf32, device = "cuda:0">) -> (!aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, !aten.tensor<8x8x3x3xbf16, device = "cuda:0">) {
  %u = loop.generate (i0 in 8, i1 in 8, i2 in 3, i3 in 3) {
    %v = loop.load %m[i0, i1, i2, i3]
    %h = scalar.cast %v : f32 to bf16
    loop.yield %h
  } : !aten.tensor<8x8x3x3xbf16, device = "cuda:0">
  %a = aten.convolution(%x, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">
  %b = aten.convolution(%a, %u, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">
  func.return %b, %u : !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, !aten.tensor<8x8x3x3xbf16, device = "cuda:0">
}

// The gradient of an image reads the weight, that of a weight does not.
func.func @gradients(%g: !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, %x: !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, %w: !aten.tensor<8x8x3x3xbf16, device = "cuda:0">, %v: !aten.tensor<8x8x3x3xbf16, device = "cuda:0">) -> (!aten.tensor<8x8x3x3xbf16, strides = [72, 1, 24, 8], device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">) {
  %0, %1, %2 = aten.convolution_backward(%g, %x, %w, bias_sizes = [0], stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1, output_mask = [false, true, false]) : none, !aten.tensor<8x8x3x3xbf16, strides = [72, 1, 24, 8], device = "cuda:0">, none
  %3, %4, %5 = aten.convolution_backward(%g, %x, %v, bias_sizes = [0], stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1, output_mask = [true, false, false]) : !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, none, none
  func.return %1, %3 : !aten.tensor<8x8x3x3xbf16, strides = [72, 1, 24, 8], device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">
}

// A weight that is written between two convolutions is copied for each.
func.func @written(%x: !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">, %w: !aten.tensor<8x8x3x3xf32, device = "cuda:0">, %n: !aten.tensor<8x8x3x3xf32, device = "cuda:0">) -> !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0"> {
  %a = aten.convolution(%x, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
  %c = aten.copy_(%w, %n, non_blocking = false) : !aten.tensor<8x8x3x3xf32, device = "cuda:0">
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
  func.return %b : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8], device = "cuda:0">
}

// On a CPU the library arranges weights as it likes.
func.func @cpu(%x: !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]>, %w: !aten.tensor<8x8x3x3xf32>) -> !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]> {
  %a = aten.convolution(%x, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]>
  func.return %a : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]>
}

// CHECK-LABEL: func.func @argument
// CHECK-NEXT: %a = aten.convolution(%x, %v
// CHECK-NEXT: %[[W:.*]] = loop.generate (i0 in 8, i1 in 8, i2 in 3, i3 in 3) {
// CHECK-NEXT: loop.load %w[i0, i1, i2, i3]
// CHECK-NEXT: loop.yield
// CHECK-NEXT: } : !aten.tensor<8x8x3x3xf32, strides = [72, 1, 24, 8], device = "cuda:0">
// CHECK-NEXT: %b = aten.convolution(%a, %[[W]]
// CHECK-NEXT: %c = aten.convolution(%b, %p
// CHECK-NEXT: %d = aten.convolution(%c, %[[W]]
// CHECK-LABEL: func.func @others
// CHECK: %u = loop.generate
// CHECK: } : !aten.tensor<8x8x3x3xbf16, device = "cuda:0">
// CHECK-NEXT: %[[W:.*]] = loop.generate
// CHECK-NEXT: loop.load %w[i0, i1, i2, i3]
// CHECK: strides = [72, 1, 24, 8]
// CHECK-NEXT: %a = aten.convolution(%x, %[[W]]
// CHECK-NEXT: %[[U:.*]] = loop.generate
// CHECK-NEXT: loop.load %u[i0, i1, i2, i3]
// CHECK: strides = [72, 1, 24, 8]
// CHECK-NEXT: %b = aten.convolution(%a, %[[U]]
// CHECK-NEXT: func.return %b, %u
// CHECK-LABEL: func.func @gradients
// CHECK-NEXT: aten.convolution_backward(%g, %x, %w
// CHECK-NEXT: %[[V:.*]] = loop.generate
// CHECK-NEXT: loop.load %v[i0, i1, i2, i3]
// CHECK: aten.convolution_backward(%g, %x, %[[V]]
// CHECK-LABEL: func.func @written
// CHECK-NEXT: %[[W:.*]] = loop.generate
// CHECK: %a = aten.convolution(%x, %[[W]]
// CHECK-NEXT: aten.copy_
// CHECK-NEXT: %[[N:.*]] = loop.generate
// CHECK: %b = aten.convolution(%a, %[[N]]
// CHECK-LABEL: func.func @cpu
// CHECK-NOT: loop.generate
