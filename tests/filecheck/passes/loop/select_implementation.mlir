// RUN: inductile-opt %s -p loop-select-implementation{products=onednn} | filecheck %s
// RUN: inductile-opt %s -p loop-select-implementation | filecheck %s --check-prefix=BLAS
// BLAS-NOT: implementation

// CHECK-LABEL: func.func @large
// CHECK: aten.mm(%x, %w) {implementation = "onednn"}
// CHECK: aten.addmm(%b, %x, %v) {implementation = "onednn"}
func.func @large(%x: !aten.tensor<8x768xf32>, %w: !aten.tensor<768x768xf32>, %v: !aten.tensor<768x768xf32, strides = [1, 768]>, %b: !aten.tensor<768xf32>) -> (!aten.tensor<8x768xf32>, !aten.tensor<8x768xf32>) {
  %0 = aten.mm(%x, %w) : !aten.tensor<8x768xf32>
  %1 = aten.addmm(%b, %x, %v) : !aten.tensor<8x768xf32>
  func.return %0, %1 : !aten.tensor<8x768xf32>, !aten.tensor<8x768xf32>
}

// Much work with a small matrix, for any number of rows that is at least two.
// CHECK-LABEL: func.func @dynamic
// CHECK: aten.mm(%x, %w) {implementation = "onednn"}
func.func @dynamic(%x: !aten.tensor<(s0)x256xf32>, %w: !aten.tensor<256x256xf32>) -> !aten.tensor<(s0)x256xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 512>]} {
  %0 = aten.mm(%x, %w) : !aten.tensor<(s0)x256xf32>
  func.return %0 : !aten.tensor<(s0)x256xf32>
}

// One row, a first matrix along columns, holes in the second, a scaled bias, too little work, another type.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: implementation
func.func @kept(%x: !aten.tensor<1x768xf32>, %t: !aten.tensor<8x768xf32, strides = [1, 8]>, %y: !aten.tensor<8x768xf32>, %w: !aten.tensor<768x768xf32>, %h: !aten.tensor<768x768xf32, strides = [800, 1]>, %b: !aten.tensor<768xf32>, %s: !aten.tensor<768x4xf32>, %z: !aten.tensor<8x768xbf16>, %u: !aten.tensor<768x768xbf16>) -> (!aten.tensor<1x768xf32>, !aten.tensor<8x768xf32>, !aten.tensor<8x768xf32>, !aten.tensor<8x768xf32>, !aten.tensor<8x4xf32>, !aten.tensor<8x768xbf16>) {
  %0 = aten.mm(%x, %w) : !aten.tensor<1x768xf32>
  %1 = aten.mm(%t, %w) : !aten.tensor<8x768xf32>
  %2 = aten.mm(%y, %h) : !aten.tensor<8x768xf32>
  %3 = aten.addmm(%b, %y, %w, beta = 2) : !aten.tensor<8x768xf32>
  %4 = aten.mm(%y, %s) : !aten.tensor<8x4xf32>
  %5 = aten.mm(%z, %u) : !aten.tensor<8x768xbf16>
  func.return %0, %1, %2, %3, %4, %5 : !aten.tensor<1x768xf32>, !aten.tensor<8x768xf32>, !aten.tensor<8x768xf32>, !aten.tensor<8x768xf32>, !aten.tensor<8x4xf32>, !aten.tensor<8x768xbf16>
}

// CHECK-LABEL: func.func @maybe_empty
// CHECK-NOT: implementation
func.func @maybe_empty(%x: !aten.tensor<(s0)x768xf32>, %w: !aten.tensor<768x768xf32>) -> !aten.tensor<(s0)x768xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 0, hint = 512>]} {
  %0 = aten.mm(%x, %w) : !aten.tensor<(s0)x768xf32>
  func.return %0 : !aten.tensor<(s0)x768xf32>
}

