// RUN: inductile-opt --allow-effects %s -p graph-dce | filecheck %s

// A chain dies from its end; what writes, draws random numbers or checks stays.
func.func @effects(%x: !aten.tensor<4xf32>, %c: !aten.tensor<i1>) -> !aten.tensor<4xf32> {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  %1 = aten.neg(%0) : !aten.tensor<4xf32>
  %2 = aten.log(%x) : !aten.tensor<4xf32>
  %3 = aten.rand_like(%x) : !aten.tensor<4xf32>
  aten._assert_async.msg(%c, assert_msg = "must hold")
  %4 = aten.copy_(%x, %2) : !aten.tensor<4xf32>
  %5 = aten.call pure "mylib::f"(%x, 1) : !aten.tensor<4xf32>
  %6 = aten.call "mylib::g"(%x, 1) : !aten.tensor<4xf32>
  func.return %2 : !aten.tensor<4xf32>
}

// `u0` is mentioned by a type, `u1` by nothing that stays.
func.func @symbols(%x: !aten.tensor<4xf32>, %i: !aten.tensor<2xi64>) -> !aten.tensor<(u0)x1xi64>
    attributes {symbols = [#sym.symbol<u0, min = 0>, #sym.symbol<u1, min = 0>]} {
  %0 = aten.nonzero(%x) binds [u0] : !aten.tensor<(u0)x1xi64>
  %1 = aten.sum(%i) : !aten.tensor<i64>
  %2 = aten._local_scalar_dense(%1) binds [u1] : index
  %3 = aten.zeros(size = [u1]) : !aten.tensor<(u1)xf32>
  %4 = aten.zeros(size = [u0, 1], dtype = torch.int64) : !aten.tensor<(u0)x1xi64>
  func.return %4 : !aten.tensor<(u0)x1xi64>
}

// CHECK-LABEL: func.func @effects(%x: !aten.tensor<4xf32>, %c: !aten.tensor<i1>) -> !aten.tensor<4xf32> {
// CHECK-NEXT: %0 = aten.log(%x) : !aten.tensor<4xf32>
// CHECK: %2 = aten.copy_(%x, %0) : !aten.tensor<4xf32>
// CHECK-NEXT: %3 = aten.call "mylib::g"(%x, 1) : !aten.tensor<4xf32>
// CHECK-NEXT: func.return %0 : !aten.tensor<4xf32>
// CHECK-LABEL: func.func @symbols(%x: !aten.tensor<4xf32>, %i: !aten.tensor<2xi64>) -> !aten.tensor<(u0)x1xi64> attributes {symbols = [#sym.symbol<u0, min = 0>]} {
// CHECK-NEXT: %0 = aten.nonzero(%x) binds [u0] : !aten.tensor<(u0)x1xi64>
// CHECK-NEXT: %1 = aten.zeros(size = [u0, 1], dtype = torch.int64) : !aten.tensor<(u0)x1xi64>
// CHECK-NEXT: func.return %1 : !aten.tensor<(u0)x1xi64>
