// RUN: inductile-opt %s --target cuda:90 -p loop-repeat-rows --split-input-file --verify-each | filecheck %s

// Rows of bytes: 2,048 programs of 8 KiB of them compute the norm again.
func.func @norm(%x: !aten.tensor<2048xf32, device = "cuda:0">, %w: !aten.tensor<8192x2048xi8, device = "cuda:0">) -> !aten.tensor<8192xf32, device = "cuda:0"> {
  %n = loop.generate (i0 in 1) {
    %s = loop.reduce sum (r0 in 2048) {
      %a = loop.load %x[r0]
      %b = arith.mulf %a, %a : f32
      loop.yield %b
    }
    %r = math.rsqrt %s : f32
    loop.yield %r
  } : !aten.tensor<1xf32, device = "cuda:0">
  %v = loop.generate (i0 in 2048) {
    %a = loop.load %x[i0]
    %b = loop.load %n[0]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<2048xf32, device = "cuda:0">
  %y = loop.generate (i0 in 8192) {
    %p = loop.reduce sum (r0 in 2048) {
      %a = loop.load %v[r0]
      %b = loop.load %w[i0, r0]
      %c = scalar.cast %b : i8 to f32
      %d = arith.mulf %a, %c : f32
      loop.yield %d
    }
    loop.yield %p
  } : !aten.tensor<8192xf32, device = "cuda:0">
  func.return %y : !aten.tensor<8192xf32, device = "cuda:0">
}
// CHECK-LABEL: @norm
// CHECK-NEXT: %{{.*}} = loop.generate (i0 in 8192) {
// CHECK-NEXT: %{{.*}} = loop.reduce sum

// -----

// Of 65,536 rows programs are so many that a norm by itself takes less long.
func.func @many(%x: !aten.tensor<2048xf32, device = "cuda:0">, %w: !aten.tensor<65536x2048xi8, device = "cuda:0">) -> !aten.tensor<65536xf32, device = "cuda:0"> {
  %n = loop.generate (i0 in 1) {
    %s = loop.reduce sum (r0 in 2048) {
      %a = loop.load %x[r0]
      %b = arith.mulf %a, %a : f32
      loop.yield %b
    }
    %r = math.rsqrt %s : f32
    loop.yield %r
  } : !aten.tensor<1xf32, device = "cuda:0">
  %v = loop.generate (i0 in 2048) {
    %a = loop.load %x[i0]
    %b = loop.load %n[0]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<2048xf32, device = "cuda:0">
  %y = loop.generate (i0 in 65536) {
    %p = loop.reduce sum (r0 in 2048) {
      %a = loop.load %v[r0]
      %b = loop.load %w[i0, r0]
      %c = scalar.cast %b : i8 to f32
      %d = arith.mulf %a, %c : f32
      loop.yield %d
    }
    loop.yield %p
  } : !aten.tensor<65536xf32, device = "cuda:0">
  func.return %y : !aten.tensor<65536xf32, device = "cuda:0">
}
// CHECK-LABEL: @many
// CHECK-COUNT-3: loop.generate

// -----

// Numbers of 4 bits: both of a byte are multiplied in a step, each with half of the vector.
func.func @halves(%x: !aten.tensor<2048xf32, device = "cuda:0">, %w: !aten.tensor<8192x1024xui8, device = "cuda:0">) -> !aten.tensor<8192xf32, device = "cuda:0"> {
  %n = loop.generate (i0 in 1) {
    %s = loop.reduce sum (r0 in 2048) {
      %a = loop.load %x[r0]
      %b = arith.mulf %a, %a : f32
      loop.yield %b
    }
    %r = math.rsqrt %s : f32
    loop.yield %r
  } : !aten.tensor<1xf32, device = "cuda:0">
  %v = loop.generate (i0 in 2048) {
    %a = loop.load %x[i0]
    %b = loop.load %n[0]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<2048xf32, device = "cuda:0">
  %y = loop.generate (i0 in 8192) {
    %p = loop.reduce sum (r0 in 16, r1 in 64) {
      %a = loop.load %v[128*r0 + 2*r1]
      %b = loop.load %v[128*r0 + 2*r1 + 1]
      %c = loop.load %w[i0, 64*r0 + r1]
      %f = arith.constant 15 : i8
      %l = arith.andi %c, %f : i8
      %four = arith.constant 4 : i8
      %h = arith.shrui %c, %four : i8
      %lf = scalar.cast %l : ui8 to f32
      %hf = scalar.cast %h : ui8 to f32
      %d = arith.mulf %a, %lf : f32
      %e = arith.mulf %b, %hf : f32
      %g = arith.addf %d, %e : f32
      loop.yield %g
    }
    loop.yield %p
  } : !aten.tensor<8192xf32, device = "cuda:0">
  func.return %y : !aten.tensor<8192xf32, device = "cuda:0">
}
// CHECK-LABEL: @halves
// CHECK-NEXT: %{{.*}} = loop.generate (i0 in 8192) {
// CHECK-NEXT: %{{.*}} = loop.reduce sum (r2 in 2048)
