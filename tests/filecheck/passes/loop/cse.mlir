// RUN: inductile-opt %s -p loop-cse | filecheck %s

func.func @f(%x: !aten.tensor<4x6xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>) {
  %a = loop.generate (i0 in 4) {
    %s = loop.reduce sum (r0 in 6) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    %z = arith.constant 0.0 : f32
    %n = arith.constant -0.0 : f32
    %n2 = arith.constant -0.0 : f32
    %t = arith.addf %s, %z : f32
    %t1 = arith.addf %t, %n : f32
    %t2 = arith.addf %t1, %n2 : f32
    loop.yield %t2
  } : !aten.tensor<4xf32>
  %b = loop.generate (i5 in 4) {
    %s = loop.reduce sum (i0 in 6) {
      %v = loop.load %x[i5, i0]
      loop.yield %v
    }
    %s2 = loop.reduce sum (r2 in 6) {
      %v = loop.load %x[i5, r2]
      loop.yield %v
    }
    %z = arith.constant 0.0 : f32
    %n = arith.constant -0.0 : f32
    %t = arith.addf %s2, %z : f32
    %t1 = arith.addf %t, %n : f32
    %t2 = arith.addf %t1, %n : f32
    loop.yield %t2
  } : !aten.tensor<4xf32>
  %c = loop.generate (i0 in 4) {
    %v = loop.load %a[i0]
    %w = loop.load %b[i0]
    %t = arith.addf %v, %w : f32
    loop.yield %t
  } : !aten.tensor<4xf32>
  %d = loop.generate (i0 in 4) {
    %v = loop.load %a[i0]
    %w = loop.load %b[i0]
    %t = arith.addf %v, %w : f32
    loop.yield %t
  } : !aten.tensor<4xf32>
  func.return %b, %c, %d : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>
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

// CHECK-LABEL: func.func @f
// CHECK: %v = loop.load %x[i0, r0]
// CHECK-NEXT: loop.yield %v
// CHECK: %v_1 = loop.load %a[i0]
// CHECK-NEXT: %t_1 = arith.addf %v_1, %v_1 : f32
// CHECK: %d = loop.generate (i0 in 4) {
// CHECK-NEXT: %v_2 = loop.load %a[i0]
// CHECK: func.return %a, %c, %d : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<4xf32>
// CHECK-LABEL: func.func @written_between
// CHECK-NEXT: %a = loop.generate (i0 in 4) {
// CHECK: %b = loop.generate (i0 in 4) {
// CHECK: %d = loop.generate (i0 in 4) {
// CHECK: %e_3 = loop.generate (i0 in 4) {
