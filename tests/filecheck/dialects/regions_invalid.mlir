// RUN: inductile-opt %s --split-input-file --verify-diagnostics
// What a call of a higher-order operator must say of the functions that are its bodies.

func.func @number(%p: !aten.tensor<i1>, %x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{gives 1 values to @two, which takes 2}}
  %y = aten.call "higher_order::cond"(%p, @two, @two, [%x]) : !aten.tensor<4xf32>
  func.return
}
func.func @two(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  func.return %x : !aten.tensor<4xf32>
}
// -----
func.func @type(%x: !aten.tensor<4x3xf32>) {
  // expected-error @unknown {{argument 0 of @row is !aten.tensor<4xf32>, and a row of !aten.tensor<4x3xf32> is given}}
  %y = aten.call "higher_order::map_impl"(@row, [%x], []) : !aten.tensor<4x4xf32>
  func.return
}
func.func @row(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  func.return %x : !aten.tensor<4xf32>
}
// -----
func.func @results(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{takes 2 results of @same, which returns 1}}
  %y, %z = aten.call "higher_order::invoke_subgraph"(@same, "same", %x) : !aten.tensor<4xf32>, !aten.tensor<4xf32>
  func.return
}
func.func @same(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  func.return %x : !aten.tensor<4xf32>
}
// -----
func.func @missing(%p: !aten.tensor<i1>, %x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{calls @none, and there is no such function}}
  %y = aten.call "higher_order::cond"(%p, @same, @none, [%x]) : !aten.tensor<4xf32>
  func.return
}
func.func @same(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  func.return %x : !aten.tensor<4xf32>
}
// -----
func.func @view(%p: !aten.tensor<i1>, %x: !aten.tensor<4x3xf32>) {
  // expected-error @unknown {{@turned returns a view of an argument or of another result: return a copy}}
  %y = aten.call "higher_order::cond"(%p, @turned, @turned, [%x]) : !aten.tensor<3x4xf32>
  func.return
}
func.func @turned(%x: !aten.tensor<4x3xf32>) -> !aten.tensor<3x4xf32, strides = [1, 3]> {
  %0 = aten.t(%x) : !aten.tensor<3x4xf32, strides = [1, 3]>
  func.return %0 : !aten.tensor<3x4xf32, strides = [1, 3]>
}
// -----
func.func @nothing(%x: !aten.tensor<4xf32>) {
  // expected-error @unknown {{loops over the rows of nothing}}
  %y = aten.call "higher_order::map_impl"(@same, [], [%x]) : !aten.tensor<4x4xf32>
  func.return
}
func.func @same(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  func.return %x : !aten.tensor<4xf32>
}
// -----
// expected-error @unknown {{@again calls itself, directly or through others}}
module {
  func.func @again(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
    %y = aten.call "higher_order::invoke_subgraph"(@other, "other", %x) : !aten.tensor<4xf32>
    func.return %y : !aten.tensor<4xf32>
  }
  func.func @other(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
    %y = func.call @again(%x) : (!aten.tensor<4xf32>) -> !aten.tensor<4xf32>
    func.return %y : !aten.tensor<4xf32>
  }
}
