// RUN: inductile-opt %s -p loop-fuse,loop-bufferize --verify-each | filecheck %s

// The first column is a copy of another one: what is read and what is written lie apart.
// CHECK-LABEL: func.func @border
// CHECK: loop.scatter set (i0 in 4, i1 in 1) into %d[i0, 0] unique in_place
func.func @border(%x: !aten.tensor<4x8xf32>) -> !aten.tensor<4x8xf32> {
  %d = loop.generate (i0 in 4, i1 in 8) {
    %a = loop.load %x[i0, i1]
    %b = arith.addf %a, %a : f32
    loop.yield %b
  } : !aten.tensor<4x8xf32>
  %u = loop.scatter set (i0 in 4, i1 in 1) into %d[i0, 0] unique {
    %a = loop.load %d[3 - i0, i1 + 7]
    loop.yield %a
  } : !aten.tensor<4x8xf32>
  func.return %u : !aten.tensor<4x8xf32>
}
// So do pieces of a size that only a run knows.
// CHECK-LABEL: func.func @halves
// CHECK: loop.scatter set (i0 in s0) into %d[i0] unique in_place
func.func @halves(%x: !aten.tensor<(2*s0)xf32>, %n: index) -> !aten.tensor<(2*s0)xf32> attributes {symbols = [#sym.symbol<s0, arg = 1, min = 2>]} {
  %d = loop.generate (i0 in 2*s0) {
    %a = loop.load %x[i0]
    %b = arith.addf %a, %a : f32
    loop.yield %b
  } : !aten.tensor<(2*s0)xf32>
  %u = loop.scatter set (i0 in s0) into %d[i0] unique {
    %a = loop.load %d[2*s0 - 1 - i0]
    loop.yield %a
  } : !aten.tensor<(2*s0)xf32>
  func.return %u : !aten.tensor<(2*s0)xf32>
}
// These overlap in one element.
// CHECK-LABEL: func.func @overlap
// CHECK: loop.scatter set (i0 in 4) into %d[i0] unique on (a0) {
func.func @overlap(%x: !aten.tensor<8xf32>) -> !aten.tensor<8xf32> {
  %d = loop.generate (i0 in 8) {
    %a = loop.load %x[i0]
    %b = arith.addf %a, %a : f32
    loop.yield %b
  } : !aten.tensor<8xf32>
  %u = loop.scatter set (i0 in 4) into %d[i0] unique {
    %a = loop.load %d[i0 + 3]
    loop.yield %a
  } : !aten.tensor<8xf32>
  func.return %u : !aten.tensor<8xf32>
}
// `d0` is one number where it is read and another one where it is written.
// CHECK-LABEL: func.func @dynamic
// CHECK: loop.scatter set (i0 in 4) into %d[d0 + 1, i0] unique on (a0) {
func.func @dynamic(%x: !aten.tensor<8x4xf32>, %p: !aten.tensor<2xi64>) -> !aten.tensor<8x4xf32> {
  %d = loop.generate (i0 in 8, i1 in 4) {
    %a = loop.load %x[i0, i1]
    %b = arith.addf %a, %a : f32
    loop.yield %b
  } : !aten.tensor<8x4xf32>
  %u = loop.scatter set (i0 in 4) into %d[d0 + 1, i0] unique {
    %i = loop.load %p[0]
    %j = loop.load %p[1]
    %a = loop.load %d[d0, 3 - i0] (d0 = %i)
    loop.yield %a, %j
  } : !aten.tensor<8x4xf32>
  func.return %u : !aten.tensor<8x4xf32>
}
