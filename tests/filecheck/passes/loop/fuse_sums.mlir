// RUN: inductile-opt %s --target cuda:90 -p loop-fuse | filecheck %s

// Sums of columns in parts of rows, before what reduces the rows and reads the same.
func.func @beside(%x: !aten.tensor<1050x64xf32, device = "cuda:0">) -> (!aten.tensor<1050x64xf32, device = "cuda:0">, !aten.tensor<66x64xf32, device = "cuda:0">) {
  %d = loop.empty : !aten.tensor<66x64xf32, device = "cuda:0">
  %p = loop.scatter add (r0 in 1050, i0 in 64) into %d[r0 floordiv 16, i0] from_zero {
    %v = loop.load %x[r0, i0]
    loop.yield %v
  } : !aten.tensor<66x64xf32, device = "cuda:0">
  %m = loop.generate (i0 in 1050) {
    %r = loop.reduce max (r0 in 64) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<1050xf32, device = "cuda:0">
  %y = loop.generate (i0 in 1050, i1 in 64) {
    %v = loop.load %x[i0, i1]
    %t = loop.load %m[i0]
    %e = arith.subf %v, %t : f32
    loop.yield %e
  } : !aten.tensor<1050x64xf32, device = "cuda:0">
  func.return %y, %p : !aten.tensor<1050x64xf32, device = "cuda:0">, !aten.tensor<66x64xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @beside
// CHECK:         loop.fusion (a0 in 1050 | a1 in 64) {
// CHECK-NEXT:      %p_1 = loop.scatter add (r0 in 1050, i0 in 64) into %d[r0 floordiv 16, i0] from_zero on (a0, a1) {
// CHECK:           %m = loop.generate (i0 in 1050) on (a0) {
// CHECK:           %y_1 = loop.generate (i0 in 1050, i1 in 64) on (a0, a1) {
// CHECK-NOT:     loop.fusion

// Sums over other parts of the rows are another kernel, which sums in parts of its own.
func.func @other_parts(%x: !aten.tensor<1024x64xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<32x64xf32, device = "cuda:0">) {
  %d = loop.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  %p = loop.scatter add (i0 in 1024, i1 in 64) into %d[i0 floordiv 16, i1] from_zero {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<64x64xf32, device = "cuda:0">
  %f = loop.empty : !aten.tensor<32x64xf32, device = "cuda:0">
  %q = loop.scatter add (i0 in 1024, i1 in 64) into %f[i0 floordiv 32, i1] from_zero {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<32x64xf32, device = "cuda:0">
  func.return %p, %q : !aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<32x64xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @other_parts
// CHECK-COUNT-2: loop.fusion (a0 in 1024, a1 in 64) {

// So few parts that most processors would have nothing to do, if rows ran one after the other.
func.func @few_parts(%x: !aten.tensor<1024x64xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<1024xf32, device = "cuda:0">) {
  %d = loop.empty : !aten.tensor<64x64xf32, device = "cuda:0">
  %p = loop.scatter add (i0 in 1024, i1 in 64) into %d[i0 floordiv 16, i1] from_zero {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<64x64xf32, device = "cuda:0">
  %m = loop.generate (i0 in 1024) {
    %r = loop.reduce max (r0 in 64) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<1024xf32, device = "cuda:0">
  func.return %p, %m : !aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<1024xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @few_parts
// CHECK:         loop.fusion (a0 in 1024, a1 in 64) {
// CHECK:         loop.fusion (a0 in 1024 | a1 in 64) {

// Rows and sums that are together too long for a program.
func.func @long(%x: !aten.tensor<2048x9000xf32, device = "cuda:0">, %w: !aten.tensor<2048x9000xf32, device = "cuda:0">) -> (!aten.tensor<2048xf32, device = "cuda:0">, !aten.tensor<128x9000xf32, device = "cuda:0">, !aten.tensor<128x9000xf32, device = "cuda:0">) {
  %m = loop.generate (i0 in 2048) {
    %r = loop.reduce max (r0 in 9000) {
      %v = loop.load %x[i0, r0]
      %u = loop.load %w[i0, r0]
      %t = arith.mulf %v, %u : f32
      loop.yield %t
    }
    loop.yield %r
  } : !aten.tensor<2048xf32, device = "cuda:0">
  %d = loop.empty : !aten.tensor<128x9000xf32, device = "cuda:0">
  %p = loop.scatter add (i0 in 2048, i1 in 9000) into %d[i0 floordiv 16, i1] from_zero {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<128x9000xf32, device = "cuda:0">
  %f = loop.empty : !aten.tensor<128x9000xf32, device = "cuda:0">
  %q = loop.scatter add (i0 in 2048, i1 in 9000) into %f[i0 floordiv 16, i1] from_zero {
    %v = loop.load %w[i0, i1]
    loop.yield %v
  } : !aten.tensor<128x9000xf32, device = "cuda:0">
  func.return %m, %p, %q : !aten.tensor<2048xf32, device = "cuda:0">, !aten.tensor<128x9000xf32, device = "cuda:0">, !aten.tensor<128x9000xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @long
// CHECK:         loop.fusion (a0 in 2048 | a1 in 9000) {
// CHECK:           loop.reduce max
// CHECK:           %p_1 = loop.scatter add
// CHECK:         loop.fusion (a0 in 2048, a1 in 9000) {
// CHECK-NEXT:      %q_1 = loop.scatter add
