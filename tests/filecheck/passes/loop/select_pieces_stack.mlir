// RUN: inductile-opt %s -p loop-select-pieces,loop-inline | filecheck %s
// RUN: inductile-opt %s -p loop-select-pieces,loop-inline --verify-each=numerics | filecheck %s

// The pieces of a stack have no axis along the dimension that they are stacked along.
func.func @stack(%x: !aten.tensor<8xf32>, %z: !aten.tensor<8xf32>) -> !aten.tensor<8x2xf32> {
  %d = loop.empty : !aten.tensor<8x2xf32>
  %a = loop.scatter set (i0 in 8) into %d[i0, 0] unique {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<8x2xf32>
  %b = loop.scatter set (i0 in 8) into %a[i0, 1] unique {
    %v = loop.load %z[i0]
    loop.yield %v
  } : !aten.tensor<8x2xf32>
  %y = loop.generate (i0 in 8, i1 in 2) {
    %v = loop.load %b[i0, i1]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<8x2xf32>
  func.return %y : !aten.tensor<8x2xf32>
}
// CHECK-LABEL: @stack
// CHECK-NOT: loop.scatter
// CHECK: loop.generate (i0 in 8, i1 in 2)
// CHECK: loop.load %x[i0] if
// CHECK: loop.load %z[i0] if
// CHECK: arith.select
