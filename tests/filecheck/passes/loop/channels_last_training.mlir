// RUN: inductile-opt %s -p loop-channels-last | filecheck %s
// RUN: inductile-opt %s -p loop-channels-last,loop-channels-last | filecheck %s
// RUN: inductile-opt %s -p "loop-channels-last{training_on_cpu=true}" | filecheck %s --check-prefix=CPU

// What backward alone will see is not copied, and the type of the function says how it lies. A weight that a nest makes
// is written as the convolution reads it.
func.func @forward(%x: !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, %w: !aten.tensor<16x8x3x3xf32, device = "cuda:0">) -> (!aten.tensor<2x16x4x3xbf16, device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, device = "cuda:0"> {any_strides}, !aten.tensor<16x8x3x3xbf16, device = "cuda:0"> {any_strides}, !aten.tensor<2x16x4x3xbf16, device = "cuda:0"> {any_strides}) {
  %a = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %x[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  %u = loop.generate (i0 in 16, i1 in 8, i2 in 3, i3 in 3) {
    %v = loop.load %w[i0, i1, i2, i3]
    %m = scalar.cast %v : f32 to bf16
    loop.yield %m
  } : !aten.tensor<16x8x3x3xbf16, device = "cuda:0">
  %b = aten.convolution(%a, %u, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
  %c = loop.generate (i0 in 2, i1 in 16, i2 in 4, i3 in 3) {
    %v = loop.load %b[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
  func.return %c, %a, %u, %b : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, !aten.tensor<16x8x3x3xbf16, device = "cuda:0">, !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
}

// What is returned to others as well is copied once, and backward gets the copy.
func.func @both(%x: !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, %w: !aten.tensor<16x8x3x3xbf16, device = "cuda:0">) -> (!aten.tensor<2x16x4x3xbf16, device = "cuda:0">, !aten.tensor<2x16x4x3xbf16, device = "cuda:0"> {any_strides}) {
  %a = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %x[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
  func.return %b, %b : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">, !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
}

// Gradients between convolutions follow, a copy of an argument that has channels last already is passed by; what is
// returned has its strides, the weight's gradient too.
func.func @backward(%g: !aten.tensor<2x16x4x3xbf16, device = "cuda:0">, %saved: !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, %w: !aten.tensor<16x8x3x3xbf16, strides = [72, 1, 24, 8], device = "cuda:0">) -> (!aten.tensor<16x8x3x3xf32, device = "cuda:0">, !aten.tensor<16x8x3x3xbf16, device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, device = "cuda:0">) {
  %h = loop.generate (i0 in 2, i1 in 16, i2 in 4, i3 in 3) {
    %v = loop.load %g[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
  %s = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %saved[i0, i1, i2, i3]
    loop.yield %v
  } : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  %u = loop.generate (i0 in 16, i1 in 8, i2 in 3, i3 in 3) {
    %v = loop.load %w[i0, i1, i2, i3]
    loop.yield %v
  } : !aten.tensor<16x8x3x3xbf16, device = "cuda:0">
  %0, %1, %2 = aten.convolution_backward(%h, %s, %u, bias_sizes = [0], stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1, output_mask = [true, true, false]) : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, !aten.tensor<16x8x3x3xbf16, device = "cuda:0">, none
  %f = loop.generate (i0 in 16, i1 in 8, i2 in 3, i3 in 3) {
    %v = loop.load %1[i0, i1, i2, i3]
    %m = scalar.cast %v : bf16 to f32
    loop.yield %m
  } : !aten.tensor<16x8x3x3xf32, device = "cuda:0">
  %k = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %0[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  func.return %f, %1, %k : !aten.tensor<16x8x3x3xf32, device = "cuda:0">, !aten.tensor<16x8x3x3xbf16, device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
}

// A weight of one point lies alike with channels last; only its strides are others.
func.func @point(%g: !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, %saved: !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, %w: !aten.tensor<8x8x1x1xbf16, device = "cuda:0">) -> !aten.tensor<8x8x1x1xbf16, device = "cuda:0"> {
  %h = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %g[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  %0, %1, %2 = aten.convolution_backward(%h, %saved, %w, bias_sizes = [0], stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1, output_mask = [false, true, false]) : none, !aten.tensor<8x8x1x1xbf16, device = "cuda:0">, none
  func.return %1 : !aten.tensor<8x8x1x1xbf16, device = "cuda:0">
}

// Arguments and what is returned keep their strides: all three would be copied.
func.func @kept(%g: !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, %x: !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, %w: !aten.tensor<8x8x1x1xbf16, device = "cuda:0">) -> !aten.tensor<2x8x6x5xbf16, device = "cuda:0"> {
  %0, %1, %2 = aten.convolution_backward(%g, %x, %w, bias_sizes = [0], stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1, output_mask = [true, false, false]) : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, none, none
  func.return %0 : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
}

// What is scattered follows what it is scattered from, and a value that is computed from it follows with it.
func.func @pool(%g: !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, %saved: !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, %w: !aten.tensor<8x8x1x1xbf16, device = "cuda:0">, %at: !aten.tensor<2x8x6x5xi64, strides = [240, 1, 40, 8], device = "cuda:0">) -> !aten.tensor<8xbf16, device = "cuda:0"> {
  %h = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %g[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
  %0, %1, %2 = aten.convolution_backward(%h, %saved, %w, bias_sizes = [0], stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1, output_mask = [true, false, false]) : !aten.tensor<2x8x6x5xbf16, device = "cuda:0">, none, none
  %z = loop.generate (i0 in 2, i1 in 8, i2 in 12, i3 in 10) {
    %m = arith.constant 0.0 : bf16
    loop.yield %m
  } : !aten.tensor<2x8x12x10xbf16, device = "cuda:0">
  %p = loop.scatter add (i0 in 2, i1 in 8, i2 in 6, i3 in 5) into %z[i0, i1, d0, i3] {
    %v = loop.load %0[i0, i1, i2, i3]
    %i = loop.load %at[i0, i1, i2, i3]
    loop.yield %v, %i
  } : !aten.tensor<2x8x12x10xbf16, device = "cuda:0">
  %q = loop.generate (i0 in 2, i1 in 8, i2 in 12, i3 in 10) {
    %v = loop.load %p[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x12x10xbf16, device = "cuda:0">
  %r = loop.generate (i0 in 8) {
    %s = loop.reduce sum (r0 in 2, r1 in 12, r2 in 10) {
      %v = loop.load %q[r0, i0, r1, r2]
      loop.yield %v
    }
    loop.yield %s
  } : !aten.tensor<8xbf16, device = "cuda:0">
  func.return %r : !aten.tensor<8xbf16, device = "cuda:0">
}

// On a CPU what backward will see stays as it is.
func.func @cpu(%x: !aten.tensor<2x8x6x5xbf16>, %w: !aten.tensor<8x8x1x1xbf16>) -> (!aten.tensor<2x8x6x5xbf16>, !aten.tensor<2x8x6x5xbf16> {any_strides}) {
  %a = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %x[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16>
  %b = aten.convolution(%a, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xbf16>
  %c = loop.generate (i0 in 2, i1 in 8, i2 in 6, i3 in 5) {
    %v = loop.load %b[i0, i1, i2, i3]
    %n = arith.negf %v : bf16
    loop.yield %n
  } : !aten.tensor<2x8x6x5xbf16>
  %d = aten.convolution(%c, %w, none, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x6x5xbf16>
  func.return %d, %c : !aten.tensor<2x8x6x5xbf16>, !aten.tensor<2x8x6x5xbf16>
}

// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (!aten.tensor<2x16x4x3xbf16, device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0"> {any_strides}, !aten.tensor<16x8x3x3xbf16, strides = [72, 1, 24, 8], device = "cuda:0"> {any_strides}, !aten.tensor<2x16x4x3xbf16, strides = [192, 1, 48, 16], device = "cuda:0"> {any_strides})
// CHECK: %u = loop.generate
// CHECK: !aten.tensor<16x8x3x3xbf16, strides = [72, 1, 24, 8], device = "cuda:0">
// CHECK-NEXT: %b = aten.convolution(%a, %u, {{.*}} : !aten.tensor<2x16x4x3xbf16, strides = [192, 1, 48, 16], device = "cuda:0">
// CHECK-NEXT: %c = loop.generate
// CHECK: : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
// CHECK-NEXT: func.return %c, %a, %u, %b
// CHECK-LABEL: func.func @both
// CHECK: %b = aten.convolution{{.*}} : !aten.tensor<2x16x4x3xbf16, strides = [192, 1, 48, 16], device = "cuda:0">
// CHECK-NEXT: %[[C:.*]] = loop.generate
// CHECK: : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
// CHECK-NEXT: func.return %[[C]], %[[C]] : !aten.tensor<2x16x4x3xbf16, device = "cuda:0">, !aten.tensor<2x16x4x3xbf16, device = "cuda:0">
// CHECK-LABEL: func.func @backward
// CHECK: %h = loop.generate
// CHECK: : !aten.tensor<2x16x4x3xbf16, strides = [192, 1, 48, 16], device = "cuda:0">
// CHECK: %0, %1, %2 = aten.convolution_backward(%h, %saved, %w, {{.*}} : !aten.tensor<2x8x6x5xbf16, strides = [240, 1, 40, 8], device = "cuda:0">, !aten.tensor<16x8x3x3xbf16, strides = [72, 1, 24, 8], device = "cuda:0">, none
// CHECK-NEXT: %[[G:.*]] = loop.generate
// CHECK: : !aten.tensor<16x8x3x3xbf16, device = "cuda:0">
// CHECK-NEXT: %f = loop.generate
// CHECK-NEXT: loop.load %1[i0, i1, i2, i3]
// CHECK: func.return %f, %[[G]], %k : !aten.tensor<16x8x3x3xf32, device = "cuda:0">, !aten.tensor<16x8x3x3xbf16, device = "cuda:0">, !aten.tensor<2x8x6x5xbf16, device = "cuda:0">
// CHECK-LABEL: func.func @point
// CHECK: !aten.tensor<8x8x1x1xbf16, strides = [8, 1, 8, 8], device = "cuda:0">, none
// CHECK-NEXT: %[[V:.*]] = loop.view %{{.*}}[i0, i1, 0, 0] (i0 in 8, i1 in 8, i2 in 1, i3 in 1) : !aten.tensor<8x8x1x1xbf16, device = "cuda:0">
// CHECK-NEXT: func.return %[[V]]
// CHECK-LABEL: func.func @kept
// CHECK-NOT: strides
// CHECK: func.return
// CHECK-LABEL: func.func @pool
// CHECK: %z = loop.generate
// CHECK: strides = [960, 1, 80, 8]
// CHECK-NEXT: %p = loop.scatter
// CHECK: strides = [960, 1, 80, 8]
// CHECK-NEXT: %q = loop.generate
// CHECK: strides = [960, 1, 80, 8]
// CHECK-LABEL: func.func @cpu
// CHECK-SAME: -> (!aten.tensor<2x8x6x5xbf16>, !aten.tensor<2x8x6x5xbf16> {any_strides})
// CPU-LABEL: func.func @cpu
// CPU-SAME: {{.*}}strides = [240, 1, 40, 8]> {any_strides})
