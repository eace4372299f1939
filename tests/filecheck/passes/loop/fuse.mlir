// RUN: inductile-opt %s -p loop-inline,loop-fuse | filecheck %s

func.func @softmax(%x: !aten.tensor<(s0)x4096xf32>, %b: !aten.tensor<4096xf32>) -> !aten.tensor<(s0)x4096xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>]} {
  %a = loop.generate (i0 in s0, i1 in 4096) {
    %v = loop.load %x[i0, i1]
    %w = loop.load %b[i1]
    %s = arith.addf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<(s0)x4096xf32>
  %m = loop.generate (i0 in s0, i1 in 1) {
    %r = loop.reduce max (r0 in 4096) {
      %v = loop.load %a[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<(s0)x1xf32>
  %d = loop.generate (i0 in s0, i1 in 4096) {
    %v = loop.load %a[i0, i1]
    %mm = loop.load %m[i0, 0]
    %d = arith.subf %v, %mm : f32
    loop.yield %d
  } : !aten.tensor<(s0)x4096xf32>
  %e = loop.generate (i0 in s0, i1 in 4096) {
    %v = loop.load %d[i0, i1]
    %x1 = math.exp %v : f32
    loop.yield %x1
  } : !aten.tensor<(s0)x4096xf32>
  %s = loop.generate (i0 in s0, i1 in 1) {
    %r = loop.reduce sum (r0 in 4096) {
      %v = loop.load %e[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<(s0)x1xf32>
  %o = loop.generate (i0 in s0, i1 in 4096) {
    %v = loop.load %e[i0, i1]
    %ss = loop.load %s[i0, 0]
    %q = arith.divf %v, %ss : f32
    loop.yield %q
  } : !aten.tensor<(s0)x4096xf32>
  func.return %o : !aten.tensor<(s0)x4096xf32>
}
// A reduction moves to a reader at the top; its axis gets another name where it is taken.
func.func @moved(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<4x2xf32> {
  %s = loop.generate (i0 in 4) {
    %r = loop.reduce sum (r0 in 6) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<4xf32>
  %y = loop.generate (r0 in 4) {
    %v = loop.load %s[r0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4xf32>
  %z = loop.generate (i0 in 4, i1 in 2) {
    %v = loop.load %y[i0]
    loop.yield %v
  } : !aten.tensor<4x2xf32>
  func.return %z : !aten.tensor<4x2xf32>
}
// padding: the mask is pushed
func.func @pad(%x: !aten.tensor<4xf32>, %j: !aten.tensor<6xi64>) -> !aten.tensor<6xf32> {
  %s = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4xf32>
  %y = loop.generate (i0 in 6) {
    %k = loop.load %j[i0]
    %i = loop.index d0 - 1 (d0 = %k)
    %zero = arith.constant 0 : i64
    %one = arith.constant 1.0 : f32
    %ok = arith.cmpi sge, %i, %zero : i64
    %v = loop.load %s[d0 - 1] (d0 = %k) if %ok else %one
    loop.yield %v
  } : !aten.tensor<6xf32>
  func.return %y : !aten.tensor<6xf32>
}

// What reads an input before and behind a write of it stays apart.
func.func @written_between(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>) {
  %a = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4xf32>
  %c = aten.copy_(%x, %y) : !aten.tensor<4xf32>
  %b = loop.generate (i0 in 4) {
    %v = loop.load %x[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4xf32>
  %d = loop.generate (i0 in 4) {
    %v = loop.load %a[i0]
    %w = loop.load %x[-i0 + 3]
    %e = arith.addf %v, %w : f32
    loop.yield %e
  } : !aten.tensor<4xf32>
  %e = loop.generate (i0 in 4) {
    %v = loop.load %b[i0]
    %w = loop.load %x[-i0 + 3]
    %e = arith.mulf %v, %w : f32
    loop.yield %e
  } : !aten.tensor<4xf32>
  func.return %d, %e : !aten.tensor<4xf32>, !aten.tensor<4xf32>
}

// CHECK-LABEL: func.func @softmax
// CHECK-NEXT: %o = loop.fusion (a0 in s0 | a1 in 4096) {
// CHECK-NEXT: %m = loop.generate (i0 in s0, i1 in 1) on (a0, _) {
// CHECK-NEXT: %r = loop.reduce max (r0 in 4096) on (a1) {
// CHECK: %e = loop.generate (i0 in s0, i1 in 4096) on (a0, a1) {
// CHECK: %s_2 = loop.generate (i0 in s0, i1 in 1) on (a0, _) {
// CHECK-NEXT: %r_1 = loop.reduce sum (r0 in 4096) on (a1) {
// CHECK: %o_1 = loop.generate (i0 in s0, i1 in 4096) on (a0, a1) {
// CHECK-LABEL: func.func @moved
// CHECK-NEXT: %z = loop.fusion (a0 in 4 | a1 in 2, a2 in 6) {
// CHECK-NEXT: %y = loop.generate (r0 in 4) on (a0) {
// CHECK-NEXT: %r = loop.reduce sum (r1 in 6) on (a2) {
// CHECK: %z_1 = loop.generate (i0 in 4, i1 in 2) on (a0, a1) {
// CHECK-LABEL: func.func @pad
// CHECK-NEXT: %s = loop.fusion (a0 in 4) {
// CHECK-NEXT: %s_1 = loop.generate (i0 in 4) on (a0) {
// CHECK: %y = loop.fusion (a0 in 6) {
// CHECK-NEXT: %y_1 = loop.generate (i0 in 6) on (a0) {
// CHECK-LABEL: func.func @written_between
// CHECK-NEXT: %a = loop.fusion (a0 in 4) {
// CHECK-NEXT: %a_1 = loop.generate (i0 in 4) on (a0) {
// CHECK: %d, %e_1 = loop.fusion (a0 in 4) {
// CHECK-NEXT: %d_1 = loop.generate (i0 in 4) on (a0) {
// CHECK: %e_3 = loop.generate (i0 in 4) on (a0) {
// CHECK: func.return %d, %e_1 : !aten.tensor<4xf32>, !aten.tensor<4xf32>
