// RUN: inductile-opt %s -p loop-split-reductions | filecheck %s

// A sum of all of a matrix whose rows another nest reduces: each row is a part, so that one launch does both.
func.func @divergence(%x: !aten.tensor<2048x1024xf32, device = "cuda:0">) -> !aten.tensor<f32, device = "cuda:0"> {
  %m = loop.generate (i0 in 2048) {
    %r = loop.reduce max (r0 in 1024) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<2048xf32, device = "cuda:0">
  %s = loop.generate () {
    %r = loop.reduce sum (r0 in 2048, r1 in 1024) {
      %v = loop.load %x[r0, r1]
      %a = loop.load %m[r0]
      %d = arith.subf %v, %a : f32
      loop.yield %d
    }
    loop.yield %r
  } : !aten.tensor<f32, device = "cuda:0">
  func.return %s : !aten.tensor<f32, device = "cuda:0">
}
// CHECK-LABEL: func.func @divergence
// CHECK: loop.reduce max
// CHECK: loop.generate (i0 in 2048) {
// CHECK-NEXT: loop.reduce sum (r1 in 1024) {
// CHECK: } : !aten.tensor<2048xf32, device = "cuda:0">
// CHECK-NEXT: %s = loop.generate () {
// CHECK-NEXT: loop.reduce sum (r0 in 2048) {

// No other nest reduces the rows: parts of as many elements as a program takes.
func.func @alone(%x: !aten.tensor<2048x1024xf32, device = "cuda:0">) -> !aten.tensor<f32, device = "cuda:0"> {
  %s = loop.generate () {
    %r = loop.reduce sum (r0 in 2048, r1 in 1024) {
      %v = loop.load %x[r0, r1]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32, device = "cuda:0">
  func.return %s : !aten.tensor<f32, device = "cuda:0">
}
// CHECK-LABEL: func.func @alone
// CHECK: loop.generate (i0 in 256) {
// CHECK-NEXT: loop.reduce sum (r0 in 8, r1 in 1024) {

// Columns of few rows are parts of 32 rows, for 512 programs of 64 columns. One number for each point is read fast enough
// by programs of whole columns.
func.func @few(%x: !aten.tensor<1024x1024xbf16, device = "cuda:0">, %y: !aten.tensor<1024x1024xbf16, device = "cuda:0">) -> (!aten.tensor<1024xf32, device = "cuda:0">, !aten.tensor<1024xf32, device = "cuda:0">) {
  %s = loop.generate (i0 in 1024) {
    %r = loop.reduce sum (r0 in 1024) {
      %v = loop.load %x[r0, i0]
      %w = loop.load %y[r0, i0]
      %a = arith.mulf %v, %w : bf16
      %b = scalar.widen %a : bf16 to f32
      loop.yield %b
    }
    loop.yield %r
  } : !aten.tensor<1024xf32, device = "cuda:0">
  %t = loop.generate (i0 in 1024) {
    %r = loop.reduce sum (r0 in 1024) {
      %v = loop.load %s[i0]
      %w = loop.load %x[r0, i0]
      %a = scalar.widen %w : bf16 to f32
      loop.yield %a
    }
    loop.yield %r
  } : !aten.tensor<1024xf32, device = "cuda:0">
  func.return %s, %t : !aten.tensor<1024xf32, device = "cuda:0">, !aten.tensor<1024xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @few
// CHECK: loop.generate (
// CHECK-NEXT: loop.reduce sum (r0 in 32) {

func.func @whole(%x: !aten.tensor<1024x1024xbf16, device = "cuda:0">) -> !aten.tensor<1024xf32, device = "cuda:0"> {
  %s = loop.generate (i0 in 1024) {
    %r = loop.reduce sum (r0 in 1024) {
      %v = loop.load %x[r0, i0]
      %w = scalar.widen %v : bf16 to f32
      loop.yield %w
    }
    loop.yield %r
  } : !aten.tensor<1024xf32, device = "cuda:0">
  func.return %s : !aten.tensor<1024xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @whole
// CHECK: loop.generate (i0 in 1024) {
// CHECK-NEXT: loop.reduce sum (r0 in 1024) {

// A number for each row, such as its mean, does not make sums of columns run along memory.
func.func @centred(%x: !aten.tensor<16384x64xf32, device = "cuda:0">, %m: !aten.tensor<16384x1xf32, device = "cuda:0">) -> !aten.tensor<64xf32, device = "cuda:0"> {
  %s = loop.generate (i0 in 64) {
    %r = loop.reduce sum (r0 in 16384) {
      %v = loop.load %x[r0, i0]
      %w = loop.load %m[r0, 0]
      %a = arith.mulf %v, %w : f32
      loop.yield %a
    }
    loop.yield %r
  } : !aten.tensor<64xf32, device = "cuda:0">
  func.return %s : !aten.tensor<64xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @centred
// CHECK: loop.generate (i0 in 64, i1 in 256) {
// CHECK-NEXT: loop.reduce sum (r0 in 64) {
