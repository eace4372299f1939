// RUN: inductile-opt %s -p loop-merge-updates,loop-dce --split-input-file --verify-each | filecheck %s
// RUN: inductile-opt %s --split-input-file -p loop-merge-updates,loop-dce,loop-fuse,loop-bufferize | filecheck %s --check-prefix=BUFFER

// A row of a layer of a cache, at a position that is a symbol: one update of the cache, and in place.
func.func @layer(%x: !aten.tensor<3x8x4xf32>, %v: !aten.tensor<1x4xf32>, %p: index) attributes {symbols = [#sym.symbol<s0, arg = 2, min = 0, max = 7>]} {
  %l = loop.view %x[1, i0, i1] (i0 in 8, i1 in 4) : !aten.tensor<8x4xf32>
  %u = loop.scatter set (i0 in 1, i1 in 4) into %l[s0, i1] unique {
    %a = loop.load %v[0, i1]
    loop.yield %a
  } : !aten.tensor<8x4xf32>
  %r = loop.scatter set (i0 in 8, i1 in 4) into %x[1, i0, i1] unique {
    %b = loop.load %u[i0, i1]
    loop.yield %b
  } : !aten.tensor<3x8x4xf32>
  %c = aten.copy_(%x, %r) : !aten.tensor<3x8x4xf32>
  func.return
}

// CHECK-LABEL: func.func @layer
// CHECK: loop.scatter set (i0 in 1, i1 in 4) into %x[1, s0, i1] unique {
// CHECK-NEXT: loop.load %v[0, i1]
// CHECK-NOT: loop.scatter
// BUFFER-LABEL: func.func @layer
// BUFFER: loop.scatter set (i0 in 1, i1 in 4) into %x[1, s0, i1] unique in_place

// -----

// The whole of a tensor is a piece of it; here the index is loaded.
func.func @whole(%x: !aten.tensor<8x4xf32>, %v: !aten.tensor<4xf32>, %p: !aten.tensor<1xi64>) -> !aten.tensor<8x4xf32> attributes {symbols = []} {
  %u = loop.scatter set (i0 in 1, i1 in 4) into %x[d0, i1] {
    %a = loop.load %v[i1]
    %j = loop.load %p[0]
    loop.yield %a, %j
  } : !aten.tensor<8x4xf32>
  %r = loop.scatter set (i0 in 8, i1 in 4) into %x[i0, i1] unique {
    %b = loop.load %u[i0, i1]
    loop.yield %b
  } : !aten.tensor<8x4xf32>
  func.return %r : !aten.tensor<8x4xf32>
}

// CHECK-LABEL: func.func @whole
// CHECK: loop.scatter set (i0 in 1, i1 in 4) into %x[d0, i1] {
// CHECK-NOT: loop.scatter

// -----

// Layer 1 is changed and written to layer 2: not the piece that the inner update started from.
func.func @elsewhere(%x: !aten.tensor<3x8x4xf32>, %v: !aten.tensor<4xf32>) -> !aten.tensor<3x8x4xf32> attributes {symbols = []} {
  %l = loop.view %x[1, i0, i1] (i0 in 8, i1 in 4) : !aten.tensor<8x4xf32>
  %u = loop.scatter set (i0 in 1, i1 in 4) into %l[5, i1] unique {
    %a = loop.load %v[i1]
    loop.yield %a
  } : !aten.tensor<8x4xf32>
  %r = loop.scatter set (i0 in 8, i1 in 4) into %x[2, i0, i1] unique {
    %b = loop.load %u[i0, i1]
    loop.yield %b
  } : !aten.tensor<3x8x4xf32>
  func.return %r : !aten.tensor<3x8x4xf32>
}

// CHECK-LABEL: func.func @elsewhere
// CHECK: loop.scatter set (i0 in 1, i1 in 4) into %l[5, i1]
// CHECK: loop.scatter set (i0 in 8, i1 in 4) into %x[2, i0, i1]

// -----

// The input is written between the two.
func.func @written(%x: !aten.tensor<8x4xf32>, %y: !aten.tensor<8x4xf32>, %v: !aten.tensor<4xf32>) -> !aten.tensor<8x4xf32> attributes {symbols = []} {
  %u = loop.scatter set (i0 in 1, i1 in 4) into %x[5, i1] unique {
    %a = loop.load %v[i1]
    loop.yield %a
  } : !aten.tensor<8x4xf32>
  %c = aten.copy_(%x, %y) : !aten.tensor<8x4xf32>
  %r = loop.scatter set (i0 in 8, i1 in 4) into %x[i0, i1] unique {
    %b = loop.load %u[i0, i1]
    loop.yield %b
  } : !aten.tensor<8x4xf32>
  func.return %r : !aten.tensor<8x4xf32>
}

// CHECK-LABEL: func.func @written
// CHECK-COUNT-2: loop.scatter
