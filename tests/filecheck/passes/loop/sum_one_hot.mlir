// RUN: inductile-opt %s -p loop-sum-one-hot | filecheck %s
// RUN: inductile-opt %s -p loop-sum-one-hot --verify-each=numerics | filecheck %s
// RUN: inductile-opt %s -p loop-sum-one-hot --remarks 2>&1 | filecheck %s --check-prefix=REMARK

// At most one summand is not zero: that of the class, if it is one.
func.func @selected(%t: !aten.tensor<4xi64>, %v: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %s = loop.generate (i0 in 4) {
    %r = loop.reduce sum (r0 in 10) {
      %class = loop.load %t[i0]
      %value = loop.load %v[i0]
      %zero = arith.constant 0.0 : f32
      %five = arith.constant 5 : i64
      %i = loop.index r0
      %here = arith.cmpi eq, %i, %class : i64
      %counts = arith.cmpi ne, %class, %five : i64
      %both = arith.andi %counts, %here : i1
      %w = arith.select %both, %value, %zero : f32
      loop.yield %w
    }
    loop.yield %r
  } : !aten.tensor<4xf32>
  func.return %s : !aten.tensor<4xf32>
}
// CHECK-LABEL: @selected
// CHECK-NOT: loop.reduce
// CHECK: %[[T:.*]] = loop.load %t[i0]
// CHECK: %[[V:.*]] = loop.load %v[i0]
// CHECK: %[[LOW:.*]] = arith.cmpi sge, %[[T]], %{{.*}} : i64
// CHECK: %[[HIGH:.*]] = arith.cmpi slt, %[[T]], %{{.*}} : i64
// CHECK: %[[IN:.*]] = arith.andi %[[LOW]], %[[HIGH]] : i1
// CHECK: %[[C:.*]] = arith.andi %{{.*}}, %[[IN]] : i1
// CHECK: %[[W:.*]] = arith.select %[[C]], %[[V]], %{{.*}} : f32
// CHECK: arith.addf %[[W]], %{{.*}} : f32
// REMARK: remark: [loop-sum-one-hot] passed: loop.generate: one summand instead of a sum

// The row may be in another generate, which others read as well; casts of zero are zero.
func.func @rows(%t: !aten.tensor<4xi64>, %v: !aten.tensor<4xf32>, %size: index) -> (!aten.tensor<4x(s0)xbf16>, !aten.tensor<4xf32>) attributes {symbols = [#sym.symbol<s0, arg = 2>]} {
  %h = loop.generate (i0 in 4, i1 in s0) {
    %class = loop.load %t[i0]
    %value = loop.load %v[i0]
    %zero = arith.constant 0.0 : f32
    %i = loop.index i1
    %here = arith.cmpi eq, %class, %i : i64
    %w = arith.select %here, %value, %zero : f32
    %n = scalar.narrow %w : f32 to bf16
    loop.yield %n
  } : !aten.tensor<4x(s0)xbf16>
  %s = loop.generate (i0 in 4) {
    %r = loop.reduce sum (r0 in s0) {
      %b = loop.load %h[i0, r0]
      %w = scalar.widen %b : bf16 to f32
      loop.yield %w
    }
    loop.yield %r
  } : !aten.tensor<4xf32>
  func.return %h, %s : !aten.tensor<4x(s0)xbf16>, !aten.tensor<4xf32>
}
// CHECK-LABEL: @rows
// CHECK: loop.generate (i0 in 4, i1 in s0)
// CHECK: loop.generate (i0 in 4)
// CHECK-NOT: loop.reduce
// CHECK: loop.load %t[i0]
// CHECK: loop.index s0
// CHECK: arith.addf
// CHECK: func.return

// Not one-hot: the value differs along the row, the other is not zero, the class does, more than a sum is asked for.
func.func @others(%t: !aten.tensor<4xi64>, %u: !aten.tensor<4x10xi64>, %v: !aten.tensor<4xf32>, %x: !aten.tensor<4x10xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>) {
  %a = loop.generate (i0 in 4) {
    %r = loop.reduce sum (r0 in 10) {
      %class = loop.load %t[i0]
      %value = loop.load %x[i0, r0]
      %zero = arith.constant 0.0 : f32
      %i = loop.index r0
      %here = arith.cmpi eq, %class, %i : i64
      %w = arith.select %here, %value, %zero : f32
      loop.yield %w
    }
    loop.yield %r
  } : !aten.tensor<4xf32>
  %b = loop.generate (i0 in 4) {
    %r = loop.reduce sum (r0 in 10) {
      %class = loop.load %t[i0]
      %value = loop.load %v[i0]
      %one = arith.constant 1.0 : f32
      %i = loop.index r0
      %here = arith.cmpi eq, %class, %i : i64
      %w = arith.select %here, %value, %one : f32
      loop.yield %w
    }
    loop.yield %r
  } : !aten.tensor<4xf32>
  %c = loop.generate (i0 in 4) {
    %r = loop.reduce sum (r0 in 10) {
      %class = loop.load %u[i0, r0]
      %value = loop.load %v[i0]
      %zero = arith.constant 0.0 : f32
      %i = loop.index r0
      %here = arith.cmpi eq, %class, %i : i64
      %w = arith.select %here, %value, %zero : f32
      loop.yield %w
    }
    loop.yield %r
  } : !aten.tensor<4xf32>
  %d = loop.generate (i0 in 4) {
    %r = loop.reduce max (r0 in 10) {
      %class = loop.load %t[i0]
      %value = loop.load %v[i0]
      %zero = arith.constant 0.0 : f32
      %i = loop.index r0
      %here = arith.cmpi eq, %class, %i : i64
      %w = arith.select %here, %value, %zero : f32
      loop.yield %w
    }
    loop.yield %r
  } : !aten.tensor<4xf32>
  func.return %a, %b, %c, %d : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>
}
// CHECK-LABEL: @others
// CHECK-COUNT-3: loop.reduce sum
// CHECK: loop.reduce max
