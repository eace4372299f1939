// RUN: inductile-opt %s --split-input-file -p graph-fold-affine,graph-dce --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s --split-input-file -p graph-fold-affine --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// A batch norm in inference is part of the weight and the bias of the convolution in front of it.
// CHECK-LABEL: func.func @norm(
// CHECK-DAG: %[[N:.*]] = aten.neg(%m)
// CHECK-DAG: %[[R:.*]] = aten.rsqrt
// CHECK-DAG: %[[S:.*]] = aten.mul.Tensor(%[[R]], %g)
// CHECK: %[[K:.*]] = aten.mul.Tensor(%w, %{{.*}}) : !aten.tensor<8x4x3x3xf32>
// CHECK: %[[C:.*]] = aten.convolution(%x, %[[K]], %{{.*}}, stride
// CHECK-NOT: batch_norm
// CHECK: aten.relu(%[[C]])
// REMARK: passed: aten.convolution: what is done to its channels is in its weight, by ops: 1
func.func @norm(%x: !aten.tensor<2x4x5x5xf32>, %w: !aten.tensor<8x4x3x3xf32> {frozen}, %g: !aten.tensor<8xf32> {frozen}, %b: !aten.tensor<8xf32> {frozen}, %m: !aten.tensor<8xf32> {frozen}, %v: !aten.tensor<8xf32> {frozen}) -> !aten.tensor<2x8x3x3xf32> {
  %a = aten.abs(%v) : !aten.tensor<8xf32>
  %c = aten.convolution(%x, %w, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<2x8x3x3xf32>
  %n, %s0, %s1 = aten._native_batch_norm_legit_no_training(%c, %g, %b, %m, %a, momentum = 0.1, eps = 1.0) : !aten.tensor<2x8x3x3xf32>, !aten.tensor<0xf32>, !aten.tensor<0xf32>
  %0 = aten.relu(%n) : !aten.tensor<2x8x3x3xf32>
  func.return %0 : !aten.tensor<2x8x3x3xf32>
}

// -----

// Numbers of columns behind a view that keeps them, written where they are computed late; another product reads these.
// CHECK-LABEL: func.func @columns(
// CHECK: %[[E:.*]] = aten.exp(%g)
// CHECK: %[[W:.*]] = aten.mul.Tensor(%w, %[[E]]) : !aten.tensor<6x8xf32, strides = [1, 6]>
// CHECK: %[[Y:.*]] = aten.addmm(%{{.*}}, %x, %[[W]])
// CHECK-NEXT: %[[V:.*]] = aten.view(%[[Y]], size = [2, 2, 8])
// CHECK-NEXT: %[[F:.*]] = aten.view(%[[V]], size = [4, 8])
// CHECK-NEXT: aten.mm(%[[F]], %u)
func.func @columns(%x: !aten.tensor<4x6xf32>, %w: !aten.tensor<6x8xf32, strides = [1, 6]> {frozen}, %g: !aten.tensor<8xf32> {frozen}, %b: !aten.tensor<1x8xf32> {frozen}, %u: !aten.tensor<8x4xf32>) -> !aten.tensor<4x4xf32> {
  %p = aten.mm(%x, %w) : !aten.tensor<4x8xf32>
  %v = aten.view(%p, size = [2, 2, 8]) : !aten.tensor<2x2x8xf32>
  %e = aten.exp(%g) : !aten.tensor<8xf32>
  %s = aten.mul.Tensor(%e, %v) : !aten.tensor<2x2x8xf32>
  %t = aten.sub.Tensor(%s, %b) : !aten.tensor<2x2x8xf32>
  %f = aten.view(%t, size = [4, 8]) : !aten.tensor<4x8xf32>
  %0 = aten.mm(%f, %u) : !aten.tensor<4x4xf32>
  func.return %0 : !aten.tensor<4x4xf32>
}

// -----

// What stays: a weight that is not frozen, a result that others read, float16, what a nest does anyway, no channel.
// CHECK-LABEL: func.func @stays(
// CHECK: %[[A:.*]] = aten.mm(%x, %u)
// CHECK: aten.mul.Tensor(%[[A]], %g)
// CHECK: %[[B:.*]] = aten.mm(%x, %w)
// CHECK: aten.mul.Tensor(%[[B]], %g)
// CHECK: %[[H:.*]] = aten.mm(%y, %h)
// CHECK: aten.mul.Tensor(%[[H]], %k)
// CHECK: %[[C:.*]] = aten.mm(%x, %w)
// CHECK: aten.mul.Tensor(%[[C]], %g)
// CHECK: %[[D:.*]] = aten.mm(%x, %w)
// CHECK: aten.mul.Tensor(%[[D]], %rows)
// REMARK: missed: aten.mul.Tensor: it is not folded into aten.mm: its weight is no frozen one
// REMARK: missed: aten.mul.Tensor: it is not folded into aten.mm: weights of f16 would lose digits
func.func @stays(%x: !aten.tensor<4x6xf32>, %y: !aten.tensor<4x6xf16>, %u: !aten.tensor<6x8xf32>, %w: !aten.tensor<6x8xf32> {frozen}, %h: !aten.tensor<6x8xf16> {frozen}, %g: !aten.tensor<8xf32> {frozen}, %k: !aten.tensor<8xf16> {frozen}, %rows: !aten.tensor<4x1xf32> {frozen}) -> (!aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>, !aten.tensor<4x8xf16>, !aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>) {
  %a = aten.mm(%x, %u) : !aten.tensor<4x8xf32>
  %0 = aten.mul.Tensor(%a, %g) : !aten.tensor<4x8xf32>
  %b = aten.mm(%x, %w) : !aten.tensor<4x8xf32>
  %1 = aten.mul.Tensor(%b, %g) : !aten.tensor<4x8xf32>
  %hh = aten.mm(%y, %h) : !aten.tensor<4x8xf16>
  %2 = aten.mul.Tensor(%hh, %k) : !aten.tensor<4x8xf16>
  %c = aten.mm(%x, %w) : !aten.tensor<4x8xf32>
  %3 = aten.mul.Tensor(%c, %g) : !aten.tensor<4x8xf32>
  %4 = aten.relu(%3) : !aten.tensor<4x8xf32>
  %d = aten.mm(%x, %w) : !aten.tensor<4x8xf32>
  %5 = aten.mul.Tensor(%d, %rows) : !aten.tensor<4x8xf32>
  func.return %0, %b, %1, %2, %4, %5 : !aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>, !aten.tensor<4x8xf16>, !aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>
}

// -----

// A weight that is dequantised in each call would be multiplied there as a whole; an addend goes into the bias.
// CHECK-LABEL: func.func @dequantised(
// CHECK: %[[W:.*]] = aten._to_copy(%q
// CHECK: %[[A:.*]] = aten.mm(%x, %[[W]])
// CHECK-NEXT: %[[S:.*]] = aten.mul.Tensor(%[[A]], %g)
// CHECK: aten.addmm(%b, %x, %[[W]])
// REMARK: missed: aten.mul.Tensor: it is not folded into aten.mm: its weight is made in each call, for 1.8 MiB would be kept of 468.8 KiB of weights
func.func @dequantised(%x: !aten.tensor<4x600xf32>, %q: !aten.tensor<600x800xi8> {frozen}, %g: !aten.tensor<800xf32> {frozen}, %b: !aten.tensor<800xf32> {frozen}) -> (!aten.tensor<4x800xf32>, !aten.tensor<4x800xf32>) {
  %w = aten._to_copy(%q, dtype = torch.float32) : !aten.tensor<600x800xf32>
  %a = aten.mm(%x, %w) : !aten.tensor<4x800xf32>
  %0 = aten.mul.Tensor(%a, %g) : !aten.tensor<4x800xf32>
  %c = aten.mm(%x, %w) : !aten.tensor<4x800xf32>
  %1 = aten.add.Tensor(%c, %b, alpha = 1) : !aten.tensor<4x800xf32>
  func.return %0, %1 : !aten.tensor<4x800xf32>, !aten.tensor<4x800xf32>
}
