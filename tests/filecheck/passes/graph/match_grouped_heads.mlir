// RUN: inductile-opt %s -p graph-match-patterns --verify-each=numerics --remarks 2>&1 | filecheck %s

// Two heads of queries to one of keys and values: the attention finds the right one itself.
func.func @grouped(%q: !aten.tensor<2x8x1x4xf32>, %k: !aten.tensor<2x4x6x4xf32>, %v: !aten.tensor<2x4x6x4xf32>, %m: !aten.tensor<2x1x1x6xf32>) -> !aten.tensor<2x8x1x4xf32> {
  %0 = aten.unsqueeze(%k, dim = 2) : !aten.tensor<2x4x1x6x4xf32>
  %1 = aten.expand(%0, size = [2, 4, 2, 6, 4]) : !aten.tensor<2x4x2x6x4xf32, strides = [96, 24, 0, 4, 1]>
  %2 = aten.clone(%1, memory_format = torch.contiguous_format) : !aten.tensor<2x4x2x6x4xf32>
  %3 = aten._unsafe_view(%2, size = [2, 8, 6, 4]) : !aten.tensor<2x8x6x4xf32>
  %4 = aten.unsqueeze(%v, dim = 2) : !aten.tensor<2x4x1x6x4xf32>
  %5 = aten.expand(%4, size = [2, 4, 2, 6, 4]) : !aten.tensor<2x4x2x6x4xf32, strides = [96, 24, 0, 4, 1]>
  %6 = aten.clone(%5, memory_format = torch.contiguous_format) : !aten.tensor<2x4x2x6x4xf32>
  %7 = aten.view(%6, size = [2, 8, 6, 4]) : !aten.tensor<2x8x6x4xf32>
  %8, %9 = aten._scaled_dot_product_flash_attention_for_cpu(%q, %3, %7, %m, scale = 0.5) : !aten.tensor<2x8x1x4xf32>, !aten.tensor<2x8x1xf32, strides = [8, 1, 8]>
  func.return %8 : !aten.tensor<2x8x1x4xf32>
}
// CHECK-LABEL: @grouped
// CHECK-NEXT: %[[OUT:.*]], %{{.*}} = aten._scaled_dot_product_flash_attention_for_cpu(%q, %k, %v, %m, scale = 0.5)
// CHECK-NEXT: func.return %[[OUT]]

// The expansion repeats positions, not heads.
func.func @positions(%q: !aten.tensor<2x4x1x4xf32>, %k: !aten.tensor<2x4x1x4xf32>) -> !aten.tensor<2x4x1x4xf32> {
  %0 = aten.unsqueeze(%k, dim = 2) : !aten.tensor<2x4x1x1x4xf32>
  %1 = aten.expand(%0, size = [2, 4, 1, 6, 4]) : !aten.tensor<2x4x1x6x4xf32, strides = [16, 4, 4, 0, 1]>
  %2 = aten.clone(%1, memory_format = torch.contiguous_format) : !aten.tensor<2x4x1x6x4xf32>
  %3 = aten.view(%2, size = [2, 4, 6, 4]) : !aten.tensor<2x4x6x4xf32>
  %4 = aten.clone(%1, memory_format = torch.contiguous_format) : !aten.tensor<2x4x1x6x4xf32>
  %5 = aten.view(%4, size = [2, 4, 6, 4]) : !aten.tensor<2x4x6x4xf32>
  %6, %7 = aten._scaled_dot_product_flash_attention_for_cpu(%q, %3, %5) : !aten.tensor<2x4x1x4xf32>, !aten.tensor<2x4x1xf32, strides = [4, 1, 4]>
  func.return %6 : !aten.tensor<2x4x1x4xf32>
}
// CHECK-LABEL: @positions
// CHECK: %[[KEYS:.*]] = aten.view
// CHECK: aten._scaled_dot_product_flash_attention_for_cpu(%q, %[[KEYS]],

// CHECK: remark: [graph-match-patterns] passed: aten._scaled_dot_product_flash_attention_for_cpu: 'grouped_heads' replaces 9 ops
