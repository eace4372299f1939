// RUN: inductile-opt %s -p loop-select-pieces,loop-inline | filecheck %s

// A cat between nests is computed where it is read.
func.func @between(%x: !aten.tensor<4x3xf32>, %y: !aten.tensor<4x(s0)xf32>) -> !aten.tensor<4x(s0 + 3)xf32> attributes {symbols = [#sym.symbol<s0, arg = 1, dim = 1, min = 2>]} {
  %d = loop.empty : !aten.tensor<4x(s0 + 3)xf32>
  %a = loop.scatter set (i0 in 4, i1 in 3) into %d[i0, i1] unique {
    %v = loop.load %x[i0, i1]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4x(s0 + 3)xf32>
  %b = loop.scatter set (i0 in 4, i1 in s0) into %a[i0, i1 + 3] unique {
    %v = loop.load %y[i0, i1]
    loop.yield %v
  } : !aten.tensor<4x(s0 + 3)xf32>
  %r = loop.generate (i0 in 4, i1 in s0 + 3) {
    %v = loop.load %b[i0, i1]
    %e = math.sqrt %v : f32
    loop.yield %e
  } : !aten.tensor<4x(s0 + 3)xf32>
  func.return %r : !aten.tensor<4x(s0 + 3)xf32>
}
// A returned cat is written piece by piece; a hole stays undefined.
func.func @kept(%x: !aten.tensor<3xf32>, %y: !aten.tensor<5xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<3xf32>) {
  %d = loop.empty : !aten.tensor<8xf32>
  %a = loop.scatter set (i0 in 3) into %d[i0] unique {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<8xf32>
  %b = loop.scatter set (i0 in 5) into %a[i0 + 3] unique {
    %v = loop.load %y[i0]
    loop.yield %v
  } : !aten.tensor<8xf32>
  %d1 = loop.empty : !aten.tensor<9xf32>
  %a1 = loop.scatter set (i0 in 3) into %d1[i0] unique {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<9xf32>
  %b1 = loop.scatter set (i0 in 5) into %a1[i0 + 4] unique {
    %v = loop.load %y[i0]
    loop.yield %v
  } : !aten.tensor<9xf32>
  %r = loop.generate (i0 in 3) {
    %v = loop.load %b1[i0 + 4]
    loop.yield %v
  } : !aten.tensor<3xf32>
  func.return %b, %r : !aten.tensor<8xf32>, !aten.tensor<3xf32>
}

// CHECK-LABEL: func.func @between
// CHECK: %r = loop.generate (i0 in 4, i1 in s0 + 3) {
// CHECK: %2 = loop.index i1
// CHECK-NEXT: %3 = loop.index 3
// CHECK-NEXT: %4 = arith.cmpi slt, %2, %3 : i64
// CHECK-NEXT: %5 = loop.load %0[i0, i1] if %4 else %1
// CHECK: %7 = loop.index 3
// CHECK-NEXT: %8 = arith.cmpi sge, %6, %7 : i64
// CHECK-NEXT: %9 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %v_1 = loop.load %y[i0, i1 - 3] if %8 else %9
// CHECK-NEXT: %v_2 = arith.select %8, %v_1, %5 : f32
// CHECK-NEXT: %e_1 = math.sqrt %v_2 : f32
// CHECK-LABEL: func.func @kept
// CHECK: %a = loop.scatter set (i0 in 3) into %d[i0] unique {
// CHECK: %b = loop.scatter set (i0 in 5) into %a[i0 + 3] unique {
// CHECK: %a1 = loop.scatter set (i0 in 3) into %d1[i0] unique {
// CHECK: %b1 = loop.scatter set (i0 in 5) into %a1[i0 + 4] unique {
// CHECK: %r = loop.generate (i0 in 3) {