// On a GPU the bias goes to those who read the sum, if all of them are nests.
// CHECK-LABEL: func.func @gpu
// CHECK-NEXT: %[[P:.*]] = aten.mm(%x, %w) :
// CHECK-NEXT: loop.generate (i0 in 8, i1 in 768)
// CHECK-NEXT: %[[V:.*]] = loop.load %[[P]][i0, i1]
// CHECK-NEXT: %[[A:.*]] = loop.load %b[i1]
// CHECK-NEXT: arith.addf %[[V]], %[[A]] : f32
// CHECK: aten.addmm
// CHECK: aten.addmm
func.func @gpu(%x: !aten.tensor<8x768xf32, device = "cuda:0">, %w: !aten.tensor<768x768xf32, device = "cuda:0">, %b: !aten.tensor<768xf32, device = "cuda:0">, %z: !aten.tensor<8x768xf16, device = "cuda:0">, %u: !aten.tensor<768x768xf16, device = "cuda:0">, %a: !aten.tensor<768xf16, device = "cuda:0">) -> (!aten.tensor<8x768xf32, device = "cuda:0">, !aten.tensor<8x768xf32, device = "cuda:0">, !aten.tensor<8x768xf16, device = "cuda:0">) {
  %0 = aten.addmm(%b, %x, %w) : !aten.tensor<8x768xf32, device = "cuda:0">
  %1 = loop.generate (i0 in 8, i1 in 768) {
    %v = loop.load %0[i0, i1]
    %t = math.tanh %v : f32
    loop.yield %t
  } : !aten.tensor<8x768xf32, device = "cuda:0">
  %2 = aten.addmm(%b, %1, %w) : !aten.tensor<8x768xf32, device = "cuda:0">
  %3 = aten.addmm(%a, %z, %u) : !aten.tensor<8x768xf16, device = "cuda:0">
  %4 = loop.generate (i0 in 8, i1 in 768) {
    %v = loop.load %3[i0, i1]
    %t = math.tanh %v : f16
    loop.yield %t
  } : !aten.tensor<8x768xf16, device = "cuda:0">
  func.return %1, %2, %4 : !aten.tensor<8x768xf32, device = "cuda:0">, !aten.tensor<8x768xf32, device = "cuda:0">, !aten.tensor<8x768xf16, device = "cuda:0">
}

// A convolution's too, whatever the type. The second is returned.
// CHECK-LABEL: func.func @convolution
// CHECK-NEXT: %[[P:.*]] = aten.convolution(%x, %w, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1)
// CHECK-NEXT: loop.generate (i0 in 2, i1 in 16, i2 in 8, i3 in 8)
// CHECK-NEXT: %[[V:.*]] = loop.load %[[P]][i0, i1, i2, i3]
// CHECK-NEXT: %[[A:.*]] = loop.load %b[i1]
// CHECK-NEXT: arith.addf %[[V]], %[[A]] : f32
// CHECK: strides = [1024, 1, 128, 16]
// CHECK: aten.convolution(%x, %w, %b,
func.func @convolution(%x: !aten.tensor<2x8x8x8xf32, strides = [512, 1, 64, 8], device = "cuda:0">, %w: !aten.tensor<16x8x3x3xf32, device = "cuda:0">, %b: !aten.tensor<16xf32, device = "cuda:0">) -> (!aten.tensor<2x16x8x8xf32, device = "cuda:0">, !aten.tensor<2x16x8x8xf32, strides = [1024, 1, 128, 16], device = "cuda:0">) {
  %0 = aten.convolution(%x, %w, %b, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x16x8x8xf32, strides = [1024, 1, 128, 16], device = "cuda:0">
  %1 = loop.generate (i0 in 2, i1 in 16, i2 in 8, i3 in 8) {
    %v = loop.load %0[i0, i1, i2, i3]
    %t = arith.negf %v : f32
    loop.yield %t
  } : !aten.tensor<2x16x8x8xf32, device = "cuda:0">
  %2 = aten.convolution(%x, %w, %b, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x16x8x8xf32, strides = [1024, 1, 128, 16], device = "cuda:0">
  func.return %1, %2 : !aten.tensor<2x16x8x8xf32, device = "cuda:0">, !aten.tensor<2x16x8x8xf32, strides = [1024, 1, 128, 16], device = "cuda:0">
}

// An op without results.
// CHECK-LABEL: func.func @checked
// CHECK: aten._assert_async.msg
func.func @checked(%x: !aten.tensor<i1>) {
  %t = aten.eq.Tensor(%x, %x) : !aten.tensor<i1>
  aten._assert_async.msg(%t, assert_msg = "not")
  func.return
}
