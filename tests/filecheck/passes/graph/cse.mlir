// RUN: inductile-opt --allow-effects %s -p graph-cse | filecheck %s

// Equal ops merge, also through chains; properties, result types and random numbers tell ops apart.
func.func @merge(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  %1 = aten.exp(%x) : !aten.tensor<4xf32>
  %2 = aten.neg(%0) : !aten.tensor<4xf32>
  %3 = aten.neg(%1) : !aten.tensor<4xf32>
  %4 = aten.mul.Scalar(%2, other = 0.0) : !aten.tensor<4xf32>
  %5 = aten.mul.Scalar(%3, other = -0.0) : !aten.tensor<4xf32>
  %6 = aten.rand_like(%x) : !aten.tensor<4xf32>
  %7 = aten.rand_like(%x) : !aten.tensor<4xf32>
  %8 = aten._to_copy(%x, dtype = torch.float16) : !aten.tensor<4xf16>
  %9 = aten._to_copy(%x, dtype = torch.bfloat16) : !aten.tensor<4xbf16>
  %10 = aten.add.Scalar(%x, other = 1) : !aten.tensor<4xf32>
  %11 = aten.add.Scalar(%x, other = 1.0) : !aten.tensor<4xf32>
  %12 = aten.add.Scalar(%x, other = true) : !aten.tensor<4xf32>
  %13 = aten.cat([%4, %5, %6, %7, %8, %9, %10, %11, %12]) : !aten.tensor<36xf32>
  %14 = aten.slice.Tensor(%13, end = 4) : !aten.tensor<4xf32>
  func.return %14 : !aten.tensor<4xf32>
}

// Two outputs that eager keeps apart stay apart; a view of one counts as well.
func.func @outputs(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<2x2xf32>, !aten.tensor<4xf32>) {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  %1 = aten.exp(%x) : !aten.tensor<4xf32>
  %2 = aten.view(%1, size = [2, 2]) : !aten.tensor<2x2xf32>
  %3 = aten.exp(%x) : !aten.tensor<4xf32>
  %4 = aten.neg(%3) : !aten.tensor<4xf32>
  func.return %0, %2, %4 : !aten.tensor<4xf32>, !aten.tensor<2x2xf32>, !aten.tensor<4xf32>
}

// A read behind a write sees other elements.
func.func @writes(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  %1 = aten.copy_(%x, %y) : !aten.tensor<4xf32>
  %2 = aten.exp(%x) : !aten.tensor<4xf32>
  %3 = aten.exp(%x) : !aten.tensor<4xf32>
  %4 = aten.sub.Tensor(%2, %3) : !aten.tensor<4xf32>
  %5 = aten.sub.Tensor(%0, %4) : !aten.tensor<4xf32>
  func.return %5 : !aten.tensor<4xf32>
}

// A call that is not pure may write its arguments, which must not become one.
func.func @calls(%x: !aten.tensor<4xf32>) {
  %0 = aten.clone(%x) : !aten.tensor<4xf32>
  %1 = aten.clone(%x) : !aten.tensor<4xf32>
  aten.call "mylib::write"(%0, %1)
  func.return
}

// CHECK-LABEL: func.func @merge
// CHECK-NEXT: %0 = aten.exp(%x) : !aten.tensor<4xf32>
// CHECK-NEXT: %1 = aten.neg(%0) : !aten.tensor<4xf32>
// CHECK: func.return %12 : !aten.tensor<4xf32>
// CHECK-LABEL: func.func @outputs
// CHECK: %2 = aten.view(%1, size = [2, 2]) : !aten.tensor<2x2xf32>
// CHECK-NEXT: %3 = aten.neg(%0) : !aten.tensor<4xf32>
// CHECK-NEXT: func.return %0, %2, %3 : !aten.tensor<4xf32>, !aten.tensor<2x2xf32>, !aten.tensor<4xf32>
// CHECK-LABEL: func.func @writes
// CHECK: %1 = aten.copy_(%x, %y) : !aten.tensor<4xf32>
// CHECK-NEXT: %2 = aten.exp(%x) : !aten.tensor<4xf32>
// CHECK: func.return %4 : !aten.tensor<4xf32>
// CHECK-LABEL: func.func @calls
// CHECK-NEXT: %0 = aten.clone(%x) : !aten.tensor<4xf32>
// CHECK-NEXT: %1 = aten.clone(%x) : !aten.tensor<4xf32>
// CHECK-NEXT: aten.call "mylib::write"(%0, %1)
// CHECK-NEXT: func.return
