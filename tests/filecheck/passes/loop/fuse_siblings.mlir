// RUN: inductile-opt %s -p loop-fuse | filecheck %s
// RUN: inductile-opt %s -p loop-fuse --verify-each=numerics --remarks=loop-fuse -o %t 2>&1 | filecheck %s --check-prefix=REMARK

// One table scales both tensors: two nests over one domain share a launch, and read the table once.

func.func @rotated(%q: !aten.tensor<8x64xf32>, %k: !aten.tensor<8x64xf32>, %t: !aten.tensor<64xf32>) -> (!aten.tensor<8x64xf32>, !aten.tensor<8x64xf32>) {
  %a = loop.generate (i0 in 8, i1 in 64) {
    %v = loop.load %q[i0, i1]
    %w = loop.load %t[i1]
    %x = arith.mulf %v, %w : f32
    loop.yield %x
  } : !aten.tensor<8x64xf32>
  %b = loop.generate (i0 in 8, i1 in 64) {
    %v = loop.load %k[i0, i1]
    %w = loop.load %t[i1]
    %x = arith.mulf %v, %w : f32
    loop.yield %x
  } : !aten.tensor<8x64xf32>
  func.return %a, %b : !aten.tensor<8x64xf32>, !aten.tensor<8x64xf32>
}

// CHECK-LABEL: func.func @rotated
// CHECK:         loop.fusion (a0 in 8, a1 in 64) {
// CHECK-NOT:     loop.fusion
// CHECK:         func.return
// REMARK: fused

// Another number of heads: another domain.

func.func @heads(%q: !aten.tensor<8x64xf32>, %k: !aten.tensor<4x64xf32>, %t: !aten.tensor<64xf32>) -> (!aten.tensor<8x64xf32>, !aten.tensor<4x64xf32>) {
  %a = loop.generate (i0 in 8, i1 in 64) {
    %v = loop.load %q[i0, i1]
    %w = loop.load %t[i1]
    %x = arith.mulf %v, %w : f32
    loop.yield %x
  } : !aten.tensor<8x64xf32>
  %b = loop.generate (i0 in 4, i1 in 64) {
    %v = loop.load %k[i0, i1]
    %w = loop.load %t[i1]
    %x = arith.mulf %v, %w : f32
    loop.yield %x
  } : !aten.tensor<4x64xf32>
  func.return %a, %b : !aten.tensor<8x64xf32>, !aten.tensor<4x64xf32>
}

// CHECK-LABEL: func.func @heads
// CHECK:         loop.fusion
// CHECK:         loop.fusion
// REMARK: they read it at points of different domains

// A product stands between them: its operand would live longer.

func.func @apart(%q: !aten.tensor<64x64xf32>, %k: !aten.tensor<64x64xf32>, %t: !aten.tensor<64xf32>) -> (!aten.tensor<64x64xf32>, !aten.tensor<64x64xf32>) {
  %a = loop.generate (i0 in 64, i1 in 64) {
    %v = loop.load %q[i0, i1]
    %w = loop.load %t[i1]
    %x = arith.mulf %v, %w : f32
    loop.yield %x
  } : !aten.tensor<64x64xf32>
  %m = aten.mm(%k, %k) : !aten.tensor<64x64xf32>
  %b = loop.generate (i0 in 64, i1 in 64) {
    %v = loop.load %m[i0, i1]
    %w = loop.load %t[i1]
    %x = arith.mulf %v, %w : f32
    loop.yield %x
  } : !aten.tensor<64x64xf32>
  func.return %a, %b : !aten.tensor<64x64xf32>, !aten.tensor<64x64xf32>
}

// CHECK-LABEL: func.func @apart
// CHECK:         loop.fusion
// CHECK:         loop.fusion
// REMARK: what both write would live through a call of ATen
