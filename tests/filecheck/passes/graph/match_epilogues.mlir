// RUN: inductile-opt %s -p graph-match-patterns{patterns="addmm_relu"} | filecheck %s
// RUN: inductile-opt %s -p graph-match-patterns | filecheck %s --check-prefix=DEFAULT
// DEFAULT-NOT: activation
// RUN: inductile-opt %s -p graph-match-patterns{patterns="addmm_gelu"} --remarks 2>&1 | filecheck %s --check-prefix=GELU

// A linear layer of three dimensions and its relu, on a GPU.
func.func @relu(%x: !aten.tensor<6x8xbf16, device = "cuda:0">, %w: !aten.tensor<8x4xbf16, strides = [1, 8], device = "cuda:0">, %b: !aten.tensor<4xbf16, device = "cuda:0">) -> !aten.tensor<2x3x4xbf16, device = "cuda:0"> {
  %0 = aten.addmm(%b, %x, %w) : !aten.tensor<6x4xbf16, device = "cuda:0">
  %1 = aten.view(%0, size = [2, 3, 4]) : !aten.tensor<2x3x4xbf16, device = "cuda:0">
  %2 = aten.relu(%1) : !aten.tensor<2x3x4xbf16, device = "cuda:0">
  func.return %2 : !aten.tensor<2x3x4xbf16, device = "cuda:0">
}
// CHECK-LABEL: @relu
// CHECK-NEXT: %[[P:.*]] = aten._addmm_activation(%b, %x, %w)
// CHECK-NEXT: aten.view(%[[P]], size = [2, 3, 4])
// CHECK-NEXT: func.return

// Only by name.
func.func @gelu(%x: !aten.tensor<6x8xbf16, device = "cuda:0">, %w: !aten.tensor<8x4xbf16, device = "cuda:0">, %b: !aten.tensor<4xbf16, device = "cuda:0">) -> !aten.tensor<6x4xbf16, device = "cuda:0"> {
  %0 = aten.addmm(%b, %x, %w) : !aten.tensor<6x4xbf16, device = "cuda:0">
  %1 = aten.gelu(%0, approximate = "tanh") : !aten.tensor<6x4xbf16, device = "cuda:0">
  func.return %1 : !aten.tensor<6x4xbf16, device = "cuda:0">
}
// CHECK-LABEL: @gelu
// CHECK-NEXT: aten.addmm
// GELU-LABEL: @gelu
// GELU-NEXT: aten._addmm_activation(%b, %x, %w, use_gelu = true)

func.func @float32(%x: !aten.tensor<6x8xf32, device = "cuda:0">, %w: !aten.tensor<8x4xf32, device = "cuda:0">, %b: !aten.tensor<4xf32, device = "cuda:0">, %u: !aten.tensor<4x4xf32, device = "cuda:0">) -> (!aten.tensor<6x4xf32, device = "cuda:0">, !aten.tensor<6x4xf32, device = "cuda:0">) {
  %0 = aten.addmm(%b, %x, %w) : !aten.tensor<6x4xf32, device = "cuda:0">
  %1 = aten.gelu(%0, approximate = "tanh") : !aten.tensor<6x4xf32, device = "cuda:0">
  %2 = aten.addmm(%b, %1, %u) : !aten.tensor<6x4xf32, device = "cuda:0">
  %3 = aten.relu(%2) : !aten.tensor<6x4xf32, device = "cuda:0">
  func.return %1, %3 : !aten.tensor<6x4xf32, device = "cuda:0">, !aten.tensor<6x4xf32, device = "cuda:0">
}
// CHECK-LABEL: @float32
// CHECK: aten.gelu
// CHECK: aten._addmm_activation(%b, %{{.*}}, %u)

func.func @cpu(%x: !aten.tensor<6x8xf32>, %w: !aten.tensor<8x4xf32>, %b: !aten.tensor<4xf32>) -> !aten.tensor<6x4xf32> {
  %0 = aten.addmm(%b, %x, %w) : !aten.tensor<6x4xf32>
  %1 = aten.relu(%0) : !aten.tensor<6x4xf32>
  func.return %1 : !aten.tensor<6x4xf32>
}
// CHECK-LABEL: @cpu
// CHECK-NOT: activation
// GELU: missed: aten.gelu: matches 'addmm_gelu', but the library is not as exact in f32
