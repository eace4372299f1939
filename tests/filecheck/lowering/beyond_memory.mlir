// RUN: not inductile-opt %s --target cpp --pipeline default 2>&1 | filecheck %s

// Each number of the index has 64 bits, and the address has not.

func.func @far(%x: !aten.tensor<(s0)x4xf32>) -> !aten.tensor<4xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %y = loop.generate (i0 in 4) {
    %v = loop.load %x[4611686018427387904, i0]
    loop.yield %v
  } : !aten.tensor<4xf32>
  func.return %y : !aten.tensor<4xf32>
}

// CHECK: the element at [4611686018427387904, i0] lies beyond all memory; correct the index or the strides
