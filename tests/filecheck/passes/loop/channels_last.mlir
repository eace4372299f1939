// RUN: inductile-opt %s -p loop-channels-last | filecheck %s

// The input is copied, what is between the convolutions is not, and the result is copied back.
func.func @chain(%x: !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, %w: !aten.tensor<8x8x1x1xbf16, device = "cuda:0">) -> !aten.tensor<2x8x6x5xbf16, device = "cuda:0"> {
  %a = aten.convolution(%x, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  %b = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %a[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  %c = aten.convolution(%b, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  func.return %c : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
}

// Nothing changes for doubles, and where input and result would both be copied.
func.func @kept(%x: !aten.tensor<2x8x6x5xf64, device = "cuda:0">, %w: !aten.tensor<8x8x1x1xf64, device = "cuda:0">, %y: !aten.tensor<2x8x6x5xf16, device = "cuda:0">, %u: !aten.tensor<8x8x1x1xf16, device = "cuda:0">) -> (!aten.tensor<2x8x6x5xf64, device = "cuda:0">, !aten.tensor<2x8x6x5xf16, device = "cuda:0">) {
  %a = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %l = loop.load %x[i0, i1, i2, i3]
    loop.yield %l
  } : !aten.tensor<2x8x6x5xf64, device = "cuda:0">
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf64, device = "cuda:0">
  %e = aten.convolution(%y, %u, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf16, device = "cuda:0">
  func.return %b, %e : !aten.tensor<2x8x6x5xf64, device = "cuda:0">, !aten.tensor<2x8x6x5xf16, device = "cuda:0">
}

// Groups, on a CPU; the result that is read and returned is copied once.
func.func @cpu(%x: !aten.tensor<2x8x6x5xf32>, %w: !aten.tensor<8x1x1x1xf32>) -> (!aten.tensor<2x8x6x5xf32>, !aten.tensor<2x8x6x5xf32>) {
  %a = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %l = loop.load %x[i0, i1, i2, i3]
    loop.yield %l
  } : !aten.tensor<2x8x6x5xf32>
  %d = aten.convolution(%a, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 8) : !aten.tensor<2x8x6x5xf32>
  %e = aten.convolution(%d, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 8) : !aten.tensor<2x8x6x5xf32>
  %f = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %l = loop.load %e[i0, i1, i2, i3]
    loop.yield %l
  } : !aten.tensor<2x8x6x5xf32>
  func.return %e, %f : !aten.tensor<2x8x6x5xf32>, !aten.tensor<2x8x6x5xf32>
}

// What is returned keeps its strides: both would be copied.
func.func @returned(%x: !aten.tensor<2x8x6x5xf32>, %w: !aten.tensor<8x8x1x1xf32>) -> (!aten.tensor<2x8x6x5xf32>, !aten.tensor<2x8x6x5xf32>) {
  %d = aten.convolution(%x, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32>
  %f = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %l = loop.load %d[i0, i1, i2, i3]
    loop.yield %l
  } : !aten.tensor<2x8x6x5xf32>
  func.return %d, %f : !aten.tensor<2x8x6x5xf32>, !aten.tensor<2x8x6x5xf32>
}

// What has the layout already is copied nowhere.
func.func @already(%x: !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]>, %w: !aten.tensor<8x8x1x1xf32>) -> !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]> {
  %d = aten.convolution(%x, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]>
  func.return %d : !aten.tensor<2x8x6x5xf32, strides = [240, 1, 40, 8]>
}

// On a CPU a contiguous weight is copied as well, and is more here than input and result; one with channels last is not.
func.func @weight(%x: !aten.tensor<2x8x6x5xf32>, %w: !aten.tensor<16x8x3x3xf32>, %v: !aten.tensor<16x8x3x3xf32, strides = [72, 1, 24, 8]>) -> (!aten.tensor<2x16x4x3xf32>, !aten.tensor<2x16x4x3xf32>) {
  %a = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %l = loop.load %x[i0, i1, i2, i3]
    loop.yield %l
  } : !aten.tensor<2x8x6x5xf32>
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x16x4x3xf32>
  %c = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %l = loop.load %x[i0, i1, i2, i3]
    loop.yield %l
  } : !aten.tensor<2x8x6x5xf32>
  %d = aten.convolution(%c, %v, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x16x4x3xf32>
  func.return %b, %d : !aten.tensor<2x16x4x3xf32>, !aten.tensor<2x16x4x3xf32>
}

