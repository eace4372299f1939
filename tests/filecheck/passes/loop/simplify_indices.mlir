// RUN: inductile-opt %s -p loop-simplify-indices,loop-dce | filecheck %s

func.func @folded(%x: !aten.tensor<(s0)x4xf32>, %j: !aten.tensor<4xi64>) -> (!aten.tensor<(s0)x4xf32>, !aten.tensor<(s0)x4xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {
  %y = loop.generate (i0 in s0, i1 in 4) {
    %i = loop.index i0
    %zero = arith.constant 0 : i64
    %n = loop.index s0
    %inside = arith.cmpi sge, %i, %zero : i64
    %below = arith.cmpi slt, %i, %n : i64
    %ok = arith.andi %inside, %below : i1
    loop.assert %ok, "index is out of bounds" : IndexError
    %negative = arith.cmpi slt, %i, %zero : i64
    %wrapped = arith.addi %i, %n : i64
    %w = arith.select %negative, %wrapped, %i : i64
    %other = arith.constant 1.0 : f32
    %v = loop.load %x[d0, i1 mod 4] (d0 = %w) if %ok else %other
    %u = loop.load %x[d0, (4*i0 + i1) mod 4] (d0 = %i) if %negative else %other
    %loaded = loop.load %j[i1]
    %k = loop.index 2*d0 + d1 (d0 = %i, d1 = %loaded)
    %far = loop.index 4*s0 + 100
    %c = arith.cmpi slt, %k, %far : i64
    loop.assert %c, "not known" : IndexError
    %t = loop.load %x[d0, (i1 + d1) mod 4] (d0 = %loaded, d1 = %i) if %c else %other
    %s = arith.addf %v, %u : f32
    %s2 = arith.addf %s, %t : f32
    loop.yield %s2
  } : !aten.tensor<(s0)x4xf32>
  %z = loop.scatter set (i0 in s0, i1 in 2) into %y[d0, d1] unique masked {
    %v = loop.load %x[i0, i1]
    %i = loop.index i0
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %a = loop.index i1
    %b = arith.addi %a, %one : i64
    %inside = arith.cmpi sle, %b, %two : i64
    loop.yield %v, %i, %b, %inside
  } : !aten.tensor<(s0)x4xf32>
  func.return %y, %z : !aten.tensor<(s0)x4xf32>, !aten.tensor<(s0)x4xf32>
}

// CHECK-LABEL: func.func @folded
// CHECK-NEXT: %y = loop.generate (i0 in s0, i1 in 4) {
// CHECK-NEXT: %other = arith.constant 1.000000e+00 : f32
// CHECK: %v_1 = loop.load %x[i0, i1]
// CHECK-NEXT: loop.yield %v_1
