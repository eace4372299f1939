// RUN: inductile-opt %s -p loop-assign-layouts | filecheck %s

// The intermediate value has eager's transposed strides, but is written and read along rows.
func.func @row_major(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<4x6xf32> {
  %t = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %x[i0, i1]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4x6xf32, strides = [1, 4]>
  %y = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %t[i0, i1]
    %s = loop.reduce sum (r0 in 6) {
      %w = loop.load %t[i0, r0]
      loop.yield %w
    }
    %q = arith.divf %v, %s : f32
    loop.yield %q
  } : !aten.tensor<4x6xf32>
  func.return %y : !aten.tensor<4x6xf32>
}
// Columns are what its neighbours are contiguous along; and a returned value keeps its strides.
func.func @kept(%x: !aten.tensor<4x6xf32, strides = [1, 4]>) -> (!aten.tensor<4x6xf32, strides = [1, 4]>, !aten.tensor<4x6xf32, strides = [1, 4]>) {
  %t = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %x[i0, i1]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4x6xf32, strides = [1, 4]>
  %y = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %t[i0, i1]
    %e = math.sqrt %v : f32
    loop.yield %e
  } : !aten.tensor<4x6xf32, strides = [1, 4]>
  %z = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %t[i0, i1]
    %e = math.log %v : f32
    loop.yield %e
  } : !aten.tensor<4x6xf32, strides = [1, 4]>
  func.return %y, %z : !aten.tensor<4x6xf32, strides = [1, 4]>, !aten.tensor<4x6xf32, strides = [1, 4]>
}

// CHECK-LABEL: func.func @row_major
// CHECK: loop.yield %e
// CHECK-NEXT: } : !aten.tensor<4x6xf32>
// CHECK-LABEL: func.func @kept
// CHECK-NEXT: %t = loop.generate (i0 in 4, i1 in 6) {
// CHECK-NEXT: %v = loop.load %x[i0, i1]
// CHECK-NEXT: %e = math.exp %v : f32
// CHECK: } : !aten.tensor<4x6xf32, strides = [1, 4]>
// CHECK-NEXT: %y = loop.generate (i0 in 4, i1 in 6) {
// CHECK-NEXT: %v_1 = loop.load %t[i0, i1]
// CHECK-NEXT: %e_1 = math.sqrt %v_1 : f32
// CHECK: } : !aten.tensor<4x6xf32, strides = [1, 4]>
// CHECK-NEXT: %z = loop.generate (i0 in 4, i1 in 6) {
// CHECK-NEXT: %v_2 = loop.load %t[i0, i1]
// CHECK-NEXT: %e_2 = math.log %v_2 : f32
// CHECK: } : !aten.tensor<4x6xf32, strides = [1, 4]>
// A sum lies as its transposed operand, and so does the next one: both are better off along rows.
func.func @together(%x: !aten.tensor<4x6xf32, strides = [1, 4]>, %y: !aten.tensor<4x6xf32>, %z: !aten.tensor<4x6xf32>) -> !aten.tensor<4x6xf32> {
  %t = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %x[i0, i1]
    %w = loop.load %y[i0, i1]
    %s = arith.addf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<4x6xf32, strides = [1, 4]>
  %u = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %t[i0, i1]
    %w = loop.load %z[i0, i1]
    %s = arith.addf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<4x6xf32, strides = [1, 4]>
  %r = loop.generate (i0 in 4, i1 in 6) {
    %v = loop.load %u[i0, i1]
    %w = loop.load %t[i0, i1]
    %s = arith.mulf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<4x6xf32>
  func.return %r : !aten.tensor<4x6xf32>
}
// CHECK-LABEL: func.func @together
// CHECK: %t = loop.generate
// CHECK: } : !aten.tensor<4x6xf32>{{$}}
// CHECK: %u = loop.generate
// CHECK: } : !aten.tensor<4x6xf32>{{$}}
