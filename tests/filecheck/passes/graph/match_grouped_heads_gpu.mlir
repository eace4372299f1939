// RUN: inductile-opt %s -p graph-match-patterns --remarks 2>&1 | filecheck %s

// Eight heads of queries to one of keys and values, which a kernel of cuDNN finds itself; the mask stays.
func.func @cudnn(%q: !aten.tensor<1x32x1x64xbf16, device = "cuda:0">, %k: !aten.tensor<1x4x1024x64xbf16, device = "cuda:0">, %v: !aten.tensor<1x4x1024x64xbf16, device = "cuda:0">, %m: !aten.tensor<1x32x1x1024xbf16, device = "cuda:0">) -> !aten.tensor<1x32x1x64xbf16, device = "cuda:0"> {
  %0 = aten.unsqueeze(%k, dim = 2) : !aten.tensor<1x4x1x1024x64xbf16, device = "cuda:0">
  %1 = aten.expand(%0, size = [1, 4, 8, 1024, 64]) : !aten.tensor<1x4x8x1024x64xbf16, strides = [262144, 65536, 0, 64, 1], device = "cuda:0">
  %2 = aten.clone(%1, memory_format = torch.contiguous_format) : !aten.tensor<1x4x8x1024x64xbf16, device = "cuda:0">
  %3 = aten.view(%2, size = [1, 32, 1024, 64]) : !aten.tensor<1x32x1024x64xbf16, device = "cuda:0">
  %4 = aten.unsqueeze(%v, dim = 2) : !aten.tensor<1x4x1x1024x64xbf16, device = "cuda:0">
  %5 = aten.expand(%4, size = [1, 4, 8, 1024, 64]) : !aten.tensor<1x4x8x1024x64xbf16, strides = [262144, 65536, 0, 64, 1], device = "cuda:0">
  %6 = aten.clone(%5, memory_format = torch.contiguous_format) : !aten.tensor<1x4x8x1024x64xbf16, device = "cuda:0">
  %7 = aten.view(%6, size = [1, 32, 1024, 64]) : !aten.tensor<1x32x1024x64xbf16, device = "cuda:0">
  %y, %l, %a, %b, %c, %d, %e, %f, %g = aten._scaled_dot_product_cudnn_attention(%q, %3, %7, %m, compute_log_sumexp = false, scale = 0.125) : !aten.tensor<1x32x1x64xbf16, device = "cuda:0">, !aten.tensor<1x32x0x1xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<i64>, !aten.tensor<i64>, none
  func.return %y : !aten.tensor<1x32x1x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: @cudnn
// CHECK-NEXT: aten._scaled_dot_product_cudnn_attention(%q, %k, %v, %m, compute_log_sumexp = false, scale = 0.125)

// Flash attention.
func.func @flash(%q: !aten.tensor<1x8x16x64xbf16, device = "cuda:0">, %k: !aten.tensor<1x2x16x64xbf16, device = "cuda:0">) -> !aten.tensor<1x8x16x64xbf16, device = "cuda:0"> {
  %0 = aten.unsqueeze(%k, dim = 2) : !aten.tensor<1x2x1x16x64xbf16, device = "cuda:0">
  %1 = aten.expand(%0, size = [1, 2, 4, 16, 64]) : !aten.tensor<1x2x4x16x64xbf16, strides = [2048, 1024, 0, 64, 1], device = "cuda:0">
  %2 = aten.clone(%1, memory_format = torch.contiguous_format) : !aten.tensor<1x2x4x16x64xbf16, device = "cuda:0">
  %3 = aten._unsafe_view(%2, size = [1, 8, 16, 64]) : !aten.tensor<1x8x16x64xbf16, device = "cuda:0">
  %y, %l, %a, %b, %c, %d, %e, %f, %g = aten._scaled_dot_product_flash_attention(%q, %3, %3, is_causal = true) : !aten.tensor<1x8x16x64xbf16, device = "cuda:0">, !aten.tensor<1x8x16xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<2xui64>, !aten.tensor<ui64>, none
  func.return %y : !aten.tensor<1x8x16x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: @flash
// CHECK-NEXT: aten._scaled_dot_product_flash_attention(%q, %k, %k, is_causal = true)

// A forward graph, whose backward graph reads the sums of the scores: it keeps its copies.
func.func @forward(%q: !aten.tensor<1x8x16x64xbf16, device = "cuda:0">, %k: !aten.tensor<1x2x16x64xbf16, device = "cuda:0">) -> (!aten.tensor<1x8x16x64xbf16, device = "cuda:0">, !aten.tensor<1x8x16xf32, device = "cuda:0">) {
  %0 = aten.unsqueeze(%k, dim = 2) : !aten.tensor<1x2x1x16x64xbf16, device = "cuda:0">
  %1 = aten.expand(%0, size = [1, 2, 4, 16, 64]) : !aten.tensor<1x2x4x16x64xbf16, strides = [2048, 1024, 0, 64, 1], device = "cuda:0">
  %2 = aten.clone(%1, memory_format = torch.contiguous_format) : !aten.tensor<1x2x4x16x64xbf16, device = "cuda:0">
  %3 = aten._unsafe_view(%2, size = [1, 8, 16, 64]) : !aten.tensor<1x8x16x64xbf16, device = "cuda:0">
  %y, %l, %a, %b, %c, %d, %e, %f, %g = aten._scaled_dot_product_flash_attention(%q, %3, %3) : !aten.tensor<1x8x16x64xbf16, device = "cuda:0">, !aten.tensor<1x8x16xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<2xui64>, !aten.tensor<ui64>, none
  func.return %y, %l : !aten.tensor<1x8x16x64xbf16, device = "cuda:0">, !aten.tensor<1x8x16xf32, device = "cuda:0">
}
// CHECK-LABEL: @forward
// CHECK: %[[COPY:.*]] = aten._unsafe_view
// CHECK-NEXT: aten._scaled_dot_product_flash_attention(%q, %[[COPY]], %[[COPY]])
// CHECK: remark: [graph-match-patterns] passed: aten._scaled_dot_product_cudnn_attention: 'grouped_heads_cudnn' replaces 9 ops
