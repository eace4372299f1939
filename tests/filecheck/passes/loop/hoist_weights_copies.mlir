// RUN: inductile-opt %s -p loop-hoist-weights --verify-each=numerics | filecheck %s

// A copy that a product reads becomes a result of the kept function, in the place of what it copies; one that a nest
// reads, or the function returns, stays.
// CHECK-LABEL: func.func @f(
// CHECK-NEXT: %[[K:.*]] = func.call @f_weights(%w) {kept} : (!aten.tensor<8x4xf32>) -> !aten.tensor<8x4xf32, strides = [1, 8]>
// CHECK-NEXT: aten.mm(%x, %[[K]])
// CHECK: %[[D:.*]] = loop.generate
// CHECK: func.return %{{.*}}, %[[D]]
// CHECK: func.func private @f_weights(%w: !aten.tensor<8x4xf32>) -> !aten.tensor<8x4xf32, strides = [1, 8]> attributes {kept
// CHECK: math.exp
// CHECK: loop.generate
func.func @f(%x: !aten.tensor<2x8xf32>, %w: !aten.tensor<8x4xf32> {frozen}) -> (!aten.tensor<2x4xf32>, !aten.tensor<8x4xf32, strides = [1, 8]>) {
  %k = func.call @f_weights(%w) {kept} : (!aten.tensor<8x4xf32>) -> !aten.tensor<8x4xf32>
  %c = loop.generate (i0 in 8, i1 in 4) {
    %0 = loop.load %k[i0, i1]
    loop.yield %0
  } : !aten.tensor<8x4xf32, strides = [1, 8]>
  %y = aten.mm(%x, %c) : !aten.tensor<2x4xf32>
  %d = loop.generate (i0 in 8, i1 in 4) {
    %0 = loop.load %w[i0, i1]
    loop.yield %0
  } : !aten.tensor<8x4xf32, strides = [1, 8]>
  func.return %y, %d : !aten.tensor<2x4xf32>, !aten.tensor<8x4xf32, strides = [1, 8]>
}

func.func private @f_weights(%w: !aten.tensor<8x4xf32>) -> !aten.tensor<8x4xf32> attributes {kept} {
  %e = loop.generate (i0 in 8, i1 in 4) {
    %0 = loop.load %w[i0, i1]
    %1 = math.exp %0 : f32
    loop.yield %1
  } : !aten.tensor<8x4xf32>
  func.return %e : !aten.tensor<8x4xf32>
}
