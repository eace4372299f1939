// RUN: inductile-opt %s --target cpp -p graph-multiply-quantised | filecheck %s
// RUN: inductile-opt %s --target cpp -p graph-multiply-quantised --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cpp -p 'graph-multiply-quantised{integer-products=floats}' | filecheck %s --check-prefix=FLOATS
// RUN: inductile-opt %s --target cpp -p 'graph-multiply-quantised{fallback-by-default=true}' | filecheck %s --check-prefix=OFF
// RUN: not inductile-opt %s --target cpp -p 'graph-multiply-quantised{integer-products=gold}' 2>&1 | filecheck %s --check-prefix=TYPO
// OFF-NOT: implementation =
// TYPO: error: option 'integer-products' of pass 'graph-multiply-quantised' is 'gold'; it takes one of: floats, library

// A weight of 8 bits by a cast, and one with scales of groups: they are read as they lie.
func.func @taken(%x: !aten.tensor<4x2048xf32>, %w: !aten.tensor<5632x2048xi8>, %s: !aten.tensor<5632x64xf32>, %b: !aten.tensor<5632xf32>) -> (!aten.tensor<4x5632xf32>, !aten.tensor<4x5632xf32>) {
  %0 = aten.t(%w) : !aten.tensor<2048x5632xi8, strides = [1, 2048]>
  %1 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<2048x5632xf32, strides = [1, 2048]>
  %2 = aten.mm(%x, %1) : !aten.tensor<4x5632xf32>
  %3 = aten.view(%w, size = [5632, 64, 32]) : !aten.tensor<5632x64x32xi8>
  %4 = aten._to_copy(%3, dtype = torch.float32) : !aten.tensor<5632x64x32xf32>
  %5 = aten.view(%s, size = [5632, 64, 1]) : !aten.tensor<5632x64x1xf32>
  %6 = aten.mul.Tensor(%4, %5) : !aten.tensor<5632x64x32xf32>
  %7 = aten.view(%6, size = [5632, 2048]) : !aten.tensor<5632x2048xf32>
  %8 = aten.t(%7) : !aten.tensor<2048x5632xf32, strides = [1, 2048]>
  %9 = aten.addmm(%b, %x, %8) : !aten.tensor<4x5632xf32>
  func.return %2, %9 : !aten.tensor<4x5632xf32>, !aten.tensor<4x5632xf32>
}
// CHECK-LABEL: @taken
// CHECK: aten.mm(%{{.*}}) {implementation = "nest"}
// CHECK: aten.addmm(%{{.*}}) {implementation = "nest"}
// REMARK: passed: aten.mm: a nest that dequantises where it reads: 11.0 MiB in each call
// REMARK: passed: aten.addmm: a nest that dequantises where it reads: 12.4 MiB in each call

// Many rows, a weight whose rows lie along the result, one that another op reads, one that takes no more memory than
// what it is made of, and any number of rows.
func.func @kept(%x: !aten.tensor<64x512xf32>, %y: !aten.tensor<1x512xf32>, %z: !aten.tensor<(s0)x512xf32>, %w: !aten.tensor<256x512xi8>, %v: !aten.tensor<512x256xi8>, %u: !aten.tensor<256x512xf32>) -> (!aten.tensor<64x256xf32>, !aten.tensor<1x256xf32>, !aten.tensor<1x256xf32>, !aten.tensor<1x256xf32>, !aten.tensor<(s0)x256xf32>, !aten.tensor<512x256xf32, strides = [1, 512]>) attributes {symbols = [#sym.symbol<s0, arg = 2, dim = 0, min = 1>]} {
  %0 = aten.t(%w) : !aten.tensor<512x256xi8, strides = [1, 512]>
  %1 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<512x256xf32, strides = [1, 512]>
  %2 = aten.mm(%x, %1) : !aten.tensor<64x256xf32>
  %3 = aten._to_copy(%v, dtype = torch.float32) : !aten.tensor<512x256xf32>
  %4 = aten.mm(%y, %3) : !aten.tensor<1x256xf32>
  %5 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<512x256xf32, strides = [1, 512]>
  %6 = aten.mm(%y, %5) : !aten.tensor<1x256xf32>
  %7 = aten.t(%u) : !aten.tensor<512x256xf32, strides = [1, 512]>
  %8 = aten.neg(%7) : !aten.tensor<512x256xf32, strides = [1, 512]>
  %9 = aten.mm(%y, %8) : !aten.tensor<1x256xf32>
  %10 = aten._to_copy(%0, dtype = torch.float32) : !aten.tensor<512x256xf32, strides = [1, 512]>
  %11 = aten.mm(%z, %10) : !aten.tensor<(s0)x256xf32>
  func.return %2, %4, %6, %9, %11, %5 : !aten.tensor<64x256xf32>, !aten.tensor<1x256xf32>, !aten.tensor<1x256xf32>, !aten.tensor<1x256xf32>, !aten.tensor<(s0)x256xf32>, !aten.tensor<512x256xf32, strides = [1, 512]>
}
// CHECK-LABEL: @kept
// CHECK-NOT: implementation
// REMARK: missed: aten.mm: its weight is dequantised into memory, 512.0 KiB made of 128.0 KiB in each call: it has more than 8 rows
// REMARK: missed: aten.mm: its weight is dequantised into memory, 512.0 KiB made of 128.0 KiB in each call: the rows of its weight do not lie along the depth
// REMARK: missed: aten.mm: its weight is dequantised into memory, 512.0 KiB made of 128.0 KiB in each call: it has more than 8 rows

// Integers: few rows are sums over rows of the weight.
func.func @integers(%x: !aten.tensor<4x512xi8>, %y: !aten.tensor<64x512xi8>, %w: !aten.tensor<512x256xi8, strides = [1, 512]>) -> (!aten.tensor<4x256xi32>, !aten.tensor<64x256xi32>) {
  %0 = aten._int_mm(%x, %w) : !aten.tensor<4x256xi32>
  %1 = aten._int_mm(%y, %w) : !aten.tensor<64x256xi32>
  func.return %0, %1 : !aten.tensor<4x256xi32>, !aten.tensor<64x256xi32>
}
// CHECK-LABEL: @integers
// CHECK: aten._int_mm(%x, %w) {implementation = "nest"}
// CHECK: aten._int_mm(%y, %w) : !aten
// FLOATS-LABEL: @integers
// FLOATS: aten._int_mm(%x, %w) {implementation = "nest"}
// FLOATS: aten._int_mm(%y, %w) {implementation = "floats"}
