// RUN: inductile-opt %s -p graph-split-softmax | filecheck %s
// RUN: inductile-opt %s -p graph-split-softmax,graph-partition | filecheck %s --check-prefix=SAVED
// RUN: inductile-opt %s -p graph-split-softmax --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// Two numbers of each row are saved beside the input; all the rest is elementwise and runs again.
func.func @loss(%x: !aten.tensor<4x10xf32>, %t: !aten.tensor<4xf32> {tangent}) -> (!aten.tensor<4xf32>, !aten.tensor<4x10xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten._log_softmax(%x, dim = 1, half_to_float = false) : !aten.tensor<4x10xf32>
  %1 = aten.select.int(%0, dim = 1, index = 3) : !aten.tensor<4xf32, strides = [10]>
  %2 = aten.neg(%1) : !aten.tensor<4xf32>
  %3 = aten.unsqueeze(%t, dim = 1) : !aten.tensor<4x1xf32>
  %4 = aten.mul.Tensor(%3, %0) : !aten.tensor<4x10xf32>
  func.return %2, %4 : !aten.tensor<4xf32>, !aten.tensor<4x10xf32>
}
// CHECK-LABEL: @loss
// CHECK-NEXT: %[[M:.*]] = aten.amax(%x, dim = [1], keepdim = true) : !aten.tensor<4x1xf32>
// CHECK-NEXT: %[[D:.*]] = aten.sub.Tensor(%x, %[[M]]) : !aten.tensor<4x10xf32>
// CHECK-NEXT: %[[E:.*]] = aten.exp(%[[D]]) : !aten.tensor<4x10xf32>
// CHECK-NEXT: %[[S:.*]] = aten.sum.dim_IntList(%[[E]], dim = [1], keepdim = true) : !aten.tensor<4x1xf32>
// CHECK-NEXT: %[[L:.*]] = aten.log(%[[S]]) : !aten.tensor<4x1xf32>
// CHECK-NEXT: %[[Y:.*]] = aten.sub.Tensor(%[[D]], %[[L]]) : !aten.tensor<4x10xf32>
// CHECK-NEXT: aten.select.int(%[[Y]]
// CHECK: aten.mul.Tensor(%{{.*}}, %[[Y]])
// SAVED-LABEL: @loss
// SAVED-SAME: %x: !aten.tensor<4x10xf32> {saved}
// SAVED: aten.amax({{.*}}saved = array<i64: 0>}
// SAVED: aten.sub.Tensor({{.*}}partition = "recompute"}
// SAVED: aten.exp({{.*}}partition = "forward"}
// SAVED: aten.sum.dim_IntList({{.*}}partition = "forward"}
// SAVED: aten.log({{.*}}saved = array<i64: 0>}
// SAVED: aten.sub.Tensor({{.*}}partition = "recompute"}
// REMARK: remark: [graph-split-softmax] passed: aten._log_softmax: split into statistics of rows and an elementwise step

// Rows of 16 bits are computed in 32, and what the op gave is rounded as before.
func.func @short(%x: !aten.tensor<4x10xbf16>, %t: !aten.tensor<4x10xbf16> {tangent}) -> (!aten.tensor<4x10xbf16>, !aten.tensor<4x10xbf16>) attributes {forward_results = 1 : i64} {
  %0 = aten._log_softmax(%x, dim = 0, half_to_float = false) : !aten.tensor<4x10xbf16>
  %1 = aten.exp(%0) : !aten.tensor<4x10xbf16>
  %2 = aten.mul.Tensor(%t, %0) : !aten.tensor<4x10xbf16>
  func.return %1, %2 : !aten.tensor<4x10xbf16>, !aten.tensor<4x10xbf16>
}
// CHECK-LABEL: @short
// CHECK-NEXT: aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<4x10xf32>
// CHECK-NEXT: aten.amax({{.*}}, dim = [0], keepdim = true) : !aten.tensor<1x10xf32>
// CHECK: %[[Y:.*]] = aten._to_copy(%{{.*}}, dtype = torch.bfloat16) : !aten.tensor<4x10xbf16>
// CHECK-NEXT: aten.exp(%[[Y]])

