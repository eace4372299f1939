// RUN: inductile-opt %s -p graph-partition | filecheck %s
// RUN: inductile-opt %s -p graph-partition{budget=0.0} | filecheck %s --check-prefix=LEAST
// RUN: inductile-opt %s -p graph-partition --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// What both sine and its gradient read is saved; what only backward reads runs there.
func.func @joint(%w: !aten.tensor<4xf32> {static}, %x: !aten.tensor<4xf32>, %t: !aten.tensor<4xf32> {tangent}) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten.mul.Tensor(%w, %x) : !aten.tensor<4xf32>
  %1 = aten.sin(%0) : !aten.tensor<4xf32>
  %2 = aten.cos(%0) : !aten.tensor<4xf32>
  %3 = aten.mul.Tensor(%t, %2) : !aten.tensor<4xf32>
  func.return %1, %3 : !aten.tensor<4xf32>, !aten.tensor<4xf32>
}
// CHECK-LABEL: @joint
// CHECK: aten.mul.Tensor(%w, %x) {partition = "forward", saved = array<i64: 0>}
// CHECK: aten.sin{{.*}}partition = "forward"}
// CHECK: aten.cos{{.*}}partition = "backward"}
// CHECK: aten.mul.Tensor{{.*}}partition = "backward"}
// REMARK: remark: [graph-partition] passed: aten.mul.Tensor: {{.*}} is saved for backward bytes=16
// REMARK: remark: [graph-partition] analysis: func.func: partition saved=1 bytes=16 recomputed=0

// A matrix product is in memory anyway: the elementwise ops behind it run again. Its operand is saved as it is, not its view.
func.func @linear(%w: !aten.tensor<8x8xf32> {static}, %x: !aten.tensor<8x8xf32>, %t: !aten.tensor<8x8xf32> {tangent}) -> (!aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten.mm(%x, %w) : !aten.tensor<8x8xf32>
  %1 = aten.gelu(%0) : !aten.tensor<8x8xf32>
  %2 = aten.mul.Tensor(%1, %1) : !aten.tensor<8x8xf32>
  %3 = aten.mul.Tensor(%t, %1) : !aten.tensor<8x8xf32>
  %4 = aten.t(%x) : !aten.tensor<8x8xf32, strides = [1, 8]>
  %5 = aten.mm(%4, %3) : !aten.tensor<8x8xf32>
  %6 = aten.t(%w) : !aten.tensor<8x8xf32, strides = [1, 8]>
  %7 = aten.mm(%3, %6) : !aten.tensor<8x8xf32>
  func.return %2, %5, %7 : !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>
}
// CHECK-LABEL: @linear
// CHECK-SAME: %w: {{[^,]*}} {{{.*}}saved{{.*}}}, %x: {{[^,]*}} {saved}, %t: {{[^,]*}} {tangent})
// CHECK: aten.mm(%x, %w) {partition = "forward", saved = array<i64: 0>}
// CHECK: aten.gelu({{.*}}) {partition = "recompute"}
// CHECK: aten.t(%x) {partition = "backward"}
// With no memory for activations the product runs again too.
// LEAST-LABEL: @linear
// LEAST: aten.mm(%x, %w) {partition = "recompute"}
// LEAST: aten.gelu({{.*}}) {partition = "recompute"}

// A random op runs once whatever the budget: its mask is saved, not drawn again.
func.func @random(%x: !aten.tensor<64xf32>, %t: !aten.tensor<64xf32> {tangent}) -> (!aten.tensor<64xf32>, !aten.tensor<64xf32>) attributes {forward_results = 1 : i64} {
  %0, %1 = aten.native_dropout(%x, p = 0.5, train = true) {checkpoint = "recompute"} : !aten.tensor<64xf32>, !aten.tensor<64xi1>
  %2 = aten.exp(%0) : !aten.tensor<64xf32>
  %3 = aten.mul.Tensor(%t, %1) : !aten.tensor<64xf32>
  func.return %2, %3 : !aten.tensor<64xf32>, !aten.tensor<64xf32>
}
// CHECK-LABEL: @random
// CHECK: aten.native_dropout({{.*}}partition = "forward", saved = array<i64: 1>}
// LEAST-LABEL: @random
// LEAST: aten.native_dropout({{.*}}partition = "forward", saved = array<i64: 1>}

// A checkpointed region runs again from its input; the border between two regions is saved.
func.func @checkpoint(%w: !aten.tensor<8x8xf32> {static}, %x: !aten.tensor<8x8xf32>, %t: !aten.tensor<8x8xf32> {tangent}) -> (!aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten.mm(%x, %w) {checkpoint = "recompute", region = 1 : i64} : !aten.tensor<8x8xf32>
  %1 = aten.exp(%0) {checkpoint = "recompute", region = 1 : i64} : !aten.tensor<8x8xf32>
  %2 = aten.mm(%1, %w) {checkpoint = "recompute", region = 2 : i64} : !aten.tensor<8x8xf32>
  %3 = aten.exp(%2) {checkpoint = "recompute", region = 2 : i64} : !aten.tensor<8x8xf32>
  %4 = aten.sin(%3) : !aten.tensor<8x8xf32>
  %5 = aten.mul.Tensor(%t, %3) : !aten.tensor<8x8xf32>
  %6 = aten.mul.Tensor(%5, %1) : !aten.tensor<8x8xf32>
  %7 = aten.mul.Tensor(%6, %0) : !aten.tensor<8x8xf32>
  func.return %4, %7 : !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>
}
// CHECK-LABEL: @checkpoint
// CHECK: aten.mm(%x, %w) {{{.*}}partition = "recompute"}
// CHECK: aten.exp({{.*}}partition = "forward", saved = array<i64: 0>}
// CHECK: aten.mm({{.*}}partition = "recompute"}
// CHECK: aten.exp({{.*}}partition = "recompute"}

// The caller may overwrite what it gets: the exponential is saved rather than computed from the returned sum.
// The buffer is overwritten too, so the sine of it is saved.
func.func @overwritten(%b: !aten.tensor<8xf32> {mutated, static}, %x: !aten.tensor<8xf32>, %t: !aten.tensor<8xf32> {tangent}) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>) attributes {forward_results = 2 : i64} {
  %0 = aten.add.Tensor(%x, %b) : !aten.tensor<8xf32>
  %1 = aten.exp(%0) : !aten.tensor<8xf32>
  %2 = aten.sin(%b) : !aten.tensor<8xf32>
  %3 = aten.mul.Tensor(%1, %2) : !aten.tensor<8xf32>
  %4 = aten.mul.Tensor(%t, %1) : !aten.tensor<8xf32>
  %5 = aten.mul.Tensor(%4, %2) : !aten.tensor<8xf32>
  func.return %0, %3, %5 : !aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>
}
// CHECK-LABEL: @overwritten
// CHECK-SAME: %b: {{[^,]*}} {mutated, static}, %x: {{[^{]*}}, %t:
// CHECK: aten.exp({{.*}}saved = array<i64: 0>}
// CHECK: aten.sin({{.*}}saved = array<i64: 0>}

// No joint graph: left alone.
func.func @plain(%x: !aten.tensor<8xf32>) -> !aten.tensor<8xf32> {
  %0 = aten.exp(%x) : !aten.tensor<8xf32>
  func.return %0 : !aten.tensor<8xf32>
}
// CHECK-LABEL: @plain
// CHECK: aten.exp(%x) : !aten.tensor
