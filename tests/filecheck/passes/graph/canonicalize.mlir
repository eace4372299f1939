// RUN: inductile-opt --allow-effects %s -p graph-canonicalize | filecheck %s

// Views and copies that change nothing.
func.func @no_ops(%x: !aten.tensor<(s0)x4xf32>) -> !aten.tensor<(s0)x4xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %0 = aten.detach(%x) : !aten.tensor<(s0)x4xf32>
  %1 = aten.view(%0, size = [-1, 4]) : !aten.tensor<(s0)x4xf32>
  %2 = aten.expand(%1, size = [s0, 4]) : !aten.tensor<(s0)x4xf32>
  %3 = aten.clone(%2) : !aten.tensor<(s0)x4xf32>
  %4 = aten.slice.Tensor(%3, end = 9223372036854775807) : !aten.tensor<(s0)x4xf32>
  %5 = aten._to_copy(%4, dtype = torch.float32) : !aten.tensor<(s0)x4xf32>
  %6 = aten.mul.Scalar(%5, other = 1) : !aten.tensor<(s0)x4xf32>
  %7 = aten.exp(%6) : !aten.tensor<(s0)x4xf32>
  func.return %7 : !aten.tensor<(s0)x4xf32>
}

// Outputs stay apart from inputs and from each other.
func.func @outputs(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<2x2xf32>) {
  %0 = aten.detach(%x) : !aten.tensor<4xf32>
  %1 = aten.clone(%x) : !aten.tensor<4xf32>
  %2 = aten.clone(%x) : !aten.tensor<4xf32>
  %3 = aten.view(%2, size = [2, 2]) : !aten.tensor<2x2xf32>
  func.return %0, %1, %3 : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<2x2xf32>
}

// A copy of an input that is written, and a copy that a call may write.
func.func @writes(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.clone(%x) : !aten.tensor<4xf32>
  %1 = aten.clone(%y) : !aten.tensor<4xf32>
  aten.call "mylib::write"(%1)
  %2 = aten.exp(%y) : !aten.tensor<4xf32>
  %3 = aten.copy_(%x, %2) : !aten.tensor<4xf32>
  %4 = aten.exp(%0) : !aten.tensor<4xf32>
  func.return %4 : !aten.tensor<4xf32>
}

// A transposed square has the type of the square but not its elements in order.
func.func @permutations(%x: !aten.tensor<4x4xf32>, %y: !aten.tensor<2x3x5xf32>) -> (!aten.tensor<4x4xf32>, !aten.tensor<2x3x5xf32>, !aten.tensor<5x3x2xf32>) {
  %0 = aten.t(%x) : !aten.tensor<4x4xf32, strides = [1, 4]>
  %1 = aten.transpose.int(%0, dim0 = 0, dim1 = -1) : !aten.tensor<4x4xf32>
  %2 = aten.exp(%1) : !aten.tensor<4x4xf32>
  %3 = aten.permute(%y, dims = [2, 0, 1]) : !aten.tensor<5x2x3xf32, strides = [1, 15, 5]>
  %4 = aten.permute(%3, dims = [1, 2, 0]) : !aten.tensor<2x3x5xf32>
  %5 = aten.exp(%4) : !aten.tensor<2x3x5xf32>
  %6 = aten.transpose.int(%3, dim0 = 1, dim1 = 2) : !aten.tensor<5x3x2xf32, strides = [1, 5, 15]>
  %7 = aten.exp(%6) : !aten.tensor<5x3x2xf32>
  %8 = aten.t(%x) : !aten.tensor<4x4xf32, strides = [1, 4]>
  %9 = aten.add.Tensor(%2, %8) : !aten.tensor<4x4xf32>
  func.return %9, %5, %7 : !aten.tensor<4x4xf32>, !aten.tensor<2x3x5xf32>, !aten.tensor<5x3x2xf32>
}

func.func @views(%x: !aten.tensor<4x6xf32>) -> !aten.tensor<8x3xf32> {
  %0 = aten.view(%x, size = [24]) : !aten.tensor<24xf32>
  %1 = aten.view(%0, size = [8, -1]) : !aten.tensor<8x3xf32>
  %2 = aten.exp(%1) : !aten.tensor<8x3xf32>
  func.return %2 : !aten.tensor<8x3xf32>
}

