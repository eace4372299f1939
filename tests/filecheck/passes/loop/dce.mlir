// RUN: inductile-opt %s -p loop-dce | filecheck %s

func.func @f(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<4xf32> {
  %dead = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<4x6xf32>
  %dead2 = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %dead[i0, i1]
    loop.yield %v
  } : !aten.tensor<4x6xf32>
  %a, %b = loop.generate (i0 in 4) {
    %s, %m, %i = loop.reduce [sum, argmax] (r0 in 6) {
      %v = loop.load %x[i0, r0]
      %r = loop.index r0
      loop.yield %v, %v, %r
    }
    %w = math.exp %s : f32
    %f = scalar.cast %i : i64 to f32
    loop.yield %f, %w
  } : !aten.tensor<4xf32>, !aten.tensor<4xf32>
  %checked = loop.generate (i0 in 4) {
    %v = loop.load %x[i0, i0]
    %c = scalar.isfinite %v : f32
    loop.assert %c, "must be finite" : ValueError
    loop.yield %v
  } : !aten.tensor<4xf32>
  func.return %a : !aten.tensor<4xf32>
}

// CHECK-LABEL: func.func @f
// CHECK-NEXT: %a = loop.generate (i0 in 4) {
// CHECK-NEXT: %m, %i = loop.reduce argmax (r0 in 6) {
// CHECK-NEXT: %v = loop.load %x[i0, r0]
// CHECK-NEXT: %r = loop.index r0
// CHECK-NEXT: loop.yield %v, %r
// CHECK-NEXT: }
// CHECK-NEXT: %f = scalar.cast %i : i64 to f32
