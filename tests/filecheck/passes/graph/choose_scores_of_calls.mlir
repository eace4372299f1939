// RUN: inductile-opt %s --target cuda:90 -p graph-choose-scores | filecheck %s

// A window that was written out, as training on an H200 has it: beside cuDNN's call, whose gradients are a plain call.
func.func @joint(%primals: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, %primals_1: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, %primals_2: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, %tangents: !aten.tensor<4x16x2048x64xbf16, device = "cuda:0"> {tangent}) -> (!aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">) attributes {symbols = [], forward_results = 1 : i64} {
  %arange = aten.arange(end = 2048, device = "cuda:0", pin_memory = false) : !aten.tensor<2048xi64, device = "cuda:0">
  %unsqueeze = aten.unsqueeze(%arange, dim = 1) : !aten.tensor<2048x1xi64, device = "cuda:0">
  %unsqueeze_1 = aten.unsqueeze(%arange, dim = 0) : !aten.tensor<1x2048xi64, device = "cuda:0">
  %le = aten.le.Tensor(%unsqueeze_1, %unsqueeze) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %sub = aten.sub.Tensor(%unsqueeze, %unsqueeze_1) : !aten.tensor<2048x2048xi64, device = "cuda:0">
  %lt = aten.lt.Scalar(%sub, other = 256) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %bitwise_and = aten.bitwise_and.Tensor(%le, %lt) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %transpose = aten.transpose.int(%primals_1, dim0 = -2, dim1 = -1) : !aten.tensor<4x16x64x2048xbf16, strides = [2097152, 131072, 1, 64], device = "cuda:0">
  %view = aten.view(%primals, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %view_1 = aten.view(%transpose, size = [64, 64, 2048]) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %bmm = aten.bmm(%view, %view_1) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %view_2 = aten.view(%bmm, size = [4, 16, 2048, 2048]) : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %div = aten.mul.Scalar(%view_2, other = 0.125) : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %bitwise_not = aten.bitwise_not(%bitwise_and) : !aten.tensor<2048x2048xi1, device = "cuda:0">
  %masked_fill = aten.masked_fill.Scalar(%div, %bitwise_not, value = -inf) : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %_to_copy = aten._to_copy(%masked_fill, dtype = torch.float32) : !aten.tensor<4x16x2048x2048xf32, device = "cuda:0">
  %_softmax = aten._softmax(%_to_copy, dim = -1, half_to_float = false) : !aten.tensor<4x16x2048x2048xf32, device = "cuda:0">
  %_to_copy_1 = aten._to_copy(%_softmax, dtype = torch.bfloat16) : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %scalar_tensor = aten.full(size = [], fill_value = 0.0, dtype = torch.float32, device = "cuda:0") : !aten.tensor<f32, device = "cuda:0">
  %scalar_tensor_1 = aten.full(size = [], fill_value = -inf, dtype = torch.float32, device = "cuda:0") : !aten.tensor<f32, device = "cuda:0">
  %where = aten.where.self(%bitwise_not, %scalar_tensor_1, %scalar_tensor) : !aten.tensor<2048x2048xf32, device = "cuda:0">
  %_to_copy_2 = aten._to_copy(%where, dtype = torch.bfloat16) : !aten.tensor<2048x2048xbf16, device = "cuda:0">
  %_scaled_dot_product_cudnn_attention, %_scaled_dot_product_cudnn_attention_1, %_scaled_dot_product_cudnn_attention_2, %_scaled_dot_product_cudnn_attention_3, %_scaled_dot_product_cudnn_attention_4, %_scaled_dot_product_cudnn_attention_5, %_scaled_dot_product_cudnn_attention_6, %_scaled_dot_product_cudnn_attention_7, %_scaled_dot_product_cudnn_attention_8 = aten._scaled_dot_product_cudnn_attention(%primals, %primals_1, %primals_2, %_to_copy_2, compute_log_sumexp = true, scale = 0.125) {placement = "forward"} : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x1xf32, device = "cuda:0">, none, none, index, index, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, none
  %view_3 = aten.view(%_to_copy_1, size = [64, 2048, 2048]) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %view_4 = aten.view(%primals_2, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %bmm_1 = aten.bmm(%view_3, %view_4) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %view_5 = aten.view(%bmm_1, size = [4, 16, 2048, 64]) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %either_way = aten.call pure "inductile::either_way"(%_scaled_dot_product_cudnn_attention, %view_5, 0) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %view_6 = aten.view(%tangents, size = [64, 2048, 64]) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %transpose_1 = aten.transpose.int(%view_3, dim0 = 1, dim1 = 2) : !aten.tensor<64x2048x2048xbf16, strides = [4194304, 1, 2048], device = "cuda:0">
  %bmm_2 = aten.bmm(%transpose_1, %view_6) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %transpose_2 = aten.transpose.int(%view_4, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %bmm_3 = aten.bmm(%view_6, %transpose_2) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %view_7 = aten.view(%bmm_2, size = [4, 16, 2048, 64]) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %view_8 = aten.view(%bmm_3, size = [4, 16, 2048, 2048]) : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %of_way = aten.call pure "inductile::of_way"(%view_7, 0, 1) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %_scaled_dot_product_cudnn_attention_backward, %_scaled_dot_product_cudnn_attention_backward_1, %_scaled_dot_product_cudnn_attention_backward_2 = aten.call "aten::_scaled_dot_product_cudnn_attention_backward"(%tangents, %primals, %primals_1, %primals_2, %_scaled_dot_product_cudnn_attention, %_scaled_dot_product_cudnn_attention_1, %_scaled_dot_product_cudnn_attention_6, %_scaled_dot_product_cudnn_attention_7, %_to_copy_2, none, none, 2048, 2048, 0.0, false, scale = 0.125) {placement = "backward"} : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %of_way_1 = aten.call pure "inductile::of_way"(%_scaled_dot_product_cudnn_attention_backward_2, 0, 0) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %add = aten.add.Tensor(%of_way, %of_way_1) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %of_way_2 = aten.call pure "inductile::of_way"(%_scaled_dot_product_cudnn_attention_backward_1, 0, 0) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %of_way_3 = aten.call pure "inductile::of_way"(%_scaled_dot_product_cudnn_attention_backward, 0, 0) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %_to_copy_3 = aten._to_copy(%view_8, dtype = torch.float32, layout = torch.strided, device = "cuda:0") : !aten.tensor<4x16x2048x2048xf32, device = "cuda:0">
  %_softmax_backward_data = aten._softmax_backward_data(%_to_copy_3, %_softmax, dim = -1, input_dtype = torch.float32) : !aten.tensor<4x16x2048x2048xf32, device = "cuda:0">
  %_to_copy_4 = aten._to_copy(%_softmax_backward_data, dtype = torch.bfloat16, layout = torch.strided, device = "cuda:0") : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %masked_fill_1 = aten.masked_fill.Scalar(%_to_copy_4, %bitwise_not, value = 0) : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %div_1 = aten.mul.Scalar(%masked_fill_1, other = 0.125) : !aten.tensor<4x16x2048x2048xbf16, device = "cuda:0">
  %view_9 = aten.view(%div_1, size = [64, 2048, 2048]) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
  %transpose_3 = aten.transpose.int(%view, dim0 = 1, dim1 = 2) : !aten.tensor<64x64x2048xbf16, strides = [131072, 1, 64], device = "cuda:0">
  %bmm_4 = aten.bmm(%transpose_3, %view_9) : !aten.tensor<64x64x2048xbf16, device = "cuda:0">
  %transpose_4 = aten.transpose.int(%view_1, dim0 = 1, dim1 = 2) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %bmm_5 = aten.bmm(%view_9, %transpose_4) : !aten.tensor<64x2048x64xbf16, device = "cuda:0">
  %view_10 = aten.view(%bmm_4, size = [4, 16, 64, 2048]) : !aten.tensor<4x16x64x2048xbf16, device = "cuda:0">
  %view_11 = aten.view(%bmm_5, size = [4, 16, 2048, 64]) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %of_way_4 = aten.call pure "inductile::of_way"(%view_10, 0, 1) : !aten.tensor<4x16x64x2048xbf16, device = "cuda:0">
  %of_way_5 = aten.call pure "inductile::of_way"(%view_11, 0, 1) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %add_1 = aten.add.Tensor(%of_way_3, %of_way_5) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  %transpose_5 = aten.transpose.int(%of_way_4, dim0 = -2, dim1 = -1) : !aten.tensor<4x16x2048x64xbf16, strides = [2097152, 131072, 1, 2048], device = "cuda:0">
  %add_2 = aten.add.Tensor(%of_way_2, %transpose_5) : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
  func.return %either_way, %add_1, %add_2, %add : !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">, !aten.tensor<4x16x2048x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: func.func @joint
// CHECK-NOT: cudnn
// CHECK: aten.bmm({{.*}}implementation = "nest"
// CHECK-NOT: inductile
// CHECK: func.return
