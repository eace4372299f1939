// RUN: inductile-opt %s --target cuda:90 -p 'graph-reassociate-row-sums{loop-products=true},graph-split-softmax{loop-products=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'graph-reassociate-row-sums{loop-products=true},graph-split-softmax{loop-products=true},graph-partition{loop-products=true}' | filecheck %s --check-prefix=SAVED
// RUN: inductile-opt %s --target cuda:90 -p 'graph-reassociate-row-sums,graph-split-softmax,graph-partition' | filecheck %s --check-prefix=OFF

// Backward has two numbers of each row, and a copy of the result, which the caller may overwrite; scores run again.
func.func @attention(%q: !aten.tensor<64x2048x64xf16, device = "cuda:0">, %k: !aten.tensor<64x2048x64xf16, device = "cuda:0">, %v: !aten.tensor<64x2048x64xf16, device = "cuda:0">, %t: !aten.tensor<64x2048x64xf16, device = "cuda:0"> {tangent}) -> (!aten.tensor<64x2048x64xf16, device = "cuda:0">, !aten.tensor<64x2048x64xf16, device = "cuda:0">, !aten.tensor<64x2048x64xf16, device = "cuda:0">) attributes {forward_results = 1 : i64} {
  %kt = aten.transpose.int(%k, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xf16, strides = [131072, 1, 64], device = "cuda:0">
  %s = aten.bmm(%q, %kt) : !aten.tensor<64x2048x2048xf16, device = "cuda:0">
  %p = aten._softmax(%s, dim = -1, half_to_float = false) : !aten.tensor<64x2048x2048xf16, device = "cuda:0">
  %o = aten.bmm(%p, %v) : !aten.tensor<64x2048x64xf16, device = "cuda:0">
  %vt = aten.transpose.int(%v, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xf16, strides = [131072, 1, 64], device = "cuda:0">
  %g = aten.bmm(%t, %vt) : !aten.tensor<64x2048x2048xf16, device = "cuda:0">
  %d = aten._softmax_backward_data(%g, %p, dim = -1, input_dtype = torch.float16) : !aten.tensor<64x2048x2048xf16, device = "cuda:0">
  %dq = aten.bmm(%d, %k) : !aten.tensor<64x2048x64xf16, device = "cuda:0">
  %pt = aten.transpose.int(%p, dim0 = 1, dim1 = 2) : !aten.tensor<64x2048x2048xf16, strides = [4194304, 1, 2048], device = "cuda:0">
  %dv = aten.bmm(%pt, %t) : !aten.tensor<64x2048x64xf16, device = "cuda:0">
  func.return %o, %dq, %dv : !aten.tensor<64x2048x64xf16, device = "cuda:0">, !aten.tensor<64x2048x64xf16, device = "cuda:0">, !aten.tensor<64x2048x64xf16, device = "cuda:0">
}
// CHECK-LABEL: func.func @attention
// CHECK: %o = aten.bmm(%{{.*}}, %v)
// CHECK-NEXT: [[KEPT:%[a-z0-9_]+]] = aten.clone(%o) {placement = "forward"}
// CHECK: %g = aten.bmm(%t, %vt)
// CHECK: [[WIDE:%[a-z0-9_]+]] = aten._to_copy(%t, dtype = torch.float32)
// CHECK-NEXT: [[WIDER:%[a-z0-9_]+]] = aten._to_copy([[KEPT]], dtype = torch.float32)
// CHECK-NEXT: [[TERMS:%[a-z0-9_]+]] = aten.mul.Tensor([[WIDE]], [[WIDER]])
// CHECK-NEXT: [[SUMS:%[a-z0-9_]+]] = aten.sum.dim_IntList([[TERMS]], dim = [-1], keepdim = true)
// CHECK-NEXT: [[APART:%[a-z0-9_]+]] = aten.sub.Tensor(%g, [[SUMS]])
// CHECK-NEXT: aten.mul.Tensor(%{{.*}}, [[APART]])
// SAVED-LABEL: func.func @attention
// SAVED: %s = aten.bmm(%q, %kt) {partition = "recompute"}
// SAVED: aten.log(
// SAVED-NEXT: aten.add.Tensor({{.*}}saved = array<i64: 0>}
// SAVED: %o = aten.bmm({{.*}} {partition = "forward"}
// SAVED-NEXT: aten.clone({{.*}}saved = array<i64: 0>}
// OFF-LABEL: func.func @attention
// OFF: %p = aten._softmax({{.*}}saved = array<i64: 0>}
// OFF: aten._softmax_backward_data(
