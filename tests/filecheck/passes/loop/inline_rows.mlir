// RUN: inductile-opt %s -p loop-inline | filecheck %s

// A loss of each row is made of the row's maximum and sum: it stays with them, where a reduction over all rows reads it.
// Inside of that reduction it would leave two numbers a row in memory instead of one.

func.func @loss(%x: !aten.tensor<64x512xf32>, %t: !aten.tensor<64xi64>) -> !aten.tensor<f32> {
  %m = loop.generate (i0 in 64) {
    %r = loop.reduce max (r0 in 512) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<64xf32>
  %s = loop.generate (i0 in 64) {
    %r = loop.reduce sum (r0 in 512) {
      %v = loop.load %x[i0, r0]
      %a = loop.load %m[i0]
      %d = arith.subf %v, %a : f32
      %e = math.exp %d : f32
      loop.yield %e
    }
    loop.yield %r
  } : !aten.tensor<64xf32>
  %l = loop.generate (i0 in 64) {
    %k = loop.load %t[i0]
    %v = loop.load %x[i0, d0] (d0 = %k)
    %a = loop.load %m[i0]
    %b = loop.load %s[i0]
    %c = math.log %b : f32
    %d = arith.subf %v, %a : f32
    %e = arith.subf %d, %c : f32
    loop.yield %e
  } : !aten.tensor<64xf32>
  %y = loop.generate () {
    %r = loop.reduce sum (r0 in 64) {
      %v = loop.load %l[r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32>
  func.return %y : !aten.tensor<f32>
}

// CHECK-LABEL: func.func @loss
// CHECK:         %l = loop.generate (i0 in 64)
// CHECK:         loop.load %l[r0]


// A value of each element takes more memory than what the rows are reduced to: it is computed where it is read.

func.func @elements(%x: !aten.tensor<64x512xf32>) -> !aten.tensor<f32> {
  %m = loop.generate (i0 in 64) {
    %r = loop.reduce max (r0 in 512) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<64xf32>
  %d = loop.generate (i0 in 64, i1 in 512) {
    %v = loop.load %x[i0, i1]
    %a = loop.load %m[i0]
    %w = arith.subf %v, %a : f32
    loop.yield %w
  } : !aten.tensor<64x512xf32>
  %y = loop.generate () {
    %r = loop.reduce sum (r0 in 64, r1 in 512) {
      %v = loop.load %d[r0, r1]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32>
  func.return %y : !aten.tensor<f32>
}

// CHECK-LABEL: func.func @elements
// CHECK-NOT:     %d = loop.generate
// CHECK:         loop.reduce sum (r0 in 64, r1 in 512)


// The factor of a channel stays put along the last axis: it is computed once for all of it, and does not make the
// product dear, which both reductions take for themselves.

func.func @channels(%x: !aten.tensor<8x64x512xf32>, %v: !aten.tensor<64xf32>, %w: !aten.tensor<64xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<64xf32>) {
  %p = loop.generate (i0 in 8, i1 in 64, i2 in 512) {
    %a = loop.load %x[i0, i1, i2]
    %b = loop.load %v[i1]
    %c = math.exp %b : f32
    %d = loop.load %w[i1]
    %e = arith.divf %c, %d : f32
    %f = arith.mulf %a, %e : f32
    loop.yield %f
  } : !aten.tensor<8x64x512xf32>
  %y = loop.generate (i0 in 8) {
    %r = loop.reduce sum (r0 in 64, r1 in 512) {
      %l = loop.load %p[i0, r0, r1]
      loop.yield %l
    }
    loop.yield %r
  } : !aten.tensor<8xf32>
  %z = loop.generate (i0 in 64) {
    %r = loop.reduce sum (r0 in 8, r1 in 512) {
      %l = loop.load %p[r0, i0, r1]
      loop.yield %l
    }
    loop.yield %r
  } : !aten.tensor<64xf32>
  func.return %y, %z : !aten.tensor<8xf32>, !aten.tensor<64xf32>
}

// CHECK-LABEL: func.func @channels
// CHECK-NOT:     %p = loop.generate
// CHECK:         %y = loop.generate (i0 in 8)


// A function of each element is too dear for that.

func.func @functions(%x: !aten.tensor<8x64x512xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<64xf32>) {
  %p = loop.generate (i0 in 8, i1 in 64, i2 in 512) {
    %a = loop.load %x[i0, i1, i2]
    %f = math.exp %a : f32
    loop.yield %f
  } : !aten.tensor<8x64x512xf32>
  %y = loop.generate (i0 in 8) {
    %r = loop.reduce sum (r0 in 64, r1 in 512) {
      %l = loop.load %p[i0, r0, r1]
      loop.yield %l
    }
    loop.yield %r
  } : !aten.tensor<8xf32>
  %z = loop.generate (i0 in 64) {
    %r = loop.reduce sum (r0 in 8, r1 in 512) {
      %l = loop.load %p[r0, i0, r1]
      loop.yield %l
    }
    loop.yield %r
  } : !aten.tensor<64xf32>
  func.return %y, %z : !aten.tensor<8xf32>, !aten.tensor<64xf32>
}

// CHECK-LABEL: func.func @functions
// CHECK:         %p = loop.generate


// Under the mask of a window the numbers of a channel stay put along no axis.

func.func @window(%x: !aten.tensor<8x64x512xf32>, %w: !aten.tensor<64xf32>) -> !aten.tensor<8x64x256xf32> {
  %p = loop.generate (i0 in 8, i1 in 64, i2 in 512) {
    %a = loop.load %x[i0, i1, i2]
    %c = loop.load %w[i1]
    %s = math.rsqrt %c : f32
    %t = arith.divf %c, %s : f32
    %d = arith.addf %s, %t : f32
    %f = arith.mulf %a, %d : f32
    loop.yield %f
  } : !aten.tensor<8x64x512xf32>
  %y = loop.generate (i0 in 8, i1 in 64, i2 in 256) {
    %r = loop.reduce max (r0 in 3) {
      %k = loop.index 2*i2 + r0 - 1
      %n = arith.constant 0 : i64
      %m = arith.cmpi sge, %k, %n : i64
      %z = arith.constant 0.0 : f32
      %l = loop.load %p[i0, i1, 2*i2 + r0 - 1] if %m else %z
      loop.yield %l
    }
    loop.yield %r
  } : !aten.tensor<8x64x256xf32>
  func.return %y : !aten.tensor<8x64x256xf32>
}

// CHECK-LABEL: func.func @window
// CHECK:         %p = loop.generate