// An image of three channels in float32 on a GPU: side by side its convolution would be rounded.
func.func @image(%x: !aten.tensor<2x3x6x5xf32, device = "cuda:0">, %w: !aten.tensor<8x3x1x1xf32, device = "cuda:0">) -> !aten.tensor<2x8x6x5xf32, device = "cuda:0"> {
  %a = aten.convolution(%x, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xf32, device = "cuda:0">
  %b = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %a[i0, i1, i2, i3]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<2x8x6x5xf32, device = "cuda:0">
  func.return %b : !aten.tensor<2x8x6x5xf32, device = "cuda:0">
}

// The second convolution alone would not pay for its weight and the copy of its result, but ATen follows what it reads.
func.func @follows(%x: !aten.tensor<1x8x8x8xf32>, %w: !aten.tensor<8x8x3x3xf32>) -> !aten.tensor<1x8x8x8xf32> {
  %a = loop.generate (i0 in 1, i1 in 8, i2 in 8, i3 in 8) {
    %v = loop.load %x[i0, i1, i2, i3]
    %n = math.tanh %v : f32
    loop.yield %n
  } : !aten.tensor<1x8x8x8xf32>
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x8x8x8xf32>
  %c = loop.generate (i0 in 1, i1 in 8, i2 in 8, i3 in 8) {
    %v = loop.load %b[i0, i1, i2, i3]
    %n = math.tanh %v : f32
    loop.yield %n
  } : !aten.tensor<1x8x8x8xf32>
  %d = aten.convolution(%c, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x8x8x8xf32>
  func.return %d : !aten.tensor<1x8x8x8xf32>
}

// Those whose input nobody else has turned pay for both, and read what they read.
func.func @stays(%x: !aten.tensor<1x8x8x8xf32>, %w: !aten.tensor<8x8x3x3xf32>) -> (!aten.tensor<1x8x8x8xf32>, !aten.tensor<1x8x8x8xf32>) {
  %a = loop.generate (i0 in 1, i1 in 8, i2 in 8, i3 in 8) {
    %v = loop.load %x[i0, i1, i2, i3]
    %n = math.tanh %v : f32
    loop.yield %n
  } : !aten.tensor<1x8x8x8xf32>
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x8x8x8xf32>
  %c = loop.generate (i0 in 1, i1 in 8, i2 in 8, i3 in 8) {
    %v = loop.load %a[i0, i1, i2, i3]
    %n = math.tanh %v : f32
    loop.yield %n
  } : !aten.tensor<1x8x8x8xf32>
  %d = aten.convolution(%c, %w, none, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x8x8x8xf32>
  func.return %b, %d : !aten.tensor<1x8x8x8xf32>, !aten.tensor<1x8x8x8xf32>
}

// CHECK-LABEL: func.func @chain
// CHECK: %[[C:.*]] = loop.generate
// CHECK: strides = [240, 1, 40, 8]
// CHECK: %a = aten.convolution(%[[C]], {{.*}} strides = [240, 1, 40, 8]
// CHECK: %b = loop.generate
// CHECK: strides = [240, 1, 40, 8]
// CHECK: %c = aten.convolution(%b, {{.*}} strides = [240, 1, 40, 8]
// CHECK: %[[R:.*]] = loop.generate
// CHECK-NOT: strides
// CHECK: func.return %[[R]]
// CHECK-LABEL: func.func @kept
// CHECK-NOT: strides
// CHECK: func.return
// CHECK-LABEL: func.func @cpu
// CHECK: %a = loop.generate
// CHECK: strides = [240, 1, 40, 8]
// CHECK: %d = aten.convolution{{.*}} strides = [240, 1, 40, 8]
// CHECK-NEXT: %e = aten.convolution{{.*}} strides = [240, 1, 40, 8]
// CHECK-LABEL: func.func @returned
// CHECK-NOT: strides
// CHECK-LABEL: func.func @already
// CHECK-NOT: loop.generate
// CHECK-LABEL: func.func @weight
// CHECK: %a = loop.generate
// CHECK-NOT: strides
// CHECK: %b = aten.convolution
// CHECK: %c = loop.generate
// CHECK: strides = [240, 1, 40, 8]
// CHECK: %d = aten.convolution(%c, {{.*}} strides = [192, 1, 48, 16]
// CHECK-LABEL: func.func @image
// CHECK-NOT: strides
// CHECK: func.return
// CHECK-LABEL: func.func @follows
// CHECK: %b = aten.convolution(%a, {{.*}} strides = [512, 1, 64, 8]
// CHECK: %d = aten.convolution(%c, {{.*}} strides = [512, 1, 64, 8]
// CHECK-NEXT: %[[B:.*]] = loop.generate
// CHECK-NOT: strides
// CHECK: func.return %[[B]]
// CHECK-LABEL: func.func @stays
// CHECK-NOT: strides
// CHECK: func.return
