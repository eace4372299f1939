// RUN: inductile-opt %s -p graph-match-patterns | filecheck %s
// RUN: inductile-opt %s -p graph-match-patterns{patterns="addmm"} --remarks 2>&1 | filecheck %s --check-prefix=ADDMM
// RUN: inductile-opt %s -p graph-match-patterns{patterns="all"} --debug-counter pattern-addmm-skip=1 | filecheck %s --check-prefix=SKIP
// RUN: inductile-opt %s -p graph-match-patterns{patterns="attention"},graph-dce --verify-each=numerics --remarks 2>&1 | filecheck %s --check-prefix=ATTENTION
// RUN: not inductile-opt %s -p graph-match-patterns{patterns="adm"} 2>&1 | filecheck %s --check-prefix=TYPO
// TYPO: error: unknown pattern 'adm'; did you mean 'addmm'?

func.func @products(%x: !aten.tensor<4x8xf32>, %w: !aten.tensor<8x8xf32>, %b: !aten.tensor<8xf32>) -> !aten.tensor<4x8xf32> {
  %0 = aten.mm(%x, %w) : !aten.tensor<4x8xf32>
  %1 = aten.add.Tensor(%b, %0) : !aten.tensor<4x8xf32>
  %2 = aten.mm(%1, %w) : !aten.tensor<4x8xf32>
  %3 = aten.add.Tensor(%2, %b, alpha = 2) : !aten.tensor<4x8xf32>
  %4 = aten.mm(%3, %w) : !aten.tensor<4x8xf32>
  %5 = aten.add.Tensor(%4, %b) : !aten.tensor<4x8xf32>
  func.return %5 : !aten.tensor<4x8xf32>
}
// By default nothing that rounds in another way.
// CHECK-LABEL: @products
// CHECK: aten.mm
// CHECK-NEXT: aten.add.Tensor
// CHECK-NEXT: aten.mm
// CHECK-NEXT: aten.add.Tensor
// ADDMM-LABEL: @products
// ADDMM-NEXT: aten.addmm(%b, %x, %w)
// ADDMM-NEXT: aten.mm
// ADDMM-NEXT: aten.add.Tensor({{.*}}alpha = 2)
// ADDMM-NEXT: aten.addmm(%b, {{.*}}, %w)
// ADDMM-NEXT: func.return
// The sweep begins at the end: the first decision is about the last product.
// SKIP-LABEL: @products
// SKIP-NEXT: aten.addmm
// SKIP: aten.mm
// SKIP: aten.mm

// Parts of a concatenation are its operands, also of symbolic sizes; a part that is returned has to stay a view.
func.func @parts(%x: !aten.tensor<(s0)x4xf32>, %y: !aten.tensor<3x4xf32>) -> (!aten.tensor<(s0)x4xf32>, !aten.tensor<3x4xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %0 = aten.exp(%x) : !aten.tensor<(s0)x4xf32>
  %1 = aten.cat([%0, %y]) : !aten.tensor<(s0 + 3)x4xf32>
  %2 = aten.slice.Tensor(%1, start = 0, end = s0) : !aten.tensor<(s0)x4xf32>
  %3 = aten.slice.Tensor(%1, start = s0, end = 9223372036854775807) : !aten.tensor<3x4xf32>
  %4 = aten.sin(%2) : !aten.tensor<(s0)x4xf32>
  func.return %4, %3 : !aten.tensor<(s0)x4xf32>, !aten.tensor<3x4xf32>
}
// CHECK-LABEL: @parts
// CHECK: %[[EXP:.*]] = aten.exp
// CHECK: %[[PART:.*]] = aten.slice.Tensor
// CHECK: aten.sin(%[[EXP]])
// CHECK: func.return %{{.*}}, %[[PART]]

// A write between the ops of a match: the product has to read the old elements.
func.func @overwritten(%x: !aten.tensor<4x8xf32>, %w: !aten.tensor<8x8xf32>, %b: !aten.tensor<8xf32>) -> !aten.tensor<4x8xf32> {
  %0 = aten.mm(%x, %w) : !aten.tensor<4x8xf32>
  %1 = aten.exp(%w) : !aten.tensor<8x8xf32>
  %2 = aten.copy_(%w, %1) : !aten.tensor<8x8xf32>
  %3 = aten.add.Tensor(%0, %b) : !aten.tensor<4x8xf32>
  func.return %3 : !aten.tensor<4x8xf32>
}
// ADDMM-LABEL: @overwritten
// ADDMM: aten.mm
// ADDMM: aten.copy_
// ADDMM: aten.add.Tensor

// Half of it is in a checkpointed region.
func.func @checkpointed(%x: !aten.tensor<4x8xf32>, %w: !aten.tensor<8x8xf32>, %b: !aten.tensor<8xf32>) -> !aten.tensor<4x8xf32> {
  %0 = aten.mm(%x, %w) {checkpoint = "recompute"} : !aten.tensor<4x8xf32>
  %1 = aten.add.Tensor(%0, %b) : !aten.tensor<4x8xf32>
  func.return %1 : !aten.tensor<4x8xf32>
}
// ADDMM-LABEL: @checkpointed
// ADDMM: aten.add.Tensor

