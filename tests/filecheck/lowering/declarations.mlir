// A function without a body stays as it is; what calls it cannot run, and is refused by name.
// RUN: not inductile-opt %s --split-input-file --target cpp --pipeline default 2>&1 | filecheck %s

// CHECK: error: @caller calls @callee, which has no body; define @callee
func.func @caller(%x: !aten.tensor<4x4xf32>, %w: !aten.tensor<4x4xf32> {frozen}) -> !aten.tensor<4x4xf32> {
  %e = aten.exp(%w) : !aten.tensor<4x4xf32>
  %k = func.call @callee(%e) : (!aten.tensor<4x4xf32>) -> !aten.tensor<4x4xf32>
  %y = aten.mm(%x, %k) : !aten.tensor<4x4xf32>
  func.return %y : !aten.tensor<4x4xf32>
}
func.func private @callee(!aten.tensor<4x4xf32> {frozen}) -> !aten.tensor<4x4xf32>

// -----

// CHECK: error: 'func.func' op has several blocks: there is no control flow between blocks
func.func @blocks(%x: !aten.tensor<4x4xf32>) -> !aten.tensor<4x4xf32> {
  func.return %x : !aten.tensor<4x4xf32>
^bb1(%y: !aten.tensor<4x4xf32>):
  func.return %y : !aten.tensor<4x4xf32>
}

// -----

// CHECK: func.func private @marked(
func.func private @marked(!aten.tensor<4x4xf32> {frozen}) -> !aten.tensor<4x4xf32>
