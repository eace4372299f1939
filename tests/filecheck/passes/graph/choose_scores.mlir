// RUN: inductile-opt %s --target cuda:90 -p graph-choose-scores | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p graph-choose-scores --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p graph-choose-scores,graph-reassociate-row-sums,graph-split-softmax,graph-partition | filecheck %s --check-prefix=SAVED
// RUN: inductile-opt %s --target cuda:80 -p graph-choose-scores | filecheck %s --check-prefix=OTHER
// OTHER-NOT: nest

// Capped scores under a mask by places were faster as loops, with their gradients: scores run again.
func.func @capped(%q: !aten.tensor<64x2048x64xbf16, device = "cuda:0">, %k: !aten.tensor<64x2048x64xbf16, device = "cuda:0">, %v: !aten.tensor<64x2048x64xbf16, device = "cuda:0">, %t: !aten.tensor<64x2048x64xbf16, device = "cuda:0"> {tangent}) -> (!aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">) attributes {forward_results = 1 : i64} {
  %i = aten.arange(end = 2048, device = "cuda:0") : !aten.tensor<2048xi64, device = "cuda:0">
  %row = aten.unsqueeze(%i, dim = 1) : !aten.tensor<2048x1xi64, device = "cuda:0">
  %key = aten.unsqueeze(%i, dim = 0) : !aten.tensor<1x2048xi64, device = "cuda:0">
  %kt = aten.transpose.int(%k, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %s = aten.bmm(%q, %kt) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %c = aten.tanh(%s) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %hidden = aten.gt.Tensor(%key, %row) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %x = aten.masked_fill.Scalar(%c, %hidden, value = -inf) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %p = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %o = aten.bmm(%p, %v) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %vt = aten.transpose.int(%v, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %g = aten.bmm(%t, %vt) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %d = aten._softmax_backward_data(%g, %p, dim = -1, input_dtype = torch.bfloat16) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %dq = aten.bmm(%d, %k) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %pt = aten.transpose.int(%p, dim0 = 1, dim1 = 2) : !aten.tensor<64x2048x2048xbf16, strides = [4194304, 1, 2048], device = "cuda:0">
  %dv = aten.bmm(%pt, %t) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  func.return %o, %dq, %dv : !aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: func.func @capped
// CHECK: %s = aten.bmm(%q, %kt) {implementation = "nest", tile = array<i64: 0, 0, 0, 0>, precision = "bf16"}
// CHECK: %o = aten.bmm(%p, %v) {implementation = "nest"
// CHECK: %g = aten.bmm(%t, %vt) {implementation = "nest"
// CHECK: %dq = aten.bmm(%d, %k) {implementation = "nest"
// CHECK: %dv = aten.bmm(%pt, %t) {implementation = "nest"
// REMARK: passed: {{.*}}loops for attention 64x2048x2048x64 bf16 with _softmax, hidden:places, tanh, training
// SAVED-LABEL: func.func @capped
// SAVED: %s = aten.bmm({{.*}}partition = "recompute"
// SAVED: aten.clone({{.*}}saved = array<i64: 0>}

// Nobody measured sines.
func.func @sines(%q: !aten.tensor<64x2048x64xbf16, device = "cuda:0">, %k: !aten.tensor<64x2048x64xbf16, device = "cuda:0">, %v: !aten.tensor<64x2048x64xbf16, device = "cuda:0">, %t: !aten.tensor<64x2048x64xbf16, device = "cuda:0"> {tangent}) -> (!aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">) attributes {forward_results = 1 : i64} {
  %i = aten.arange(end = 2048, device = "cuda:0") : !aten.tensor<2048xi64, device = "cuda:0">
  %row = aten.unsqueeze(%i, dim = 1) : !aten.tensor<2048x1xi64, device = "cuda:0">
  %key = aten.unsqueeze(%i, dim = 0) : !aten.tensor<1x2048xi64, device = "cuda:0">
  %kt = aten.transpose.int(%k, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %s = aten.bmm(%q, %kt) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %c = aten.sin(%s) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %hidden = aten.gt.Tensor(%key, %row) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %x = aten.masked_fill.Scalar(%c, %hidden, value = -inf) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %p = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %o = aten.bmm(%p, %v) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %vt = aten.transpose.int(%v, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %g = aten.bmm(%t, %vt) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %d = aten._softmax_backward_data(%g, %p, dim = -1, input_dtype = torch.bfloat16) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %dq = aten.bmm(%d, %k) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %pt = aten.transpose.int(%p, dim0 = 1, dim1 = 2) : !aten.tensor<64x2048x2048xbf16, strides = [4194304, 1, 2048], device = "cuda:0">
  %dv = aten.bmm(%pt, %t) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  func.return %o, %dq, %dv : !aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">, !aten.tensor<64x2048x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: func.func @sines
// CHECK-NOT: nest
// REMARK: missed: {{.*}}the library for attention 64x2048x2048x64 bf16 with _softmax, hidden:places, sin, training: nothing like it was measured
