// RUN: inductile-opt %s -p loop-split-axes | filecheck %s
// RUN: inductile-opt %s -p loop-split-axes --verify-each=numerics | filecheck %s

// The scale of groups of channels: the last step is split because of what it reads; only then does that make no index
// of a reader of the first step harder, and the two have the same axes.
func.func @chain(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<4x6xf32> {
  %g = loop.generate (i0 in 4, i1 in 2) {
    %r = loop.reduce sum (r0 in 3) {
      %v = loop.load %x[i0, 3*i1 + r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<4x2xf32>
  %a = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %x[i0, i1]
    %s = loop.load %g[i0, i1 floordiv 3]
    %p = arith.mulf %v, %s : f32
    loop.yield %p
  } : !aten.tensor<4x6xf32>
  %h = loop.generate (i0 in 4, i1 in 2) {
    %r = loop.reduce sum (r0 in 3) {
      %v = loop.load %a[i0, 3*i1 + r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<4x2xf32>
  %b = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %a[i0, i1]
    %s = loop.load %h[i0, i1 floordiv 3]
    %p = arith.mulf %v, %s : f32
    loop.yield %p
  } : !aten.tensor<4x6xf32>
  func.return %b : !aten.tensor<4x6xf32>
}
// CHECK-LABEL: @chain
// CHECK: %[[A:.*]] = loop.generate (i0 in 4, i1 in 2, i2 in 3) {
// CHECK: loop.load %{{.*}}[i0, i1]
// CHECK: } : !aten.tensor<4x2x3xf32>
// CHECK: loop.load %[[A]][i0, i1, r0]
// CHECK: %[[B:.*]] = loop.generate (i0 in 4, i1 in 2, i2 in 3) {
// CHECK-NEXT: loop.load %[[A]][i0, i1, i2]
// CHECK: loop.view %[[B]]
