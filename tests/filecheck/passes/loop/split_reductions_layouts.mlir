// RUN: inductile-opt %s -p loop-split-reductions | filecheck %s

// With channels last the sums of channels are sums of columns, 64 of which are one program: split by rows.
func.func @channels_last(%x: !aten.tensor<4x64x56x56xf32, strides = [200704, 1, 3584, 64], device = "cuda:0">) -> !aten.tensor<64xf32, device = "cuda:0"> {
  %s = loop.generate (i0 in 64) {
    %r = loop.reduce sum (r0 in 4, r1 in 56, r2 in 56) {
      %v = loop.load %x[r0, i0, r1, r2]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<64xf32, device = "cuda:0">
  func.return %s : !aten.tensor<64xf32, device = "cuda:0">
}

// Contiguous they are rows: 64 programs, of which none has two parts to do.
func.func @contiguous(%x: !aten.tensor<4x64x56x56xf32, device = "cuda:0">) -> !aten.tensor<64xf32, device = "cuda:0"> {
  %s = loop.generate (i0 in 64) {
    %r = loop.reduce sum (r0 in 4, r1 in 56, r2 in 56) {
      %v = loop.load %x[r0, i0, r1, r2]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<64xf32, device = "cuda:0">
  func.return %s : !aten.tensor<64xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @channels_last
// CHECK: loop.generate (i0 in 64, i1 in 4, i2 in 56) {
// CHECK-NEXT: loop.reduce sum (r2 in 56) {
// CHECK-NEXT: loop.load %x[i1, i0, i2, r2]
// CHECK: !aten.tensor<64x4x56xf32, device = "cuda:0">
// CHECK: %s = loop.generate (i0 in 64) {
// CHECK-LABEL: func.func @contiguous
// CHECK-NEXT: %s = loop.generate (i0 in 64) {
// CHECK-NEXT: loop.reduce sum (r0 in 4, r1 in 56, r2 in 56) {