// A softmax is divided once a row, as the one op does; not what a matrix product reads, which is in memory.
func.func @softmax(%x: !aten.tensor<4x10xf32>, %w: !aten.tensor<10x4xf32>, %t: !aten.tensor<4x10xf32> {tangent}) -> (!aten.tensor<4x10xf32>, !aten.tensor<4x4xf32>, !aten.tensor<4x10xf32>, !aten.tensor<4x10xf32>) attributes {forward_results = 2 : i64} {
  %0 = aten._softmax(%x, dim = 1, half_to_float = false) : !aten.tensor<4x10xf32>
  %1 = aten.exp(%0) : !aten.tensor<4x10xf32>
  %2 = aten._softmax(%1, dim = 1, half_to_float = false) : !aten.tensor<4x10xf32>
  %3 = aten.mm(%2, %w) : !aten.tensor<4x4xf32>
  %4 = aten.mul.Tensor(%t, %0) : !aten.tensor<4x10xf32>
  %5 = aten.mul.Tensor(%t, %2) : !aten.tensor<4x10xf32>
  func.return %1, %3, %4, %5 : !aten.tensor<4x10xf32>, !aten.tensor<4x4xf32>, !aten.tensor<4x10xf32>, !aten.tensor<4x10xf32>
}
// CHECK-LABEL: @softmax
// CHECK: %[[E:.*]] = aten.exp(
// CHECK-NEXT: %[[S:.*]] = aten.sum.dim_IntList(%[[E]]
// CHECK-NEXT: %[[R:.*]] = aten.reciprocal(%[[S]]) : !aten.tensor<4x1xf32>
// CHECK-NEXT: %[[Y:.*]] = aten.mul.Tensor(%[[E]], %[[R]]) : !aten.tensor<4x10xf32>
// CHECK-NEXT: aten.exp(%[[Y]])
// CHECK-NEXT: aten._softmax(
// REMARK: passed: aten._softmax: split into statistics of rows and an elementwise step
// REMARK: missed: aten._softmax: an op that fuses with nothing reads it: it is in memory

// What the forward graph returns is in memory; what backward does not read, and rows that may be empty, stay.
func.func @stays(%x: !aten.tensor<4x10xf32>, %y: !aten.tensor<4x10xf32>, %z: !aten.tensor<4x(s0)xf32>, %t: !aten.tensor<4x10xf32> {tangent}, %u: !aten.tensor<4x(s0)xf32> {tangent}) -> (!aten.tensor<4x10xf32>, !aten.tensor<4x10xf32>, !aten.tensor<4x(s0)xf32>, !aten.tensor<4x10xf32>, !aten.tensor<4x(s0)xf32>) attributes {forward_results = 3 : i64, symbols = [#sym.symbol<s0, arg = 2, dim = 1, min = 0, max = 100>]} {
  %0 = aten._log_softmax(%x, dim = 1, half_to_float = false) : !aten.tensor<4x10xf32>
  %1 = aten._log_softmax(%y, dim = 1, half_to_float = false) : !aten.tensor<4x10xf32>
  %2 = aten._log_softmax(%z, dim = 1, half_to_float = false) : !aten.tensor<4x(s0)xf32>
  %3 = aten.exp(%1) : !aten.tensor<4x10xf32>
  %4 = aten.exp(%2) : !aten.tensor<4x(s0)xf32>
  %5 = aten.mul.Tensor(%t, %0) : !aten.tensor<4x10xf32>
  %6 = aten.mul.Tensor(%u, %2) : !aten.tensor<4x(s0)xf32>
  func.return %0, %3, %4, %5, %6 : !aten.tensor<4x10xf32>, !aten.tensor<4x10xf32>, !aten.tensor<4x(s0)xf32>, !aten.tensor<4x10xf32>, !aten.tensor<4x(s0)xf32>
}
// CHECK-LABEL: @stays
// CHECK-COUNT-3: aten._log_softmax
// REMARK: missed: aten._log_softmax: the forward graph returns it: it is in memory
// REMARK: missed: aten._log_softmax: backward does not read it
// REMARK: missed: aten._log_softmax: its rows may be empty
