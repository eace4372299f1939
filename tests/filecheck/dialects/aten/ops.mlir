// RUN: inductile-opt --allow-effects %s | filecheck %s
// RUN: inductile-opt --allow-effects %s --print-op-generic | inductile-opt --allow-effects | filecheck %s

// What is printed reads back, in the custom and in the generic form; defaults are not printed.
func.func @arguments(%x: !aten.tensor<(s0)x8xf32>, %i: !aten.tensor<4xi64>, %im: !aten.tensor<3x6x8xf32>, %n: index) -> !aten.tensor<(s0)x4xf32>
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %0 = aten.slice.Tensor(%x, dim = 1, start = 0, end = s0 + 1, step = 1) : !aten.tensor<(s0)x8xf32>
  %1 = aten.index.Tensor(%x, [none, %i]) : !aten.tensor<(s0)x4xf32>
  %2, %3 = aten.split.Tensor(%x, split_size = 4, dim = 1) : !aten.tensor<(s0)x4xf32>, !aten.tensor<(s0)x4xf32>
  %4 = aten.cat([%2, %3], dim = 1) : !aten.tensor<(s0)x8xf32>
  %5 = aten.clamp.Tensor(%x, none, %x) : !aten.tensor<(s0)x8xf32>
  %6, %7, %8 = aten.native_layer_norm(%x, normalized_shape = [8], eps = 1.0e-05) : !aten.tensor<(s0)x8xf32>, none, none
  %9 = aten._to_copy(%x, dtype = torch.float64, device = "cuda:0", layout = torch.strided, memory_format = torch.channels_last) : !aten.tensor<(s0)x8xf64>
  %10 = aten.upsample_nearest2d.vec(%x, scale_factors = [2.0, 2.0]) : !aten.tensor<(s0)x8xf32>
  %11 = aten.avg_pool2d(%im, kernel_size = 3, count_include_pad = false) : !aten.tensor<3x2x2xf32>
  %12 = aten._to_copy(%x, dtype = torch.qint8) : !aten.tensor<(s0)x8x!aten.dtype<"qint8">>
  %13 = aten.div.Tensor_mode(%x, %x, rounding_mode = "fl\"oor") : !aten.tensor<(s0)x8xf32>
  func.return %1 : !aten.tensor<(s0)x4xf32>
}

// Scalars keep their kind and their bits.
func.func @scalars(%x: !aten.tensor<(s0)xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %0 = aten.mul.Scalar(%x, other = 1) : !aten.tensor<(s0)xf32>
  %1 = aten.mul.Scalar(%x, other = 1.0) : !aten.tensor<(s0)xf32>
  %2 = aten.mul.Scalar(%x, other = true) : !aten.tensor<(s0)xf32>
  %3 = aten.mul.Scalar(%x, other = complex(1.0, -0.0)) : !aten.tensor<(s0)xcomplex<f32>>
  %4 = aten.mul.Scalar(%x, other = -s0 + 1) : !aten.tensor<(s0)xf32>
  %5 = aten.mul.Scalar(%x, other = -inf) : !aten.tensor<(s0)xf32>
  %6 = aten.mul.Scalar(%x, other = nan) : !aten.tensor<(s0)xf32>
  %7 = aten.mul.Scalar(%x, other = -0.0) : !aten.tensor<(s0)xf32>
  %8 = aten.mul.Scalar(%x, other = 1.0e-12) : !aten.tensor<(s0)xf32>
  %9 = aten.mul.Scalar(%x, other = 4.9406564584124654e-324) : !aten.tensor<(s0)xf32>
  func.return
}

