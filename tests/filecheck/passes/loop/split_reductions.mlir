// RUN: inductile-opt %s -p "loop-split-reductions{min-length=512 parts=16}" | filecheck %s

func.func @whole(%x: !aten.tensor<64x32xf32>) -> (!aten.tensor<f32>, !aten.tensor<i64>) {
  %s = loop.generate () {
    %r = loop.reduce sum (r0 in 64, r1 in 32) {
      %v = loop.load %x[r0, r1]
      loop.yield %v
    }
    %c = arith.constant 2048.0 : f32
    %m = arith.divf %r, %c : f32
    loop.yield %m
  } : !aten.tensor<f32>
  %a = loop.generate () {
    %r, %i = loop.reduce argmax (r0 in 64, r1 in 32) {
      %v = loop.load %x[r0, r1]
      %k = loop.index 32*r0 + r1
      loop.yield %v, %k
    }
    loop.yield %i
  } : !aten.tensor<i64>
  func.return %s, %a : !aten.tensor<f32>, !aten.tensor<i64>
}
// Three rows: the long axis is split unevenly, for sum with zeros behind the end, for max with the last element.
func.func @ragged(%x: !aten.tensor<3x(s0)xf32>) -> (!aten.tensor<3xf32>, !aten.tensor<3xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1, min = 2, hint = 5000>]} {
  %s, %m = loop.generate (i0 in 3) {
    %e = loop.load %x[i0, 0]
    %r, %m = loop.reduce [sum, max] (r0 in s0) {
      %v = loop.load %x[i0, r0]
      %w = arith.mulf %v, %e : f32
      loop.yield %w, %v
    }
    loop.yield %r, %m
  } : !aten.tensor<3xf32>, !aten.tensor<3xf32>
  func.return %s, %m : !aten.tensor<3xf32>, !aten.tensor<3xf32>
}
// A combination of the program's own keeps its order.
func.func @custom(%x: !aten.tensor<1026xf32>) -> !aten.tensor<f32> {
  %s = loop.generate () {
    %one = arith.constant 0.0 : f32
    %r = loop.reduce custom init(%one) (r0 in 1026) {
      %v = loop.load %x[r0]
      loop.yield %v
    } combine {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<f32>
  func.return %s : !aten.tensor<f32>
}

// On a GPU columns are split by rows until there are enough programs; many rows are left whole.
func.func @gpu(%x: !aten.tensor<2048x512xf32, device = "cuda:0">) -> (!aten.tensor<512xf32, device = "cuda:0">, !aten.tensor<2048xf32, device = "cuda:0">) {
  %s = loop.generate (i0 in 512) {
    %r = loop.reduce sum (r0 in 2048) {
      %v = loop.load %x[r0, i0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<512xf32, device = "cuda:0">
  %t = loop.generate (i0 in 2048) {
    %r = loop.reduce sum (r0 in 512) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<2048xf32, device = "cuda:0">
  func.return %s, %t : !aten.tensor<512xf32, device = "cuda:0">, !aten.tensor<2048xf32, device = "cuda:0">
}

// Partial results of many columns lie side by side, part after part.
func.func @columns(%x: !aten.tensor<16384x2048xf32, device = "cuda:0">) -> !aten.tensor<2048xf32, device = "cuda:0"> {
  %s = loop.generate (i0 in 2048) {
    %r = loop.reduce max (r0 in 16384) {
      %v = loop.load %x[r0, i0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<2048xf32, device = "cuda:0">
  func.return %s : !aten.tensor<2048xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: %0 = loop.generate (i0 in 16) {
// CHECK-NEXT: %1 = loop.reduce sum (r0 in 4, r1 in 32) {
// CHECK-NEXT: %v = loop.load %x[4*i0 + r0, r1]
// CHECK: %r = loop.reduce sum (r0 in 16) {
// CHECK-NEXT: %2 = loop.load %0[r0]
// CHECK: %3, %4 = loop.generate (i0 in 16) {
// CHECK-NEXT: %5, %6 = loop.reduce argmax (r0 in 4, r1 in 32) {
// CHECK-NEXT: %v_1 = loop.load %x[4*i0 + r0, r1]
// CHECK-NEXT: %k = loop.index 128*i0 + 32*r0 + r1
// CHECK: %r_1, %i = loop.reduce argmax (r0 in 16) {
// CHECK-NEXT: %7 = loop.load %3[r0]
// CHECK-NEXT: %8 = loop.load %4[r0]
// CHECK-LABEL: func.func @ragged
// CHECK-NEXT: %0, %1 = loop.generate (i0 in 3, i1 in 16) {
// CHECK-NEXT: %e = loop.load %x[i0, 0]
// CHECK-NEXT: %2 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %3, %4 = loop.reduce [sum, max] (r0 in (s0 + 15) floordiv 16) {
// CHECK-NEXT: %v = loop.load %x[i0, min(s0 - 1, i1*((s0 + 15) floordiv 16) + r0)]
// CHECK-NEXT: %w = arith.mulf %v, %e : f32
// CHECK-NEXT: %5 = loop.index i1*((s0 + 15) floordiv 16) + r0
// CHECK-NEXT: %6 = loop.index s0
// CHECK-NEXT: %7 = arith.cmpi slt, %5, %6 : i64
// CHECK-NEXT: %8 = arith.select %7, %w, %2 : f32
// CHECK-NEXT: %9 = arith.select %7, %v, %v : f32
// CHECK: %r, %m_1 = loop.reduce [sum, max] (r0 in 16) {
// CHECK: %11 = loop.load %1[i0, r0]
// CHECK-LABEL: func.func @custom
// CHECK-NEXT: %0 = loop.generate (i0 in 18) {
// CHECK-NEXT: %one = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %1 = loop.reduce custom init(%one) (r0 in 57) {
// CHECK-NEXT: %v = loop.load %x[57*i0 + r0]
// CHECK: ^bb0(%a: f32, %b: f32):
// CHECK-NEXT: %c = arith.addf %a, %b : f32
// CHECK: %r = loop.reduce custom init(%one_1) (r0 in 18) {
// CHECK-LABEL: func.func @gpu
// CHECK-NEXT: %0 = loop.empty : !aten.tensor<256x512xf32, device = "cuda:0">
// CHECK-NEXT: %1 = loop.scatter add (r0 in 2048, i0 in 512) into %0[r0 floordiv 8, i0] from_zero {
// CHECK-NEXT: %v = loop.load %x[r0, i0]
// CHECK: %r = loop.reduce sum (r0 in 256) {
// CHECK-LABEL: func.func @columns
// CHECK-NEXT: %0 = loop.generate (i1 in 32, i0 in 2048) {
// CHECK-NEXT: %1 = loop.reduce max (r0 in 512) {
// CHECK-NEXT: %v = loop.load %x[512*i1 + r0, i0]
// CHECK: %r = loop.reduce max (r0 in 32) {
