// RUN: inductile-opt %s -p loop-inline | filecheck %s
// RUN: inductile-opt %s -p loop-inline --verify-each=numerics | filecheck %s

// The gradient of a cat: each piece is computed by itself, one into memory with the strides of the view that it was.
func.func @pieces(%x: !aten.tensor<8x64xf32>) -> (!aten.tensor<8x32xf32, strides = [64, 1]>, !aten.tensor<8x32xf32>) {
  %e = loop.generate (i0 in 8, i1 in 64) {
    %a = loop.load %x[i0, i1]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<8x64xf32>
  %l = loop.view %e[i0, i1] (i0 in 8, i1 in 32) : !aten.tensor<8x32xf32, strides = [64, 1]>
  %r = loop.generate (i0 in 8, i1 in 32) {
    %c = loop.load %e[i0, i1 + 32]
    %d = arith.addf %c, %c : f32
    loop.yield %d
  } : !aten.tensor<8x32xf32>
  func.return %l, %r : !aten.tensor<8x32xf32, strides = [64, 1]>, !aten.tensor<8x32xf32>
}
// CHECK-LABEL: @pieces
// CHECK-NEXT: %[[L:.*]] = loop.generate (i0 in 8, i1 in 32) {
// CHECK-NEXT: loop.load %x[i0, i1]
// CHECK-NEXT: math.exp
// CHECK: !aten.tensor<8x32xf32, strides = [64, 1]>
// CHECK: %[[R:.*]] = loop.generate (i0 in 8, i1 in 32) {
// CHECK-NEXT: loop.load %x[i0, i1 + 32]
// CHECK-NEXT: math.exp
// CHECK: func.return %[[L]], %[[R]]

// Pieces that are read by different nests, expensive as they are: nothing is computed twice.
func.func @halves(%x: !aten.tensor<64xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<32xf32>) {
  %e = loop.generate (i0 in 64) {
    %a = loop.load %x[i0]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<64xf32>
  %l = loop.generate (i0 in 32) {
    %c = loop.load %e[i0]
    %d = arith.negf %c : f32
    loop.yield %d
  } : !aten.tensor<32xf32>
  %r = loop.generate (i0 in 32) {
    %c = loop.load %e[i0 + 32]
    loop.yield %c
  } : !aten.tensor<32xf32>
  func.return %l, %r : !aten.tensor<32xf32>, !aten.tensor<32xf32>
}
// CHECK-LABEL: @halves
// CHECK-NOT: i0 in 64
// CHECK: func.return

// The view stays where more points would be computed, where another view shares its memory, and where it has no
// element of its own for each point.
func.func @whole(%x: !aten.tensor<64xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<64xf32>) {
  %e = loop.generate (i0 in 64) {
    %a = loop.load %x[i0]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<64xf32>
  %l = loop.view %e[i0] (i0 in 32) : !aten.tensor<32xf32>
  %r = loop.generate (i0 in 64) {
    %c = loop.load %e[i0]
    %d = arith.negf %c : f32
    loop.yield %d
  } : !aten.tensor<64xf32>
  func.return %l, %r : !aten.tensor<32xf32>, !aten.tensor<64xf32>
}
// CHECK-LABEL: @whole
// CHECK: %[[E:.*]] = loop.generate (i0 in 64)
// CHECK: loop.view %[[E]][i0]

func.func @shared(%x: !aten.tensor<64xf32>) -> (!aten.tensor<32xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>) {
  %e = loop.generate (i0 in 64) {
    %a = loop.load %x[i0]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<64xf32>
  %l = loop.view %e[i0] (i0 in 32) : !aten.tensor<32xf32>
  %m = loop.view %e[i0 + 8] (i0 in 8) : !aten.tensor<8xf32>
  %r = loop.generate (i0 in 8) {
    %c = loop.load %e[i0 + 56]
    loop.yield %c
  } : !aten.tensor<8xf32>
  func.return %l, %m, %r : !aten.tensor<32xf32>, !aten.tensor<8xf32>, !aten.tensor<8xf32>
}
// CHECK-LABEL: @shared
// CHECK: %[[E:.*]] = loop.generate (i0 in 64)
// CHECK: loop.view %[[E]][i0]
// CHECK: loop.view %[[E]][i0 + 8]

func.func @expanded(%x: !aten.tensor<64xf32>) -> (!aten.tensor<2x8xf32, strides = [0, 1]>, !aten.tensor<8xf32>) {
  %e = loop.generate (i0 in 64) {
    %a = loop.load %x[i0]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<64xf32>
  %l = loop.view %e[i1] (i0 in 2, i1 in 8) : !aten.tensor<2x8xf32, strides = [0, 1]>
  %r = loop.generate (i0 in 8) {
    %c = loop.load %e[i0 + 56]
    loop.yield %c
  } : !aten.tensor<8xf32>
  func.return %l, %r : !aten.tensor<2x8xf32, strides = [0, 1]>, !aten.tensor<8xf32>
}
// CHECK-LABEL: @expanded
// CHECK: %[[E:.*]] = loop.generate (i0 in 64)
// CHECK: loop.view %[[E]][i1]

// The halves of a product with a vector, of which one is the gate of the other: both are summed where they are read, so
// that nothing is between them in memory. Sums that read their matrix several times stay.
func.func @gated(%x: !aten.tensor<16xf32>, %w: !aten.tensor<64x16xf32>) -> !aten.tensor<32xf32> {
  %p = loop.generate (i0 in 64) {
    %s = loop.reduce sum (r0 in 16) {
      %a = loop.load %x[r0]
      %b = loop.load %w[i0, r0]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %s
  } : !aten.tensor<64xf32>
  %y = loop.generate (i0 in 32) {
    %a = loop.load %p[i0]
    %b = loop.load %p[i0 + 32]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<32xf32>
  func.return %y : !aten.tensor<32xf32>
}
// CHECK-LABEL: @gated
// CHECK-NEXT: loop.generate (i0 in 32) {
// CHECK: loop.load %w[i0, r{{[0-9]}}]
// CHECK: loop.load %w[i0 + 32, r{{[0-9]}}]
// CHECK-NOT: loop.generate
// CHECK: func.return

func.func @reread(%x: !aten.tensor<4x16xf32>, %w: !aten.tensor<64x16xf32>) -> !aten.tensor<4x32xf32> {
  %p = loop.generate (i0 in 4, i1 in 64) {
    %s = loop.reduce sum (r0 in 16) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %w[i1, r0]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %s
  } : !aten.tensor<4x64xf32>
  %y = loop.generate (i0 in 4, i1 in 32) {
    %a = loop.load %p[i0, i1]
    %b = loop.load %p[i0, i1 + 32]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<4x32xf32>
  func.return %y : !aten.tensor<4x32xf32>
}
// CHECK-LABEL: @reread
// CHECK-NEXT: loop.generate (i0 in 4, i1 in 64)
