// RUN: not inductile-opt %s --split-input-file 2>&1 | filecheck %s
// RUN: not inductile-run %s --random 0 2>&1 | filecheck %s --check-prefix=FIRST

// FIRST: error:
// CHECK: 'aten.call' op calls 'import_module::__call__.__call__', which is not the name of an operator
func.func @attribute(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.call "import_module::__call__.__call__"("this") : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'aten.call' op calls 'load_library::__call__', which is not the name of an operator
func.func @argument(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.call "higher_order::out_dtype"(operator("load_library::__call__"), %x) : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'aten.from_file' op calls aten.from_file, which may have effects outside its tensors
func.func @file(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.from_file(filename = "written_by_ir", shared = true, size = 4) : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'loop.assert' op cannot raise UnicodeDecodeError
func.func @assert(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = loop.generate (i0 in 4) {
    %1 = loop.load %x[i0]
    %c = arith.constant false
    loop.assert %c, "no" : UnicodeDecodeError
    loop.yield %1
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: the tensor is too large: it takes 2^63 bytes or more
func.func @size(%x: !aten.tensor<9000000000000000000x4xf32>) {
  func.return
}

// -----

// CHECK: a string is not closed on its line
func.func @string() attributes {a = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx} {