// Numbers that ops make: symbols for integers, values for the rest.
func.func @numbers(%x: !aten.tensor<4xf32>, %i: !aten.tensor<i64>) attributes {symbols = [#sym.symbol<u0>, #sym.symbol<u1, min = 0>]} {
  %0 = aten.item(%i) binds [u0] : index
  %1 = aten.item(%x) : f64
  %2 = aten.add.Scalar(%x, other = %1, alpha = u0) : !aten.tensor<4xf32>
  %3 = aten.call pure "operator::ge"(u0, 0) : i1
  aten._assert_scalar(self = %3, assert_msg = "negative")
  %4 = aten.nonzero(%x) binds [u1] : !aten.tensor<(u1)x1xi64>
  func.return
}

// Calls of anything: nested arguments, dictionaries, graphs, operators, constants of torch.
func.func @calls(%x: !aten.tensor<4xf32>, %p: !aten.tensor<i1>) {
  %0 = aten.call "higher_order::cond"(%p, @true_graph_0, @false_graph_0, [%x, [%x, 1, none], tuple(), tuple(tuple(%x), 2)]) : !aten.tensor<4xf32>
  %1, %2 = aten.call "higher_order::with_effects"(%x, operator("mylib::f.x"), {a = %x, "b c" = [true, 2.0]}, key = "v") : !aten.tensor<4xf32>, none
  %3 = aten.call pure "mylib::g"(device("cpu"), torch.float16, torch.strided, torch.channels_last, [], complex(0.0, 1.0)) {note = 1 : i64} : f64
  aten.call "mylib::h"()
  func.return
}

// Several lists of results.
func.func @lists(%x: !aten.tensor<4xf32>, %s: !aten.tensor<f32>) {
  %0, %1, %2, %3, %4 = aten._fused_adam([%x], [%x], [%x], [%x], [], [%s], lr = 0.001, beta1 = 0.9, beta2 = 0.999, weight_decay = 0.0, eps = 1.0e-08, amsgrad = false, maximize = false) : [!aten.tensor<4xf32>], [!aten.tensor<4xf32>], [!aten.tensor<4xf32>], [!aten.tensor<4xf32>, !aten.tensor<4xf32>], []
  %5, %6 = aten._foreach_add.Scalar([%x, %x], scalar = 2) : !aten.tensor<4xf32>, !aten.tensor<4xf32>
  %7, %8 = aten._foreach_add.ScalarList([%x, %x], scalars = [1, 2.0]) : !aten.tensor<4xf32>, !aten.tensor<4xf32>
  func.return
}

// CHECK-BLESS
// CHECK: builtin.module {
// CHECK-NEXT:   func.func @arguments(%x: !aten.tensor<(s0)x8xf32>, %i: !aten.tensor<4xi64>, %im: !aten.tensor<3x6x8xf32>, %n: index) -> !aten.tensor<(s0)x4xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
// CHECK-NEXT:     %0 = aten.slice.Tensor(%x, dim = 1, start = 0, end = s0 + 1) : !aten.tensor<(s0)x8xf32>
// CHECK-NEXT:     %1 = aten.index.Tensor(%x, [none, %i]) : !aten.tensor<(s0)x4xf32>
// CHECK-NEXT:     %2, %3 = aten.split.Tensor(%x, split_size = 4, dim = 1) : !aten.tensor<(s0)x4xf32>, !aten.tensor<(s0)x4xf32>
// CHECK-NEXT:     %4 = aten.cat([%2, %3], dim = 1) : !aten.tensor<(s0)x8xf32>
// CHECK-NEXT:     %5 = aten.clamp.Tensor(%x, none, %x) : !aten.tensor<(s0)x8xf32>
// CHECK-NEXT:     %6, %7, %8 = aten.native_layer_norm(%x, normalized_shape = [8], eps = 1.0e-05) : !aten.tensor<(s0)x8xf32>, none, none
// CHECK-NEXT:     %9 = aten._to_copy(%x, dtype = torch.float64, layout = torch.strided, device = "cuda:0", memory_format = torch.channels_last) : !aten.tensor<(s0)x8xf64>
// CHECK-NEXT:     %10 = aten.upsample_nearest2d.vec(%x, scale_factors = [2.0, 2.0]) : !aten.tensor<(s0)x8xf32>
// CHECK-NEXT:     %11 = aten.avg_pool2d(%im, kernel_size = [3, 3], count_include_pad = false) : !aten.tensor<3x2x2xf32>
// CHECK-NEXT:     %12 = aten._to_copy(%x, dtype = torch.qint8) : !aten.tensor<(s0)x8x!aten.dtype<"qint8">>
// CHECK-NEXT:     %13 = aten.div.Tensor_mode(%x, %x, rounding_mode = "fl\22oor") : !aten.tensor<(s0)x8xf32>
// CHECK-NEXT:     func.return %1 : !aten.tensor<(s0)x4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @scalars(%x: !aten.tensor<(s0)xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
// CHECK-NEXT:     %0 = aten.mul.Scalar(%x, other = 1) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %1 = aten.mul.Scalar(%x, other = 1.0) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %2 = aten.mul.Scalar(%x, other = true) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %3 = aten.mul.Scalar(%x, other = complex(1.0, -0.0)) : !aten.tensor<(s0)xcomplex<f32>>
// CHECK-NEXT:     %4 = aten.mul.Scalar(%x, other = -s0 + 1) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %5 = aten.mul.Scalar(%x, other = -inf) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %6 = aten.mul.Scalar(%x, other = nan) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %7 = aten.mul.Scalar(%x, other = -0.0) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %8 = aten.mul.Scalar(%x, other = 1.0e-12) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     %9 = aten.mul.Scalar(%x, other = 5.0e-324) : !aten.tensor<(s0)xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @numbers(%x: !aten.tensor<4xf32>, %i: !aten.tensor<i64>) attributes {symbols = [#sym.symbol<u0>, #sym.symbol<u1, min = 0>]} {
// CHECK-NEXT:     %0 = aten.item(%i) binds [u0] : index
// CHECK-NEXT:     %1 = aten.item(%x) : f64
// CHECK-NEXT:     %2 = aten.add.Scalar(%x, other = %1, alpha = u0) : !aten.tensor<4xf32>
// CHECK-NEXT:     %3 = aten.call pure "operator::ge"(u0, 0) : i1
// CHECK-NEXT:     aten._assert_scalar(self = %3, assert_msg = "negative")
// CHECK-NEXT:     %4 = aten.nonzero(%x) binds [u1] : !aten.tensor<(u1)x1xi64>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @calls(%x: !aten.tensor<4xf32>, %p: !aten.tensor<i1>) {
// CHECK-NEXT:     %0 = aten.call "higher_order::cond"(%p, @true_graph_0, @false_graph_0, [%x, [%x, 1, none], tuple(), tuple(tuple(%x), 2)]) : !aten.tensor<4xf32>
// CHECK-NEXT:     %1, %2 = aten.call "higher_order::with_effects"(%x, operator("mylib::f.x"), {a = %x, "b c" = [true, 2.0]}, key = "v") : !aten.tensor<4xf32>, none
// CHECK-NEXT:     %3 = aten.call pure "mylib::g"(device("cpu"), torch.float16, torch.strided, torch.channels_last, [], complex(0.0, 1.0)) {note = 1 : i64} : f64
// CHECK-NEXT:     aten.call "mylib::h"()
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @lists(%x: !aten.tensor<4xf32>, %s: !aten.tensor<f32>) {
// CHECK-NEXT:     %0, %1, %2, %3, %4 = aten._fused_adam([%x], [%x], [%x], [%x], [], [%s], lr = 0.001, beta1 = 0.9, beta2 = 0.999, weight_decay = 0.0, eps = 1.0e-08, amsgrad = false, maximize = false) : [!aten.tensor<4xf32>], [!aten.tensor<4xf32>], [!aten.tensor<4xf32>], [!aten.tensor<4xf32>, !aten.tensor<4xf32>], []
// CHECK-NEXT:     %5, %6 = aten._foreach_add.Scalar([%x, %x], scalar = 2) : !aten.tensor<4xf32>, !aten.tensor<4xf32>
// CHECK-NEXT:     %7, %8 = aten._foreach_add.ScalarList([%x, %x], scalars = [1, 2.0]) : !aten.tensor<4xf32>, !aten.tensor<4xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
