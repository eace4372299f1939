// RUN: inductile-opt %s -p loop-eliminate-views | filecheck %s

// The size of a convolution's result is a sum, and its strides are multiples of it, at least of 1: a reshape of it is
// a view of its memory.
func.func @sums(%x: !aten.tensor<(s0)xf32>, %w: !aten.tensor<(s1)xf32>, %c: !aten.tensor<2x4x(-s1 + s0 + 3)x(-s1 + s0 + 3)xf32, strides = [4*max(-s1 + s0 + 3, 1)*max(-s1 + s0 + 3, 1), max(-s1 + s0 + 3, 1)*max(-s1 + s0 + 3, 1), max(-s1 + s0 + 3, 1), 1]>) -> (!aten.tensor<2x(-8*s1*s0 + 4*s1*s1 + 4*s0*s0 - 24*s1 + 24*s0 + 36)xf32, strides = [4*max(-s1 + s0 + 3, 1)*max(-s1 + s0 + 3, 1), 1]>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 8>, #sym.symbol<s1, arg = 1, dim = 0, min = 2, hint = 3>]} {
  %view = loop.view %c[i0, (-((-i1) floordiv (s1 - s0 - 3))) floordiv (s1 - s0 - 3), -((-((-i1) floordiv (s1 - s0 - 3))) mod (s1 - s0 - 3)), -((-i1) mod (s1 - s0 - 3))] (i0 in 2, i1 in -8*s1*s0 + 4*s1*s1 + 4*s0*s0 - 24*s1 + 24*s0 + 36) : !aten.tensor<2x(-8*s1*s0 + 4*s1*s1 + 4*s0*s0 - 24*s1 + 24*s0 + 36)xf32, strides = [4*max(-s1 + s0 + 3, 1)*max(-s1 + s0 + 3, 1), 1]>
  func.return %view : !aten.tensor<2x(-8*s1*s0 + 4*s1*s1 + 4*s0*s0 - 24*s1 + 24*s0 + 36)xf32, strides = [4*max(-s1 + s0 + 3, 1)*max(-s1 + s0 + 3, 1), 1]>
}
// CHECK-LABEL: @sums
// CHECK: loop.view %c
// CHECK-NEXT: func.return
