// RUN: inductile-opt %s -p loop-assign-layouts | filecheck %s

// A product of which rows are read as columns lies as its reader wants it; one of which they are read as rows stays.
func.func @product(%x: !aten.tensor<8x4xf32, strides = [1, 8]>, %w: !aten.tensor<4x6xf32>) -> (!aten.tensor<6x8xf32>, !aten.tensor<8x6xf32>) {
  %p = loop.generate (i0 in 8, i1 in 6) {
    %s = loop.reduce sum (r0 in 4) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %w[r0, i1]
      %m = arith.mulf %a, %b : f32
      loop.yield %m
    }
    loop.yield %s
  } : !aten.tensor<8x6xf32>
  %y = loop.generate (i0 in 6, i1 in 8) {
    %v = loop.load %p[i1, i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<6x8xf32>
  %q = loop.generate (i0 in 8, i1 in 6) {
    %s = loop.reduce sum (r0 in 4) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %w[r0, i1]
      %m = arith.mulf %a, %b : f32
      loop.yield %m
    }
    loop.yield %s
  } : !aten.tensor<8x6xf32>
  %z = loop.generate (i0 in 8, i1 in 6) {
    %v = loop.load %q[i0, i1]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<8x6xf32>
  func.return %y, %z : !aten.tensor<6x8xf32>, !aten.tensor<8x6xf32>
}
// CHECK-LABEL: func.func @product
// CHECK: } : !aten.tensor<8x6xf32, strides = [1, 8]>
// CHECK: } : !aten.tensor<6x8xf32>
// CHECK: } : !aten.tensor<8x6xf32>
// CHECK: } : !aten.tensor<8x6xf32>
