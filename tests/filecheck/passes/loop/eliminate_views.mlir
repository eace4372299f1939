// RUN: inductile-opt %s -p loop-eliminate-views | filecheck %s

// Chains of views end in one index map; a map that is not linear in memory becomes a copy.
func.func @chains(%x: !aten.tensor<4x6xf32>) -> (!aten.tensor<6x4xf32, strides = [1, 6]>, !aten.tensor<24xf32>, !aten.tensor<3x8xf32>, !aten.tensor<6x4xf32>) {
  %t = loop.view %x[i1, i0] (i0 in 6, i1 in 4) : !aten.tensor<6x4xf32, strides = [1, 6]>
  %t2 = loop.view %t[i1, i0] (i0 in 4, i1 in 6) : !aten.tensor<4x6xf32>
  %strided = loop.view %t2[i0 floordiv 6, i0 mod 6] (i0 in 24) : !aten.tensor<24xf32>
  %flat = loop.view %t[i0 floordiv 4, i0 mod 4] (i0 in 24) : !aten.tensor<24xf32>
  %copied = loop.view %flat[8*i0 + i1] (i0 in 3, i1 in 8) : !aten.tensor<3x8xf32>
  %y = loop.generate (i0 in 6, i1 in 4) {
    %v = loop.load %t[i0, i1]
    %w = loop.load %t2[i1, i0]
    %s = arith.addf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<6x4xf32>
  func.return %t, %strided, %copied, %y : !aten.tensor<6x4xf32, strides = [1, 6]>, !aten.tensor<24xf32>, !aten.tensor<3x8xf32>, !aten.tensor<6x4xf32>
}

// The dynamic index and the mask of a load stay; one that the view ignores goes.
func.func @gather(%x: !aten.tensor<(s0)x1x8xf32>, %i: !aten.tensor<5xi64>) -> !aten.tensor<5x8xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {
  %e = loop.view %x[i0, 0, i2] (i0 in s0, i1 in 16, i2 in 8) : !aten.tensor<(s0)x16x8xf32, strides = [8, 0, 1]>
  %y = loop.generate (i0 in 5, i1 in 8) {
    %j = loop.load %i[i0]
    %n = loop.index s0
    %ok = arith.cmpi slt, %j, %n : i64
    %zero = arith.constant 0.0 : f32
    %v = loop.load %e[d0, d1, i1] (d0 = %j, d1 = %n) if %ok else %zero
    %r = loop.reduce sum (r0 in 16) {
      %u = loop.load %e[i0, r0, i1]
      loop.yield %u
    }
    %s = arith.addf %v, %r : f32
    loop.yield %s
  } : !aten.tensor<5x8xf32>
  func.return %y : !aten.tensor<5x8xf32>
}

// A linear map whose strides are not those of the type is a copy as well: the program says contiguous.
func.func @strides(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<6x4xf32> {
  %t = loop.view %x[i1, i0] (i0 in 6, i1 in 4) : !aten.tensor<6x4xf32>
  func.return %t : !aten.tensor<6x4xf32>
}

// What eager's reshape copies, views of the copy share; the input does not gain an alias.
func.func @views_of_a_copy(%x: !aten.tensor<4x6xf32>) -> (!aten.tensor<24xf32>, !aten.tensor<3x24xf32, strides = [0, 1]>, !aten.tensor<4xf32>, !aten.tensor<3x4xf32, strides = [0, 1]>) {
  %t = loop.view %x[i1, i0] (i0 in 6, i1 in 4) : !aten.tensor<6x4xf32, strides = [1, 6]>
  %flat = loop.view %t[i0 floordiv 4, i0 mod 4] (i0 in 24) : !aten.tensor<24xf32>
  %wide = loop.view %flat[i1] (i0 in 3, i1 in 24) : !aten.tensor<3x24xf32, strides = [0, 1]>
  %row = loop.view %flat[i0 + 4] (i0 in 4) : !aten.tensor<4xf32>
  %rows = loop.view %row[i1] (i0 in 3, i1 in 4) : !aten.tensor<3x4xf32, strides = [0, 1]>
  func.return %flat, %wide, %row, %rows : !aten.tensor<24xf32>, !aten.tensor<3x24xf32, strides = [0, 1]>, !aten.tensor<4xf32>, !aten.tensor<3x4xf32, strides = [0, 1]>
}

// A copy keeps the elements that the source had.
func.func @snapshot(%x: !aten.tensor<4x6xf32>, %z: !aten.tensor<4x6xf32>) -> !aten.tensor<24xf32> {
  %t = loop.view %x[i1, i0] (i0 in 6, i1 in 4) : !aten.tensor<6x4xf32, strides = [1, 6]>
  %flat = loop.view %t[i0 floordiv 4, i0 mod 4] (i0 in 24) : !aten.tensor<24xf32>
  %c = aten.copy_(%x, %z) : !aten.tensor<4x6xf32>
  %y = loop.generate (i0 in 24) {
    %v = loop.load %flat[i0]
    %w = loop.load %t[i0 floordiv 4, i0 mod 4]
    %s = arith.subf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<24xf32>
  func.return %y : !aten.tensor<24xf32>
}

// CHECK-LABEL: func.func @chains
// CHECK-NEXT: %t = loop.view %x[i1, i0] (i0 in 6, i1 in 4) : !aten.tensor<6x4xf32, strides = [1, 6]>
// CHECK-NEXT: %strided = loop.view %x[i0 floordiv 6, i0 mod 6] (i0 in 24) : !aten.tensor<24xf32>
// CHECK-NEXT: %flat = loop.generate (i0 in 24) {
// CHECK-NEXT: %0 = loop.load %x[i0 mod 4, i0 floordiv 4]
// CHECK: %v = loop.load %x[i1, i0]
// CHECK-LABEL: func.func @gather(%x: !aten.tensor<(s0)x1x8xf32>, %i: !aten.tensor<5xi64>) -> !aten.tensor<5x8xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {
// CHECK-NEXT: %y = loop.generate (i0 in 5, i1 in 8) {
// CHECK: %v = loop.load %x[d0, 0, i1] (d0 = %j) if %ok else %zero
// CHECK: %u = loop.load %x[i0, 0, i1]
// CHECK-LABEL: func.func @strides
// CHECK-NEXT: %t = loop.generate (i0 in 6, i1 in 4) {
// CHECK-NEXT: %0 = loop.load %x[i1, i0]
// CHECK-LABEL: func.func @views_of_a_copy
// CHECK-NEXT: %flat = loop.generate (i0 in 24) {
// CHECK-NEXT: %0 = loop.load %x[i0 mod 4, i0 floordiv 4]
// CHECK: %rows = loop.view %flat[i1 + 4] (i0 in 3, i1 in 4) : !aten.tensor<3x4xf32, strides = [0, 1]>
// CHECK-LABEL: func.func @snapshot
// CHECK-NEXT: %flat = loop.generate (i0 in 24) {
// CHECK-NEXT: %0 = loop.load %x[i0 mod 4, i0 floordiv 4]
// CHECK: %w = loop.load %x[i0 mod 4, i0 floordiv 4]
