// RUN: inductile-opt %s -p loop-inline --split-input-file --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s -p loop-inline,loop-cse,loop-fuse --split-input-file --verify-each=numerics | filecheck %s --check-prefix=FUSED

// Rows divided by their norms, and the halves of the result, one of them negated, joined the other way round. A number
// for each row may be in memory, so the division moves to all three readers; and lanes of the other half compute a
// negation in vain. All is one kernel, for the sum and the result read a row at its point.

func.func @rotated(%x: !aten.tensor<64x128xf32>, %c: !aten.tensor<128xf32>) -> !aten.tensor<64x128xf32> attributes {symbols = []} {
  %s = loop.generate (i0 in 64, i1 in 1) {
    %r = loop.reduce sum (r0 in 128) {
      %v = loop.load %x[i0, r0]
      %w = arith.mulf %v, %v : f32
      loop.yield %w
    }
    %q = math.rsqrt %r : f32
    loop.yield %q
  } : !aten.tensor<64x1xf32>
  %y = loop.generate (i0 in 64, i1 in 128) {
    %v = loop.load %x[i0, i1]
    %n = loop.load %s[i0, 0]
    %w = arith.mulf %v, %n : f32
    loop.yield %w
  } : !aten.tensor<64x128xf32>
  %a = loop.generate (i0 in 64, i1 in 64) {
    %v = loop.load %y[i0, i1 + 64]
    %w = arith.negf %v : f32
    loop.yield %w
  } : !aten.tensor<64x64xf32>
  %o = loop.generate (i0 in 64, i1 in 128) {
    %z = arith.constant 0.0 : f32
    %i = loop.index i1
    %n = loop.index 64
    %below = arith.cmpi slt, %i, %n : i64
    %above = arith.cmpi sge, %i, %n : i64
    %l = loop.load %a[i0, i1] if %below else %z
    %h = loop.load %y[i0, i1 - 64] if %above else %z
    %t = arith.select %above, %h, %l : f32
    %k = loop.load %c[i1]
    %m = arith.mulf %t, %k : f32
    %v = loop.load %y[i0, i1]
    %w = arith.addf %v, %m : f32
    loop.yield %w
  } : !aten.tensor<64x128xf32>
  func.return %o : !aten.tensor<64x128xf32>
}

// CHECK-LABEL: func.func @rotated
// CHECK:         %s = loop.generate
// CHECK:         %o = loop.generate (i0 in 64, i1 in 128) {
// CHECK:           loop.load %x[i0, i1 + 64] if
// CHECK-NOT:     loop.generate
// CHECK:         func.return
// FUSED-LABEL: func.func @rotated
// FUSED:         %o = loop.fusion (a0 in 64 | a1 in 128) {
// FUSED-NOT:     loop.fusion
// FUSED:         func.return

// -----

// What is dear is not computed in vain, and a sum as large as what is made of it stays out of memory.

func.func @dear(%x: !aten.tensor<64x64xf32>) -> !aten.tensor<64x128xf32> attributes {symbols = []} {
  %a = loop.generate (i0 in 64, i1 in 64) {
    %v = loop.load %x[i0, i1]
    %e = math.exp %v : f32
    %t = math.tanh %e : f32
    %w = math.log %t : f32
    loop.yield %w
  } : !aten.tensor<64x64xf32>
  %o = loop.generate (i0 in 64, i1 in 128) {
    %z = arith.constant 0.0 : f32
    %i = loop.index i1
    %n = loop.index 64
    %below = arith.cmpi slt, %i, %n : i64
    %l = loop.load %a[i0, i1] if %below else %z
    loop.yield %l
  } : !aten.tensor<64x128xf32>
  func.return %o : !aten.tensor<64x128xf32>
}
func.func @large(%x: !aten.tensor<8x16x128xf32>) -> (!aten.tensor<8x128xf32>, !aten.tensor<128x8xf32>) attributes {symbols = []} {
  %s = loop.generate (i0 in 8, i1 in 128) {
    %r = loop.reduce sum (r0 in 16) {
      %v = loop.load %x[i0, r0, i1]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<8x128xf32>
  %y = loop.generate (i0 in 8, i1 in 128) {
    %v = loop.load %s[i0, i1]
    %w = arith.mulf %v, %v : f32
    loop.yield %w
  } : !aten.tensor<8x128xf32>
  %a = loop.generate (i0 in 8, i1 in 128) {
    %v = loop.load %y[i0, -i1 + 127]
    loop.yield %v
  } : !aten.tensor<8x128xf32>
  %b = loop.generate (i0 in 128, i1 in 8) {
    %v = loop.load %y[i1, i0]
    loop.yield %v
  } : !aten.tensor<128x8xf32>
  func.return %a, %b : !aten.tensor<8x128xf32>, !aten.tensor<128x8xf32>
}

// CHECK-LABEL: func.func @dear
// CHECK:         math.log
// CHECK:         loop.load %a[i0, i1] if
// CHECK-LABEL: func.func @large
// CHECK:         loop.load %y[i0, -i1 + 127]
