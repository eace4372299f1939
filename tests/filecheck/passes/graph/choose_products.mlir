// RUN: inductile-opt %s --target cuda:90 -p graph-choose-products | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p graph-choose-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'graph-choose-products{choices=measured}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'graph-choose-products{choices=none}' | filecheck %s --check-prefix=NONE
// RUN: inductile-opt %s --target cuda:90 -p 'graph-choose-products{given-back="product 192x512x512x64 bf16 with add"}' | filecheck %s --check-prefix=GIVEN
// RUN: inductile-opt %s --target cuda:103 -p graph-choose-products | filecheck %s --check-prefix=NONE
// RUN: inductile-opt %s --target cpp -p graph-choose-products | filecheck %s --check-prefix=NONE
// NONE-NOT: implementation

// Scores with something behind them were faster as a nest, on an H200; a little larger, too. Alone they were not.
func.func @faster(%x: !aten.tensor<192x512x64xbf16, device = "cuda:0">, %w: !aten.tensor<192x64x512xbf16, strides = [32768, 1, 64], device = "cuda:0">, %b: !aten.tensor<512xbf16, device = "cuda:0">) -> (!aten.tensor<192x512x512xbf16, device = "cuda:0">, !aten.tensor<192x512x512xbf16, device = "cuda:0">) {
  %0 = aten.bmm(%x, %w) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
  %1 = aten.add.Tensor(%0, %b) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
  %2 = aten.bmm(%x, %w) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
  func.return %1, %2 : !aten.tensor<192x512x512xbf16, device = "cuda:0">, !aten.tensor<192x512x512xbf16, device = "cuda:0">
}
// CHECK-LABEL: @faster
// CHECK: %0 = aten.bmm(%x, %w) {implementation = "nest", tile = array<i64: 64, 64, 64, 4, 6>, chosen_for = "{{.*}}", precision = "bf16"}
// CHECK: %2 = aten.bmm(%x, %w) :
// REMARK: passed: aten.bmm: a nest, which was faster for product 192x512x512x64 bf16 with add, add, relu library=106.9 nest=63.6
// REMARK: missed: aten.bmm: the library, which was faster for product 192x512x512x64 bf16 library=34.9 nest=39.4
// GIVEN-LABEL: @faster
// GIVEN-NEXT: aten.bmm(%x, %w) :
// GIVEN-LABEL: @seen
// GIVEN-NEXT: aten.mm(%x, %w) {implementation = "nest"

// Any number of rows: what was seen decides. Nothing like the second one was measured.
func.func @seen(%x: !aten.tensor<(s0)x960xbf16, device = "cuda:0">, %w: !aten.tensor<960x1280xbf16, strides = [1, 960], device = "cuda:0">, %v: !aten.tensor<960x90xbf16, strides = [1, 960], device = "cuda:0">) -> (!aten.tensor<(s0)x1280xbf16, device = "cuda:0">, !aten.tensor<(s0)x90xbf16, device = "cuda:0">) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 120>]} {
  %0 = aten.mm(%x, %w) : !aten.tensor<(s0)x1280xbf16, device = "cuda:0">
  %1 = aten.relu(%0) : !aten.tensor<(s0)x1280xbf16, device = "cuda:0">
  %2 = aten.mm(%x, %v) : !aten.tensor<(s0)x90xbf16, device = "cuda:0">
  func.return %1, %2 : !aten.tensor<(s0)x1280xbf16, device = "cuda:0">, !aten.tensor<(s0)x90xbf16, device = "cuda:0">
}
// CHECK-LABEL: @seen
// CHECK: %0 = aten.mm(%x, %w) {implementation = "nest", tile = array<i64: 64, 32, 128, 4, 5>, chosen_for = "{{.*}}", precision = "bf16"}
// CHECK: %2 = aten.mm(%x, %v) :
// REMARK: missed: aten.mm: the library: nothing like product 1x120x90x960 bf16 was measured

// What a softmax reads would be computed in its kernel: the library's kernel is as good behind it, so nothing is behind
// the product.
func.func @read(%x: !aten.tensor<192x512x64xbf16, device = "cuda:0">, %w: !aten.tensor<192x64x512xbf16, strides = [32768, 1, 64], device = "cuda:0">, %b: !aten.tensor<512xbf16, device = "cuda:0">) -> !aten.tensor<192x512x512xbf16, device = "cuda:0"> {
  %0 = aten.bmm(%x, %w) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
  %1 = aten.add.Tensor(%0, %b) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
  %2 = aten._softmax(%1, dim = -1, half_to_float = false) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
  func.return %2 : !aten.tensor<192x512x512xbf16, device = "cuda:0">
}
// CHECK-LABEL: @read
// CHECK-NEXT: aten.bmm(%x, %w) :

// A nest whose programs take turns was faster, which needs sizes that are constants.
func.func @turns(%x: !aten.tensor<8192x768xbf16, device = "cuda:0">, %y: !aten.tensor<(s0)x768xbf16, device = "cuda:0">, %w: !aten.tensor<768x3072xbf16, strides = [1, 768], device = "cuda:0">) -> (!aten.tensor<8192x3072xbf16, device = "cuda:0">, !aten.tensor<(s0)x3072xbf16, device = "cuda:0">) attributes {symbols = [#sym.symbol<s0, arg = 1, dim = 0, min = 2, hint = 8192>]} {
  %0 = aten.mm(%x, %w) : !aten.tensor<8192x3072xbf16, device = "cuda:0">
  %1 = aten.relu(%0) : !aten.tensor<8192x3072xbf16, device = "cuda:0">
  %2 = aten.mm(%y, %w) : !aten.tensor<(s0)x3072xbf16, device = "cuda:0">
  %3 = aten.relu(%2) : !aten.tensor<(s0)x3072xbf16, device = "cuda:0">
  func.return %1, %3 : !aten.tensor<8192x3072xbf16, device = "cuda:0">, !aten.tensor<(s0)x3072xbf16, device = "cuda:0">
}
// CHECK-LABEL: @turns
// CHECK: aten.mm(%x, %w) {implementation = "nest", tile = array<i64: 128, 128, 64, 4, 3, 0, 2>,
// CHECK: aten.mm(%y, %w) :

// A gate and what it gates: what is done with both is behind the first one, and the second one is alone.
func.func @gated(%x: !aten.tensor<8192x768xbf16, device = "cuda:0">, %w: !aten.tensor<768x3072xbf16, strides = [1, 768], device = "cuda:0">, %v: !aten.tensor<768x3072xbf16, strides = [1, 768], device = "cuda:0">) -> !aten.tensor<8192x3072xbf16, device = "cuda:0"> {
  %0 = aten.mm(%x, %w) : !aten.tensor<8192x3072xbf16, device = "cuda:0">
  %1 = aten.silu(%0) : !aten.tensor<8192x3072xbf16, device = "cuda:0">
  %2 = aten.mm(%x, %v) : !aten.tensor<8192x3072xbf16, device = "cuda:0">
  %3 = aten.mul.Tensor(%1, %2) : !aten.tensor<8192x3072xbf16, device = "cuda:0">
  func.return %3 : !aten.tensor<8192x3072xbf16, device = "cuda:0">
}
// CHECK-LABEL: @gated
// CHECK: aten.mm(%x, %w) {implementation = "nest"
// CHECK: aten.mm(%x, %v) :