// bf16 -> f32 keeps every value, f32 -> bf16 does not; f16 -> f32 -> i8 depends on the type it starts from.
func.func @casts(%x: !aten.tensor<4xbf16>, %y: !aten.tensor<4xf32>, %z: !aten.tensor<4xf16>, %i: !aten.tensor<4xui8>) -> !aten.tensor<20xf32> {
  %0 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<4xf32>
  %1 = aten._to_copy(%0, dtype = torch.bfloat16) : !aten.tensor<4xbf16>
  %2 = aten.exp(%1) : !aten.tensor<4xbf16>
  %3 = aten._to_copy(%0, dtype = torch.float64) : !aten.tensor<4xf64>
  %4 = aten._to_copy(%y, dtype = torch.bfloat16) : !aten.tensor<4xbf16>
  %5 = aten._to_copy(%4, dtype = torch.float32) : !aten.tensor<4xf32>
  %6 = aten._to_copy(%z, dtype = torch.float32) : !aten.tensor<4xf32>
  %7 = aten._to_copy(%6, dtype = torch.int8) : !aten.tensor<4xi8>
  %8 = aten._to_copy(%i, dtype = torch.float32) : !aten.tensor<4xf32>
  %9 = aten._to_copy(%8, dtype = torch.int64) : !aten.tensor<4xi64>
  %10 = aten.cat([%2, %3, %5, %7, %9]) : !aten.tensor<20xf32>
  func.return %10 : !aten.tensor<20xf32>
}

func.func @constants(%x: !aten.tensor<4xf32>, %t: !aten.tensor<2x4xf32, strides = [1, 2]>) -> (!aten.tensor<12xf32>, !aten.tensor<2x4xf32, strides = [1, 2]>, !aten.tensor<f64>) {
  %0 = aten.zeros(size = [4], dtype = torch.int64, pin_memory = false) : !aten.tensor<4xi64>
  %1 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<4xf32>
  %2 = aten.full_like(%x, fill_value = -inf) : !aten.tensor<4xf32>
  %3 = aten.ones_like(%t) : !aten.tensor<2x4xf32, strides = [1, 2]>
  %4 = aten.scalar_tensor(s = 0.1, dtype = torch.float32) : !aten.tensor<f32>
  %5 = aten._to_copy(%4, dtype = torch.float64) : !aten.tensor<f64>
  %6 = aten.cat([%1, %2, %1]) : !aten.tensor<12xf32>
  func.return %6, %3, %5 : !aten.tensor<12xf32>, !aten.tensor<2x4xf32, strides = [1, 2]>, !aten.tensor<f64>
}

// -0.0 + 0 is 0.0.
func.func @zeros(%x: !aten.tensor<4xf32>, %i: !aten.tensor<4xi32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xi32>) {
  %0 = aten.add.Scalar(%x, other = 0) : !aten.tensor<4xf32>
  %1 = aten.exp(%0) : !aten.tensor<4xf32>
  %2 = aten.add.Scalar(%i, other = 0, alpha = 3) : !aten.tensor<4xi32>
  %3 = aten.neg(%2) : !aten.tensor<4xi32>
  func.return %1, %3 : !aten.tensor<4xf32>, !aten.tensor<4xi32>
}

// What a joint graph says of an op holds for what stands in its place.
func.func @in_a_checkpoint(%x: !aten.tensor<4x3xf32>) -> !aten.tensor<4x3xf32> {
  %0 = aten.div.Scalar(%x, other = 4.0) {checkpoint = "recompute", region = 2 : i64} : !aten.tensor<4x3xf32>
  func.return %0 : !aten.tensor<4x3xf32>
}

