// RUN: inductile-opt %s -p graph-narrow-indices | filecheck %s
// RUN: inductile-opt %s -p graph-narrow-indices,graph-partition | filecheck %s --check-prefix=SAVED
// RUN: inductile-opt %s -p graph-narrow-indices --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// Places in 64 elements fit into 16 bits; backward alone reads them, and what is saved is narrow.
func.func @pool(%x: !aten.tensor<1x8x8x8xbf16>, %t: !aten.tensor<1x8x4x4xbf16> {tangent}) -> (!aten.tensor<1x8x4x4xbf16>, !aten.tensor<1x8x8x8xbf16>) attributes {forward_results = 1 : i64} {
  %0, %1 = aten.max_pool2d_with_indices(%x, kernel_size = [2, 2], stride = [2, 2]) : !aten.tensor<1x8x4x4xbf16>, !aten.tensor<1x8x4x4xi64>
  %2 = aten.max_pool2d_with_indices_backward(%t, %x, %1, kernel_size = [2, 2], stride = [2, 2], padding = [0, 0], dilation = [1, 1], ceil_mode = false) : !aten.tensor<1x8x8x8xbf16>
  func.return %0, %2 : !aten.tensor<1x8x4x4xbf16>, !aten.tensor<1x8x8x8xbf16>
}
// CHECK-LABEL: @pool
// CHECK: %{{.*}}, %[[I:.*]] = aten.max_pool2d_with_indices(
// CHECK-NEXT: %[[N:.*]] = aten._to_copy(%[[I]], dtype = torch.int16) : !aten.tensor<1x8x4x4xi16>
// CHECK-NEXT: %[[W:.*]] = aten._to_copy(%[[N]], dtype = torch.int64) : !aten.tensor<1x8x4x4xi64>
// CHECK-NEXT: aten.max_pool2d_with_indices_backward(%t, %x, %[[W]]
// SAVED-LABEL: @pool
// SAVED: aten._to_copy({{.*}}, dtype = torch.int16) {partition = "forward", saved = array<i64: 0>}
// SAVED: aten._to_copy({{.*}}, dtype = torch.int64) {partition = "{{recompute|backward}}"}
// REMARK: remark: [graph-narrow-indices] passed: aten.max_pool2d_with_indices: backward reads places from fewer bits bits=16

// Through a view that backward alone reads; a long row takes 32 bits.
func.func @row(%x: !aten.tensor<4x50000xf32>, %t: !aten.tensor<4xf32> {tangent}) -> (!aten.tensor<4xf32>, !aten.tensor<4x50000xf32>) attributes {forward_results = 1 : i64} {
  %0, %1 = aten.max.dim(%x, dim = 1) : !aten.tensor<4xf32>, !aten.tensor<4xi64>
  %2 = aten.unsqueeze(%1, dim = 1) : !aten.tensor<4x1xi64>
  %3 = aten.unsqueeze(%t, dim = 1) : !aten.tensor<4x1xf32>
  %4 = aten.full(size = [4, 50000], fill_value = 0.0, dtype = torch.float32, device = "cpu") : !aten.tensor<4x50000xf32>
  %5 = aten.scatter.src(%4, %2, %3, dim = 1) : !aten.tensor<4x50000xf32>
  func.return %0, %5 : !aten.tensor<4xf32>, !aten.tensor<4x50000xf32>
}
// CHECK-LABEL: @row
// CHECK: aten._to_copy({{.*}}, dtype = torch.int32) : !aten.tensor<4xi32>
// CHECK-NEXT: %[[W:.*]] = aten._to_copy({{.*}}, dtype = torch.int64) : !aten.tensor<4xi64>
// CHECK-NEXT: aten.unsqueeze(%[[W]]

// Stays: what is returned, and a size of which no bound is known.
func.func @stays(%x: !aten.tensor<4x50xf32>, %y: !aten.tensor<4x(s0)xf32>, %t: !aten.tensor<4x1xf32> {tangent}) -> (!aten.tensor<4x1xf32>, !aten.tensor<4x1xi64>, !aten.tensor<4x1xf32>, !aten.tensor<4x50xf32>, !aten.tensor<4x(s0)xf32>) attributes {forward_results = 3 : i64, symbols = [#sym.symbol<s0, arg = 1, dim = 1, min = 2>]} {
  %0, %1 = aten.topk(%x, k = 1) : !aten.tensor<4x1xf32>, !aten.tensor<4x1xi64>
  %2, %3 = aten.topk(%y, k = 1) : !aten.tensor<4x1xf32>, !aten.tensor<4x1xi64>
  %4 = aten.mul.Scalar(%x, other = 0.0) : !aten.tensor<4x50xf32>
  %5 = aten.scatter.src(%4, %1, %t, dim = 1) : !aten.tensor<4x50xf32>
  %6 = aten.mul.Scalar(%y, other = 0.0) : !aten.tensor<4x(s0)xf32>
  %7 = aten.scatter.src(%6, %3, %t, dim = 1) : !aten.tensor<4x(s0)xf32>
  func.return %0, %1, %2, %5, %7 : !aten.tensor<4x1xf32>, !aten.tensor<4x1xi64>, !aten.tensor<4x1xf32>, !aten.tensor<4x50xf32>, !aten.tensor<4x(s0)xf32>
}
// CHECK-LABEL: @stays
// CHECK-NOT: _to_copy
// REMARK: missed: aten.topk: the forward graph returns its places: they are in memory
// REMARK: missed: aten.topk: its places need 64 bits

// Values are no places, whatever their type.
func.func @values(%i: !aten.tensor<8xi64>, %t: !aten.tensor<8xf32> {tangent}) -> (!aten.tensor<8xi64>, !aten.tensor<8xf32>) attributes {forward_results = 1 : i64} {
  %0, %1 = aten.sort(%i) : !aten.tensor<8xi64>, !aten.tensor<8xi64>
  %2 = aten.max(%i) : !aten.tensor<i64>
  %3 = aten.mul.Scalar(%i, other = 2) : !aten.tensor<8xi64>
  %4 = aten.add.Tensor(%0, %2) : !aten.tensor<8xi64>
  %5 = aten.index_select(%t, %4, dim = 0) : !aten.tensor<8xf32>
  %6 = aten.mul.Tensor(%5, %2) : !aten.tensor<8xf32>
  func.return %3, %6 : !aten.tensor<8xi64>, !aten.tensor<8xf32>
}
// CHECK-LABEL: @values
// CHECK-NOT: _to_copy
