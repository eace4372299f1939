// RUN: inductile-opt %s --target cuda:90 --verify-each -p graph-choose-products | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p graph-choose-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'graph-choose-products{choices=none}' | filecheck %s --check-prefix=NONE
// RUN: inductile-opt %s --target cuda:103 -p graph-choose-products | filecheck %s --check-prefix=NONE
// RUN: inductile-opt %s --target cuda:90 -p 'graph-choose-products{choices=none loop-products=true}' | filecheck %s --check-prefix=LOOPS

// Attention under a mask, as a library's call and written out: of both ways the one stays that was faster where it was
// measured, and nothing that only the other one needs.
func.func @masked(%q: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, %k: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, %v: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">) -> !aten.tensor<4x16x2048x64xbf16, device = "cuda:0"> {
  %i = aten.arange(end = 2048, device = "cuda:0") : !aten.tensor<2048xi64, device = "cuda:0">
  %row = aten.unsqueeze(%i, dim = 1) : !aten.tensor<2048x1xi64, device = "cuda:0">
  %hidden = aten.gt.Tensor(%i, %row) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %zero = aten.full(size = [2048, 2048], fill_value = 0.000000e+00, dtype = torch.bfloat16, device = "cuda:0") : !aten.tensor<2048x2048xbf16, device = "cuda:0">
  %mask = aten.masked_fill.Scalar(%zero, %hidden, value = -inf) : !aten.tensor<2048x2048xbf16, device = "cuda:0">
  %b = aten.expand(%mask, size = [4, 16, 2048, 2048]) : !aten.tensor<4x16x2048x2048xbf16, strides = [0, 0, 2048, 1], device = "cuda:0">
  %f:9 = aten._scaled_dot_product_cudnn_attention(%q, %k, %v, %b, compute_log_sumexp = false, scale = 1.000000e+00) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x1xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, none
  %q3 = aten.view(%q, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %k3 = aten.view(%k, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %v3 = aten.view(%v, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %t = aten.transpose.int(%k3, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %s = aten.bmm(%q3, %t) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %x = aten.masked_fill.Scalar(%s, %hidden, value = -inf) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %p = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %w = aten.bmm(%p, %v3) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %w4 = aten.view(%w, size = [4, 16, 2048, 64]) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %y = aten.call pure "inductile::either"(%f#0, %w4) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  func.return %y : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: @masked
// CHECK-NOT: cudnn
// CHECK: %s = aten.bmm(%q3, %t) {implementation = "nest", tile = array<i64: 64, 64, 4, 3>, streamed, chosen_for = "{{.*}}", precision = "bf16"}
// CHECK: func.return %w4
// REMARK: passed: aten.bmm: a nest, which was faster for attention 64x2048x2048x64 bf16 with _softmax, call, hidden:places library=
// NONE-LABEL: @masked
// NONE-NOT: bmm
// NONE: %f, {{.*}} = aten._scaled_dot_product_cudnn_attention(%q, %k, %v, %b
// NONE-NOT: bmm
// LOOPS-LABEL: @masked
// LOOPS-NOT: cudnn
// LOOPS: func.return %w4

// So few heads were not measured.
func.func @few(%q: !aten.tensor<1x2x2048x64xbf16, device = "cuda:0">, %k: !aten.tensor<1x2x2048x64xbf16, device = "cuda:0">, %v: !aten.tensor<1x2x2048x64xbf16, device = "cuda:0">) -> !aten.tensor<1x2x2048x64xbf16, device = "cuda:0"> {
  %i = aten.arange(end = 2048, device = "cuda:0") : !aten.tensor<2048xi64, device = "cuda:0">
  %row = aten.unsqueeze(%i, dim = 1) : !aten.tensor<2048x1xi64, device = "cuda:0">
  %hidden = aten.gt.Tensor(%i, %row) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %zero = aten.full(size = [2048, 2048], fill_value = 0.000000e+00, dtype = torch.bfloat16, device = "cuda:0") : !aten.tensor<2048x2048xbf16, device = "cuda:0">
  %mask = aten.masked_fill.Scalar(%zero, %hidden, value = -inf) : !aten.tensor<2048x2048xbf16, device = "cuda:0">
  %b = aten.expand(%mask, size = [1, 2, 2048, 2048]) : !aten.tensor<1x2x2048x2048xbf16, strides = [0, 0, 2048, 1], device = "cuda:0">
  %f:9 = aten._scaled_dot_product_cudnn_attention(%q, %k, %v, %b, compute_log_sumexp = false, scale = 1.000000e+00) : !aten.tensor<1x2x2048x64xbf16, device = "cuda:0">, !aten.tensor<1x2x2048x1xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, none
  %q3 = aten.view(%q, size = [2, 2048, 64]) : !aten.tensor<2x2048x64xbf16, device = "cuda:0">
  %k3 = aten.view(%k, size = [2, 2048, 64]) : !aten.tensor<2x2048x64xbf16, device = "cuda:0">
  %v3 = aten.view(%v, size = [2, 2048, 64]) : !aten.tensor<2x2048x64xbf16, device = "cuda:0">
  %t = aten.transpose.int(%k3, dim0 = 1, dim1 = 2) : !aten.tensor<2x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %s = aten.bmm(%q3, %t) : !aten.tensor<2x2048x2048xbf16, device = "cuda:0">
  %x = aten.masked_fill.Scalar(%s, %hidden, value = -inf) : !aten.tensor<2x2048x2048xbf16, device = "cuda:0">
  %p = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<2x2048x2048xbf16, device = "cuda:0">
  %w = aten.bmm(%p, %v3) : !aten.tensor<2x2048x64xbf16, device = "cuda:0">
  %w4 = aten.view(%w, size = [1, 2, 2048, 64]) : !aten.tensor<1x2x2048x64xbf16, device = "cuda:0">
  %y = aten.call pure "inductile::either"(%f#0, %w4) : !aten.tensor<1x2x2048x64xbf16, device = "cuda:0">
  func.return %y : !aten.tensor<1x2x2048x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: @few
// CHECK-NOT: bmm
// CHECK: aten._scaled_dot_product_cudnn_attention(%q, %k, %v, %b
// CHECK-NOT: bmm
// REMARK: missed: aten.bmm: the library: nothing like attention 2x2048x2048x64 bf16 with _softmax, call, hidden:places was measured

// A kernel that reads no mask stays.
func.func @proved(%q: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, %k: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, %v: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">) -> !aten.tensor<4x16x2048x64xbf16, device = "cuda:0"> {
  %i = aten.arange(end = 2048, device = "cuda:0") : !aten.tensor<2048xi64, device = "cuda:0">
  %row = aten.unsqueeze(%i, dim = 1) : !aten.tensor<2048x1xi64, device = "cuda:0">
  %hidden = aten.gt.Tensor(%i, %row) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %f:9 = aten._scaled_dot_product_cudnn_attention(%q, %k, %v, compute_log_sumexp = false, is_causal = true, scale = 1.000000e+00) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x1xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, none
  %q3 = aten.view(%q, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %k3 = aten.view(%k, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %v3 = aten.view(%v, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %t = aten.transpose.int(%k3, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %s = aten.bmm(%q3, %t) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %x = aten.masked_fill.Scalar(%s, %hidden, value = -inf) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %p = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %w = aten.bmm(%p, %v3) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %w4 = aten.view(%w, size = [4, 16, 2048, 64]) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %y = aten.call pure "inductile::either"(%f#0, %w4) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  func.return %y : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: @proved
// CHECK-NOT: bmm
// CHECK: aten._scaled_dot_product_cudnn_attention(%q, %k, %v, compute_log_sumexp = false, is_causal = true
// CHECK-NOT: bmm
// REMARK: missed: aten.bmm: the library: its mask is proved, and is not read
