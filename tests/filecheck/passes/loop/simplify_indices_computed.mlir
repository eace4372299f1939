// RUN: inductile-opt %s -p loop-simplify-indices,loop-dce | filecheck %s

// What is computed of one axis in floating point and converted to an integer is an expression.
func.func @nearest(%x: !aten.tensor<4x7xf32>) -> !aten.tensor<8x10xf32> attributes {symbols = []} {
  %y = loop.generate (i0 in 8, i1 in 10) {
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
    %i = loop.index i0
    %fi = scalar.cast %i : i64 to f32
    %fi1 = arith.mulf %fi, %one : f32
    %fi2 = arith.addf %fi1, %zero : f32
    %fi3 = arith.mulf %fi2, %half : f32
    %row = scalar.cast %fi3 : f32 to i64
    %none = arith.constant 0 : i64
    %four = arith.constant 4 : i64
    %negative = arith.cmpi slt, %row, %none : i64
    %end = arith.addi %row, %four : i64
    %wrapped = arith.select %negative, %end, %row : i64
    %step = arith.constant 0.7 : f32
    %j = loop.index i1
    %fj = scalar.cast %j : i64 to f32
    %fj1 = arith.mulf %fj, %step : f32
    %column = scalar.cast %fj1 : f32 to i64
    %v = loop.load %x[d0, d1] (d0 = %wrapped, d1 = %column)
    loop.yield %v
  } : !aten.tensor<8x10xf32>
  func.return %y : !aten.tensor<8x10xf32>
}
// CHECK-LABEL: func.func @nearest
// CHECK-NEXT: %y = loop.generate (i0 in 8, i1 in 10) {
// CHECK-NEXT:   loop.load %x[i0 floordiv 2, (2*i1) floordiv 3]
// CHECK-NEXT:   loop.yield

// Clamps, and a comparison that is false at all points. An addition of zero stays where an operand is -0.0.
func.func @linear(%x: !aten.tensor<64xf32>) -> !aten.tensor<128xf32> attributes {symbols = []} {
  %y = loop.generate (i0 in 128) {
    %half = arith.constant 0.5 : f32
    %zero = arith.constant 0.0 : f32
    %i = loop.index i0
    %f = scalar.cast %i : i64 to f32
    %f1 = arith.addf %f, %half : f32
    %f2 = arith.mulf %f1, %half : f32
    %f3 = arith.subf %f2, %half : f32
    %before = arith.cmpf olt, %f3, %zero : f32
    %place = arith.select %before, %zero, %f3 : f32
    %low = scalar.cast %place : f32 to i64
    %one = arith.constant 1 : i64
    %last = arith.constant 63 : i64
    %next = arith.addi %low, %one : i64
    %high = arith.minsi %next, %last : i64
    %a = loop.load %x[d0] (d0 = %low)
    %b = loop.load %x[d0] (d0 = %high)
    %whole = scalar.cast %low : i64 to f32
    %weight = arith.subf %place, %whole : f32
    %below = arith.cmpf olt, %weight, %zero : f32
    %clamped = arith.select %below, %zero, %weight : f32
    %minus = arith.negf %f : f32
    %plus = arith.addf %minus, %zero : f32
    %d = arith.subf %b, %a : f32
    %e = arith.mulf %d, %clamped : f32
    %r = arith.addf %e, %plus : f32
    loop.yield %r
  } : !aten.tensor<128xf32>
  func.return %y : !aten.tensor<128xf32>
}
// CHECK-LABEL: func.func @linear
// CHECK:      %place = arith.select %before, %zero, %f3 : f32
// CHECK-NEXT: %low = loop.index max(i0 - 1, 0) floordiv 2
// CHECK-NEXT: %a = loop.load %x[max(i0 - 1, 0) floordiv 2]
// CHECK-NEXT: %b = loop.load %x[min(max(i0 - 1, 0) floordiv 2 + 1, 63)]
// CHECK-NEXT: %whole = scalar.cast %low : i64 to f32
// CHECK-NEXT: %weight = arith.subf %place, %whole : f32
// CHECK-NEXT: %minus = arith.negf %f : f32
// CHECK-NEXT: %plus = arith.addf %minus, %zero : f32
// CHECK-NEXT: arith.subf %b, %a : f32
// CHECK-NEXT: arith.mulf %{{.*}}, %weight : f32

// No line: a root, an axis of unknown size, two axes, a conversion out of range.
func.func @others(%x: !aten.tensor<64xf32>, %z: !aten.tensor<(s0)xf32>) -> !aten.tensor<(s0)x32xf32> attributes {symbols = [#sym.symbol<s0, arg = 1, dim = 0, min = 2, max = 64>]} {
  %y = loop.generate (i0 in s0, i1 in 32) {
    %half = arith.constant 0.5 : f32
    %huge = arith.constant 1.0e+30 : f32
    %i = loop.index i0
    %f = scalar.cast %i : i64 to f32
    %f1 = arith.mulf %f, %half : f32
    %unknown = scalar.cast %f1 : f32 to i64
    %j = loop.index i1
    %g = scalar.cast %j : i64 to f32
    %square = arith.mulf %g, %g : f32
    %curve = scalar.cast %square : f32 to i64
    %both = arith.mulf %f, %g : f32
    %two = scalar.cast %both : f32 to i64
    %g1 = arith.mulf %g, %huge : f32
    %far = scalar.cast %g1 : f32 to i64
    %a = loop.load %x[(d0 + d1 + d2 + d3) mod 64] (d0 = %unknown, d1 = %curve, d2 = %two, d3 = %far)
    loop.yield %a
  } : !aten.tensor<(s0)x32xf32>
  func.return %y : !aten.tensor<(s0)x32xf32>
}
// CHECK-LABEL: func.func @others
// CHECK: loop.load %x[(d0 + d1 + d2 + d3) mod 64]