// A joint graph: the softmax is read by the gradient, which the pattern matches too. By default it is left alone.
func.func @attention(%q: !aten.tensor<2x6x4xf32>, %k: !aten.tensor<2x6x4xf32>, %v: !aten.tensor<2x6x4xf32>, %t: !aten.tensor<2x6x4xf32> {tangent}) -> (!aten.tensor<2x6x4xf32>, !aten.tensor<2x6x4xf32>, !aten.tensor<2x4x6xf32>, !aten.tensor<2x6x4xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten.transpose.int(%k, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x6xf32, strides = [24, 1, 4]>
  %1 = aten.bmm(%q, %0) : !aten.tensor<2x6x6xf32>
  %2 = aten.mul.Scalar(%1, other = 0.3) : !aten.tensor<2x6x6xf32>
  %3 = aten._softmax(%2, dim = -1, half_to_float = false) : !aten.tensor<2x6x6xf32>
  %4 = aten.bmm(%3, %v) : !aten.tensor<2x6x4xf32>
  %5 = aten.transpose.int(%3, dim0 = 1, dim1 = 2) : !aten.tensor<2x6x6xf32, strides = [36, 1, 6]>
  %6 = aten.bmm(%5, %t) : !aten.tensor<2x6x4xf32>
  %7 = aten.transpose.int(%v, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x6xf32, strides = [24, 1, 4]>
  %8 = aten.bmm(%t, %7) : !aten.tensor<2x6x6xf32>
  %9 = aten._softmax_backward_data(%8, %3, dim = -1, input_dtype = torch.float32) : !aten.tensor<2x6x6xf32>
  %10 = aten.mul.Scalar(%9, other = 0.3) : !aten.tensor<2x6x6xf32>
  %11 = aten.transpose.int(%q, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x6xf32, strides = [24, 1, 4]>
  %12 = aten.bmm(%11, %10) : !aten.tensor<2x4x6xf32>
  %13 = aten.bmm(%10, %k) : !aten.tensor<2x6x4xf32>
  func.return %4, %13, %12, %6 : !aten.tensor<2x6x4xf32>, !aten.tensor<2x6x4xf32>, !aten.tensor<2x4x6xf32>, !aten.tensor<2x6x4xf32>
}
// CHECK-LABEL: @attention
// CHECK: aten._softmax_backward_data
// ATTENTION-LABEL: @attention
// ATTENTION-NOT: aten.bmm
// ATTENTION: %[[OUT:.*]], %[[SUMS:.*]] = aten._scaled_dot_product_flash_attention_for_cpu(
// ATTENTION-NOT: aten.bmm
// ATTENTION: aten._scaled_dot_product_flash_attention_for_cpu_backward({{.*}}, %[[OUT]], %[[SUMS]], dropout_p = 0
// ATTENTION-NOT: aten.bmm
// ATTENTION: func.return

// The gradient is not that of the scale: both stay.
func.func @other_gradient(%q: !aten.tensor<2x6x4xf32>, %k: !aten.tensor<2x6x4xf32>, %v: !aten.tensor<2x6x4xf32>, %t: !aten.tensor<2x6x4xf32> {tangent}) -> (!aten.tensor<2x6x4xf32>, !aten.tensor<2x6x4xf32>) attributes {forward_results = 1 : i64} {
  %0 = aten.transpose.int(%k, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x6xf32, strides = [24, 1, 4]>
  %1 = aten.bmm(%q, %0) : !aten.tensor<2x6x6xf32>
  %2 = aten.mul.Scalar(%1, other = 0.3) : !aten.tensor<2x6x6xf32>
  %3 = aten._softmax(%2, dim = -1, half_to_float = false) : !aten.tensor<2x6x6xf32>
  %4 = aten.bmm(%3, %v) : !aten.tensor<2x6x4xf32>
  %7 = aten.transpose.int(%v, dim0 = 1, dim1 = 2) : !aten.tensor<2x4x6xf32, strides = [24, 1, 4]>
  %8 = aten.bmm(%t, %7) : !aten.tensor<2x6x6xf32>
  %9 = aten._softmax_backward_data(%8, %3, dim = -1, input_dtype = torch.float32) : !aten.tensor<2x6x6xf32>
  %10 = aten.mul.Scalar(%9, other = 0.6) : !aten.tensor<2x6x6xf32>
  %13 = aten.bmm(%10, %k) : !aten.tensor<2x6x4xf32>
  func.return %4, %13 : !aten.tensor<2x6x4xf32>, !aten.tensor<2x6x4xf32>
}
// ATTENTION-LABEL: @other_gradient
// ATTENTION: aten._softmax_backward_data
// ATTENTION: remark: {{.*}} passed: aten.bmm: 'attention' with its gradient replaces 13 ops
// ATTENTION-NEXT: remark: {{.*}} missed: aten.bmm: matches 'attention', but aten._softmax_backward_data reads a value inside it; its gradient does not match: two values stand for 'factor'

// Remarks stand behind the module, those of a function from its end on.
// ADDMM: remark: [graph-match-patterns] passed: aten.add.Tensor: 'addmm' replaces 2 ops
// ADDMM: remark: [graph-match-patterns] missed: aten.add.Tensor: nearly matches 'addmm': aten.add.Tensor has alpha = 2
// ADDMM: remark: [graph-match-patterns] passed: aten.add.Tensor: 'addmm' replaces 2 ops
// ADDMM: remark: [graph-match-patterns] missed: aten.add.Tensor: matches 'addmm', but one of its operands is overwritten meanwhile
// ADDMM: remark: {{.*}} matches 'addmm', but only a part of it is in a checkpointed region
