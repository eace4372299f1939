// RUN: inductile-opt %s -p graph-partition | filecheck %s
// RUN: inductile-opt %s -p graph-partition{budget=0.0} | filecheck %s --check-prefix=LEAST
// RUN: inductile-opt %s -p graph-partition --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// What both sine and its gradient read is computed again of the arguments, one of which is held anyway; what only
// backward reads runs there.
func.func @joint(%w: !aten.tensor<4xf32> {static}, %x: !aten.tensor<4xf32>, %t: !aten.tensor<4xf32> {tangent}) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten.mul.Tensor(%w, %x) : !aten.tensor<4xf32>
  %1 = aten.sin(%0) : !aten.tensor<4xf32>
  %2 = aten.cos(%0) : !aten.tensor<4xf32>
  %3 = aten.mul.Tensor(%t, %2) : !aten.tensor<4xf32>
  func.return %1, %3 : !aten.tensor<4xf32>, !aten.tensor<4xf32>
}
// CHECK-LABEL: @joint
// CHECK-SAME: %w: {{[^,]*}} {static, saved}, %x: {{[^,]*}} {saved}, %t:
// CHECK: aten.mul.Tensor(%w, %x) {partition = "recompute"}
// CHECK: aten.sin{{.*}}partition = "forward"}
// CHECK: aten.cos{{.*}}partition = "backward"}
// CHECK: aten.mul.Tensor{{.*}}partition = "backward"}
// REMARK: remark: [graph-partition] passed: {{.*}} is saved for backward bytes=16
// REMARK: remark: [graph-partition] passed: aten.mul.Tensor: runs again in backward class=cheap
// REMARK: remark: [graph-partition] analysis: func.func: partition saved=2 bytes=16 recomputed=1

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

// A result that the caller may overwrite is not saved, and what reads it is still computed again, of the arguments.
func.func @returned(%m: !aten.tensor<8xf32>, %g: !aten.tensor<8xf32>, %t: !aten.tensor<8xf32> {tangent}) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>) attributes {forward_results = 2 : i64} {
  %0 = aten.add.Tensor(%m, %g) : !aten.tensor<8xf32>
  %1 = aten.abs(%0) : !aten.tensor<8xf32>
  %2 = aten.mul.Scalar(%1, other = 2.0) : !aten.tensor<8xf32>
  %3 = aten.mul.Tensor(%2, %g) : !aten.tensor<8xf32>
  %4 = aten.mul.Tensor(%t, %1) : !aten.tensor<8xf32>
  %5 = aten.mul.Tensor(%4, %2) : !aten.tensor<8xf32>
  %6 = aten.mul.Tensor(%5, %g) : !aten.tensor<8xf32>
  func.return %0, %3, %6 : !aten.tensor<8xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>
}
// CHECK-LABEL: @returned
// CHECK-SAME: %m: {{[^,]*}} {saved}, %g: {{[^,]*}} {saved}, %t:
// CHECK: aten.add.Tensor({{.*}}) {partition = "recompute"}
// CHECK: aten.abs({{.*}}) {partition = "recompute"}
// CHECK: aten.mul.Scalar({{.*}}) {partition = "recompute"}

// A loss and a scatter are nests, which fuse with the casts and the zeros that they read.
func.func @loss(%x: !aten.tensor<8xbf16>, %y: !aten.tensor<8xbf16>, %t: !aten.tensor<f32> {tangent}) -> (!aten.tensor<f32>, !aten.tensor<8xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<8xf32>
  %1 = aten._to_copy(%y, dtype = torch.float32) : !aten.tensor<8xf32>
  %2 = aten.mse_loss(%0, %1, reduction = 1) : !aten.tensor<f32>
  %3 = aten.mse_loss_backward(%t, %0, %1, reduction = 1) : !aten.tensor<8xf32>
  func.return %2, %3 : !aten.tensor<f32>, !aten.tensor<8xf32>
}
// CHECK-LABEL: @loss
// CHECK-SAME: %x: {{[^,]*}} {saved}, %y: {{[^,]*}} {saved}, %t:
// CHECK: aten._to_copy({{.*}}) {partition = "recompute"}

func.func @scatter(%i: !aten.tensor<2xi64>, %x: !aten.tensor<2xf32>, %t: !aten.tensor<8xf32> {tangent}, %u: !aten.tensor<2xf32> {tangent}) -> (!aten.tensor<8xf32>, !aten.tensor<8xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten.full(size = [8], fill_value = 0.0, dtype = torch.float32, device = "cpu") : !aten.tensor<8xf32>
  %1 = aten.scatter.src(%0, %i, %x, dim = 0) : !aten.tensor<8xf32>
  %2 = aten.scatter.src(%0, %i, %u, dim = 0) : !aten.tensor<8xf32>
  func.return %1, %2 : !aten.tensor<8xf32>, !aten.tensor<8xf32>
}
// CHECK-LABEL: @scatter
// CHECK-SAME: %i: {{[^,]*}} {saved}, %x: {{[^{]*}}, %t:
// CHECK: aten.full({{.*}}partition = "recompute"}

// No joint graph: left alone.
func.func @plain(%x: !aten.tensor<8xf32>) -> !aten.tensor<8xf32> {
  %0 = aten.exp(%x) : !aten.tensor<8xf32>
  func.return %0 : !aten.tensor<8xf32>
}
// CHECK-LABEL: @plain
// CHECK: aten.exp(%x) : !aten.tensor
