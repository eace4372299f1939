// RUN: inductile-opt %s -p loop-unroll-pieces | filecheck %s
// RUN: inductile-opt %s -p loop-unroll-pieces --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s -p loop-unroll-pieces --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// Numbers of 4 bits take turns: a byte is read once for two summands.
func.func @neighbours(%x: !aten.tensor<256xf32>, %w: !aten.tensor<3x128xui8>) -> !aten.tensor<3xf32> {
  %y = loop.generate (i0 in 3) {
    %s = loop.reduce sum (r0 in 256) {
      %v = loop.load %x[r0]
      %i = loop.index r0 mod 2
      %one = arith.constant 1 : i64
      %first = arith.cmpi slt, %i, %one : i64
      %zero = arith.constant 0 : i8
      %a = loop.load %w[i0, r0 floordiv 2] if %first else %zero
      %mask = arith.constant 15 : i8
      %low = arith.andi %a, %mask : i8
      %second = arith.cmpi sge, %i, %one : i64
      %b = loop.load %w[i0, r0 floordiv 2] if %second else %zero
      %four = arith.constant 4 : i8
      %high = arith.shrui %b, %four : i8
      %n = arith.select %second, %high, %low : i8
      %f = scalar.cast %n : ui8 to f32
      %p = arith.mulf %v, %f : f32
      loop.yield %p
    }
    loop.yield %s
  } : !aten.tensor<3xf32>
  func.return %y : !aten.tensor<3xf32>
}
// CHECK-LABEL: @neighbours
// CHECK: loop.reduce sum (r0 in 128) {
// CHECK: loop.load %x[2*r0]
// CHECK: loop.load %w[i0, r0]
// CHECK: loop.load %x[2*r0 + 1]
// CHECK-NOT: loop.load %w
// CHECK: %[[T:.*]] = arith.addf
// CHECK-NEXT: loop.yield %[[T]]
// REMARK: [loop-unroll-pieces] passed: {{.*}}2 pieces at once

// One half lies behind the other, whatever other axes there are.
func.func @halves(%x: !aten.tensor<4x64xf32>, %a: !aten.tensor<128xf32>, %b: !aten.tensor<128xf32>) -> !aten.tensor<f32> {
  %y = loop.generate () {
    %s = loop.reduce max (r0 in 4, r1 in 64) {
      %v = loop.load %x[r0, r1]
      %i = loop.index 64*r0 + r1
      %half = arith.constant 128 : i64
      %first = arith.cmpi slt, %i, %half : i64
      %zero = arith.constant 0.0 : f32
      %l = loop.load %a[64*r0 + r1] if %first else %zero
      %second = arith.cmpi sge, %i, %half : i64
      %r = loop.load %b[64*r0 + r1 - 128] if %second else %zero
      %w = arith.select %second, %r, %l : f32
      %p = arith.mulf %v, %w : f32
      loop.yield %p
    }
    loop.yield %s
  } : !aten.tensor<f32>
  func.return %y : !aten.tensor<f32>
}
// CHECK-LABEL: @halves
// CHECK: loop.reduce max (r0 in 2, r1 in 64) {
// CHECK: loop.load %a[64*r0 + r1]
// CHECK: loop.load %x[r0 + 2, r1]
// CHECK: loop.load %b[64*r0 + r1]
// CHECK: arith.maximumf

// A sum of 16 bits would be rounded in between, and 100 are no whole parts of 256.
func.func @others(%x: !aten.tensor<256xf32>) -> !aten.tensor<f32> {
  %y = loop.generate () {
    %s = loop.reduce sum (r0 in 256) {
      %i = loop.index r0
      %n = arith.constant 100 : i64
      %first = arith.cmpi slt, %i, %n : i64
      %zero = arith.constant 0.0 : f32
      %v = loop.load %x[r0] if %first else %zero
      loop.yield %v
    }
    loop.yield %s
  } : !aten.tensor<f32>
  func.return %y : !aten.tensor<f32>
}
// CHECK-LABEL: @others
// CHECK: loop.reduce sum (r0 in 256) {

// A product that was chosen for matrix units has a sum for each piece, for they add up products alone.
func.func @tiled(%x: !aten.tensor<4x128xf32>, %w: !aten.tensor<8x64xf32>) -> !aten.tensor<4x8xf32> {
  %y = loop.generate (i0 in 4, i1 in 8) {
    %s = loop.reduce sum (r0 in 128) {
      %i = loop.index r0 mod 2
      %n = arith.constant 1 : i64
      %first = arith.cmpi slt, %i, %n : i64
      %v = loop.load %w[i1, r0 floordiv 2]
      %m = arith.negf %v : f32
      %t = arith.select %first, %v, %m : f32
      %a = loop.load %x[i0, r0]
      %p = arith.mulf %a, %t {tile = array<i64: 16, 16, 16, 2, 2>} : f32
      loop.yield %p
    }
    loop.yield %s
  } : !aten.tensor<4x8xf32>
  func.return %y : !aten.tensor<4x8xf32>
}
// CHECK-LABEL: @tiled
// CHECK: %[[S:.*]], %[[T:.*]] = loop.reduce [sum, sum] (r0 in 64) {
// CHECK: loop.load %x[i0, 2*r0]
// CHECK: loop.load %x[i0, 2*r0 + 1]
// CHECK: arith.addf %[[S]], %[[T]] : f32
