// RUN: not inductile-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: error: 'func.func' op argument 0 is marked frozen and is no tensor: it is index
func.func @number(%n: index {frozen}, %x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  func.return %x : !aten.tensor<4xf32>
}

// -----

// CHECK: error: 'func.func' op operand 0 of a kept call is no frozen argument
func.func @input(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = func.call @input_weights(%x) {kept} : (!aten.tensor<4xf32>) -> !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}
func.func private @input_weights(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> attributes {kept} {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: error: 'func.func' op is kept, and a call of it says otherwise
func.func @plain(%x: !aten.tensor<4xf32> {frozen}) -> !aten.tensor<4xf32> {
  %0 = func.call @plain_weights(%x) : (!aten.tensor<4xf32>) -> !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}
func.func private @plain_weights(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> attributes {kept} {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: error: 'func.func' op is kept, and not private
func.func @public(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> attributes {kept} {
  func.return %x : !aten.tensor<4xf32>
}

// -----

// CHECK: error: 'func.func' op is kept, and has no body
func.func private @declared(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> attributes {kept}

// -----

// CHECK: error: 'func.func' op 1 arguments have attributes, and it takes 2
"func.func"() <{sym_name = "counted", function_type = (!aten.tensor<4xf32>, !aten.tensor<4xf32>) -> !aten.tensor<4xf32>, arg_attrs = [{frozen}]}> ({
^bb0(%x: !aten.tensor<4xf32>, %w: !aten.tensor<4xf32>):
  "func.return"(%x) : (!aten.tensor<4xf32>) -> ()
}) : () -> ()

// -----

// CHECK: error: 'func.func' op is 'public': a function is private, or says nothing and is public
func.func public @said(%x: !aten.tensor<4xf32> {frozen}) -> !aten.tensor<4xf32> {
  func.return %x : !aten.tensor<4xf32>
}