// CHECK-LABEL: func.func @no_ops(%x: !aten.tensor<(s0)x4xf32>) -> !aten.tensor<(s0)x4xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
// CHECK-NEXT: %0 = aten.exp(%x) : !aten.tensor<(s0)x4xf32>
// CHECK-NEXT: func.return %0 : !aten.tensor<(s0)x4xf32>
// CHECK-LABEL: func.func @outputs
// CHECK-NEXT: %0 = aten.detach(%x) : !aten.tensor<4xf32>
// CHECK-NEXT: %1 = aten.clone(%x) : !aten.tensor<4xf32>
// CHECK-NEXT: %2 = aten.clone(%x) : !aten.tensor<4xf32>
// CHECK-NEXT: %3 = aten.view(%2, size = [2, 2]) : !aten.tensor<2x2xf32>
// CHECK-NEXT: func.return %0, %1, %3 : !aten.tensor<4xf32>, !aten.tensor<4xf32>, !aten.tensor<2x2xf32>
// CHECK-LABEL: func.func @writes
// CHECK-NEXT: %0 = aten.clone(%x) : !aten.tensor<4xf32>
// CHECK-NEXT: %1 = aten.clone(%y) : !aten.tensor<4xf32>
// CHECK-NEXT: aten.call "mylib::write"(%1)
// CHECK-NEXT: %2 = aten.exp(%y) : !aten.tensor<4xf32>
// CHECK-NEXT: %3 = aten.copy_(%x, %2) : !aten.tensor<4xf32>
// CHECK-NEXT: %4 = aten.exp(%0) : !aten.tensor<4xf32>
// CHECK-NEXT: func.return %4 : !aten.tensor<4xf32>
// CHECK-LABEL: func.func @permutations
// CHECK-NEXT: %0 = aten.t(%x) : !aten.tensor<4x4xf32, strides = [1, 4]>
// CHECK-NEXT: %1 = aten.exp(%x) : !aten.tensor<4x4xf32>
// CHECK-NEXT: %2 = aten.permute(%y, dims = [2, 0, 1]) : !aten.tensor<5x2x3xf32, strides = [1, 15, 5]>
// CHECK-NEXT: %3 = aten.exp(%y) : !aten.tensor<2x3x5xf32>
// CHECK-NEXT: %4 = aten.permute(%y, dims = [2, 1, 0]) : !aten.tensor<5x3x2xf32, strides = [1, 5, 15]>
// CHECK: func.return %7, %3, %5 : !aten.tensor<4x4xf32>, !aten.tensor<2x3x5xf32>, !aten.tensor<5x3x2xf32>
// CHECK-LABEL: func.func @views
// CHECK: %1 = aten.view(%x, size = [8, 3]) : !aten.tensor<8x3xf32>
// CHECK-LABEL: func.func @casts
// CHECK-NEXT: %0 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<4xf32>
// CHECK-NEXT: %1 = aten.exp(%x) : !aten.tensor<4xbf16>
// CHECK: func.return %9 : !aten.tensor<20xf32>
// CHECK-LABEL: func.func @constants
// CHECK-NEXT: %0 = aten.full(size = [4], fill_value = 0, dtype = torch.int64, device = "cpu") : !aten.tensor<4xi64>
// CHECK-NEXT: %1 = aten.full(size = [4], fill_value = 0.0, dtype = torch.float32, device = "cpu") : !aten.tensor<4xf32>
// CHECK-NEXT: %2 = aten.full(size = [4], fill_value = -inf, dtype = torch.float32, device = "cpu") : !aten.tensor<4xf32>
// CHECK: %4 = aten.full(size = [], fill_value = 0.1, dtype = torch.float32, device = "cpu") : !aten.tensor<f32>
// CHECK-LABEL: func.func @zeros
// CHECK: %1 = aten.exp(%0) : !aten.tensor<4xf32>
// CHECK-NEXT: %2 = aten.neg(%i) : !aten.tensor<4xi32>
// CHECK-NEXT: func.return %1, %2 : !aten.tensor<4xf32>, !aten.tensor<4xi32>
// CHECK-LABEL: func.func @in_a_checkpoint
// CHECK-NEXT: %0 = aten.mul.Scalar(%x, other = 0.25) {checkpoint = "recompute", region = 2 : i64} : !aten.tensor<4x3xf32>
