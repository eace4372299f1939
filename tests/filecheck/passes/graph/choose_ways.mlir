// RUN: inductile-opt %s --target cuda:90 -p graph-choose-scores | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'graph-choose-scores{loop-products=true}' | filecheck %s --check-prefix=SECOND
// RUN: inductile-opt %s --target cuda:90 -p graph-choose-products | filecheck %s --check-prefix=LEFT

// One way to a result stays, with what it adds to the gradient; the other one's gradient is added to nothing.
func.func @sum(%x: !aten.tensor<4x8xf32>, %t: !aten.tensor<4x8xf32> {tangent}) -> (!aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>) attributes {forward_results = 1 : i64} {
  %a = aten.sin(%x) : !aten.tensor<4x8xf32>
  %b = aten.neg(%x) : !aten.tensor<4x8xf32>
  %y = aten.call pure "inductile::either_way"(%a, %b, 0) : !aten.tensor<4x8xf32>
  %c = aten.cos(%x) : !aten.tensor<4x8xf32>
  %da = aten.mul.Tensor(%t, %c) : !aten.tensor<4x8xf32>
  %db = aten.neg(%t) : !aten.tensor<4x8xf32>
  %ga = aten.call pure "inductile::of_way"(%da, 0, 0) : !aten.tensor<4x8xf32>
  %gb = aten.call pure "inductile::of_way"(%db, 0, 1) : !aten.tensor<4x8xf32>
  %ta = aten.transpose.int(%ga, dim0 = 0, dim1 = 1) : !aten.tensor<8x4xf32, strides = [1, 8]>
  %va = aten.transpose.int(%ta, dim0 = 0, dim1 = 1) : !aten.tensor<4x8xf32>
  %dx = aten.add.Tensor(%va, %gb) : !aten.tensor<4x8xf32>
  func.return %y, %dx : !aten.tensor<4x8xf32>, !aten.tensor<4x8xf32>
}
// CHECK-LABEL: func.func @sum
// CHECK-NOT: inductile
// CHECK: %[[A:.*]] = aten.sin(%x)
// CHECK-NOT: aten.neg
// CHECK: %[[G:.*]] = aten.transpose.int(%t
// CHECK-NEXT: func.return %[[A]], %
// SECOND-LABEL: func.func @sum
// SECOND-NOT: aten.sin
// SECOND: %[[B:.*]] = aten.neg(%x)
// SECOND-NEXT: %[[G:.*]] = aten.neg(%t)
// SECOND-NEXT: func.return %[[B]], %[[G]]

// A gradient that is returned, or read by something that 0 is no 0 of, is 0 where its way was not taken.
func.func @returned(%x: !aten.tensor<4xf32>, %t: !aten.tensor<4xf32> {tangent}) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>) attributes {forward_results = 1 : i64} {
  %a = aten.sin(%x) : !aten.tensor<4xf32>
  %b = aten.neg(%x) : !aten.tensor<4xf32>
  %y = aten.call pure "inductile::either_way"(%a, %b, 7) : !aten.tensor<4xf32>
  %gb = aten.call pure "inductile::of_way"(%t, 7, 1) : !aten.tensor<4xf32>
  %e = aten.exp(%gb) : !aten.tensor<4xf32>
  func.return %y, %gb, %e : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>
}
// CHECK-LABEL: func.func @returned
// CHECK: aten.full(
// CHECK: aten.exp(
// SECOND-LABEL: func.func @returned
// SECOND: %[[B:.*]] = aten.neg(%x)
// SECOND: func.return %[[B]], %t, %

// Nobody decided, as torch split the graph: the first way.
func.func @forward(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %a = aten.sin(%x) : !aten.tensor<4xf32>
  %b = aten.neg(%x) : !aten.tensor<4xf32>
  %y = aten.call pure "inductile::either_way"(%a, %b, 7) : !aten.tensor<4xf32>
  func.return %y : !aten.tensor<4xf32>
}
// LEFT-LABEL: func.func @forward
// LEFT: %[[A:.*]] = aten.sin(%x)
// LEFT-NEXT: func.return %[[A]]
