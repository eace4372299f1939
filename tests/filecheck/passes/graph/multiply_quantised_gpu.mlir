// RUN: inductile-opt %s --target cuda:90 -p graph-multiply-quantised | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p graph-multiply-quantised --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p "graph-multiply-quantised{dequantised_copies=never}" --remarks 2>&1 | filecheck %s --check-prefix=NEVER
// RUN: inductile-opt %s --target cuda:90 -p "graph-multiply-quantised{dequantised_copies=faster}" | filecheck %s --check-prefix=FASTER
// RUN: inductile-opt %s --target cuda:90 -p "graph-multiply-quantised{dequantised_copies=faster}" --remarks 2>&1 | filecheck %s --check-prefix=SLOWER
// RUN: inductile-opt %s --target cuda:80 -p graph-multiply-quantised | filecheck %s --check-prefix=A100
// RUN: inductile-opt %s --target cuda:90 --pipeline default -t triton | filecheck %s --check-prefix=TRITON

// Few rows and a weight of 8 bits: matrix units make it where they read it. Of 2048 columns there are few programs, so
// that each has a part of the depth.
func.func @taken(%x: !aten.tensor<3x512xbf16, device = "cuda:0">, %w: !aten.tensor<2048x512xi8, device = "cuda:0">, %s: !aten.tensor<2048xbf16, device = "cuda:0">) -> !aten.tensor<3x2048xbf16, device = "cuda:0"> {
  %0 = aten.t(%w) : !aten.tensor<512x2048xi8, strides = [1, 512], device = "cuda:0">
  %1 = aten._to_copy(%0, dtype = torch.bfloat16) : !aten.tensor<512x2048xbf16, strides = [1, 512], device = "cuda:0">
  %2 = aten.mul.Tensor(%1, %s) : !aten.tensor<512x2048xbf16, strides = [1, 512], device = "cuda:0">
  %3 = aten.mm(%x, %2) : !aten.tensor<3x2048xbf16, device = "cuda:0">
  func.return %3 : !aten.tensor<3x2048xbf16, device = "cuda:0">
}
// CHECK-LABEL: @taken
// CHECK: aten.mm(%{{.*}}) {implementation = "nest", tile = array<i64: 16, 64, 128, 4, 5, 4>, precision = "bf16"}
// REMARK: passed: aten.mm: a nest on matrix units that makes its matrix where it reads: 1.0 MiB in each call
// TRITON: # grid 128, num_warps 4, num_stages 5
// TRITON: tl.load({{.*}}512 * i1
// TRITON: tl.dot(

// Numbers that are scaled in groups are for matrix units, too, of up to 16 rows.
func.func @kept(%x: !aten.tensor<129x512xbf16, device = "cuda:0">, %y: !aten.tensor<2x512xbf16, device = "cuda:0">, %w: !aten.tensor<2048x512xi8, device = "cuda:0">, %s: !aten.tensor<2048x8xbf16, device = "cuda:0">) -> (!aten.tensor<129x2048xbf16, device = "cuda:0">, !aten.tensor<2x2048xbf16, device = "cuda:0">) {
  %0 = aten.t(%w) : !aten.tensor<512x2048xi8, strides = [1, 512], device = "cuda:0">
  %1 = aten._to_copy(%0, dtype = torch.bfloat16) : !aten.tensor<512x2048xbf16, strides = [1, 512], device = "cuda:0">
  %2 = aten.mm(%x, %1) : !aten.tensor<129x2048xbf16, device = "cuda:0">
  %3 = aten.view(%w, size = [2048, 8, 64]) : !aten.tensor<2048x8x64xi8, device = "cuda:0">
  %4 = aten._to_copy(%3, dtype = torch.bfloat16) : !aten.tensor<2048x8x64xbf16, device = "cuda:0">
  %5 = aten.view(%s, size = [2048, 8, 1]) : !aten.tensor<2048x8x1xbf16, device = "cuda:0">
  %6 = aten.mul.Tensor(%4, %5) : !aten.tensor<2048x8x64xbf16, device = "cuda:0">
  %7 = aten.view(%6, size = [2048, 512]) : !aten.tensor<2048x512xbf16, device = "cuda:0">
  %8 = aten.t(%7) : !aten.tensor<512x2048xbf16, strides = [1, 512], device = "cuda:0">
  %9 = aten.mm(%y, %8) : !aten.tensor<2x2048xbf16, device = "cuda:0">
  func.return %2, %9 : !aten.tensor<129x2048xbf16, device = "cuda:0">, !aten.tensor<2x2048xbf16, device = "cuda:0">
}
// CHECK-LABEL: @kept
// CHECK: aten.mm(%x, %{{[0-9]+}}) {implementation = "nest"
// CHECK: aten.mm(%{{.*}}) {implementation = "nest", tile = array<i64: 16, 64, 64, 4, 4, 4>, precision = "bf16"}
// NEVER-NOT: missed: aten.mm
// NEVER: aten.mm(%x, %{{[0-9]+}}) {implementation = "nest"
// REMARK: passed: aten.mm: a nest on matrix units that makes its matrix where it reads: 1.0 MiB in each call

// With groups of 32 it takes many columns.
func.func @small(%y: !aten.tensor<2x512xbf16, device = "cuda:0">, %w: !aten.tensor<2048x512xi8, device = "cuda:0">, %s: !aten.tensor<2048x16xbf16, device = "cuda:0">) -> !aten.tensor<2x2048xbf16, device = "cuda:0"> {
  %3 = aten.view(%w, size = [2048, 16, 32]) : !aten.tensor<2048x16x32xi8, device = "cuda:0">
  %4 = aten._to_copy(%3, dtype = torch.bfloat16) : !aten.tensor<2048x16x32xbf16, device = "cuda:0">
  %5 = aten.view(%s, size = [2048, 16, 1]) : !aten.tensor<2048x16x1xbf16, device = "cuda:0">
  %6 = aten.mul.Tensor(%4, %5) : !aten.tensor<2048x16x32xbf16, device = "cuda:0">
  %7 = aten.view(%6, size = [2048, 512]) : !aten.tensor<2048x512xbf16, device = "cuda:0">
  %8 = aten.t(%7) : !aten.tensor<512x2048xbf16, strides = [1, 512], device = "cuda:0">
  %9 = aten.mm(%y, %8) : !aten.tensor<2x2048xbf16, device = "cuda:0">
  func.return %9 : !aten.tensor<2x2048xbf16, device = "cuda:0">
}
// CHECK-LABEL: @small
// CHECK-NOT: implementation =
// REMARK: missed: aten.mm: its weight is dequantised into memory, 2.0 MiB: its groups are small, and so is the weight

// Integers that the library refuses: few rows, on matrix units or as sums; odd sizes; any number of rows. Others are
// nests where that was measured, and the library's on other GPUs, or where a factor does not lie along the depth.
func.func @integers(%x: !aten.tensor<1x512xi8, device = "cuda:0">, %y: !aten.tensor<16x512xi8, device = "cuda:0">, %z: !aten.tensor<32x500xi8, device = "cuda:0">, %v: !aten.tensor<(s0)x512xi8, device = "cuda:0">, %t: !aten.tensor<17x512xi8, device = "cuda:0">, %w: !aten.tensor<512x2048xi8, strides = [1, 512], device = "cuda:0">, %u: !aten.tensor<500x2048xi8, strides = [1, 500], device = "cuda:0">) -> (!aten.tensor<1x2048xi32, device = "cuda:0">, !aten.tensor<16x2048xi32, device = "cuda:0">, !aten.tensor<32x2048xi32, device = "cuda:0">, !aten.tensor<(s0)x2048xi32, device = "cuda:0">, !aten.tensor<17x2048xi32, device = "cuda:0">) attributes {symbols = [#sym.symbol<s0, arg = 3, dim = 0, min = 2>]} {
  %0 = aten._int_mm(%x, %w) : !aten.tensor<1x2048xi32, device = "cuda:0">
  %1 = aten._int_mm(%y, %w) : !aten.tensor<16x2048xi32, device = "cuda:0">
  %2 = aten._int_mm(%z, %u) : !aten.tensor<32x2048xi32, device = "cuda:0">
  %3 = aten._int_mm(%v, %w) : !aten.tensor<(s0)x2048xi32, device = "cuda:0">
  %4 = aten._int_mm(%t, %w) : !aten.tensor<17x2048xi32, device = "cuda:0">
  func.return %0, %1, %2, %3, %4 : !aten.tensor<1x2048xi32, device = "cuda:0">, !aten.tensor<16x2048xi32, device = "cuda:0">, !aten.tensor<32x2048xi32, device = "cuda:0">, !aten.tensor<(s0)x2048xi32, device = "cuda:0">, !aten.tensor<17x2048xi32, device = "cuda:0">
}
// CHECK-LABEL: @integers
// CHECK: aten._int_mm(%x, %w) {implementation = "nest"} :
// CHECK: aten._int_mm(%y, %w) {implementation = "nest", tile = array<i64: 16, 16, 256, 2, 5>
// CHECK: aten._int_mm(%z, %u) {implementation = "nest", tile = array<i64>} :
// CHECK: aten._int_mm(%v, %w) {implementation = "nest", tile = array<i64>} :
// CHECK: aten._int_mm(%t, %w) {implementation = "nest", tile = array<i64>} :
// A100-LABEL: @integers
// A100: aten._int_mm(%v, %w) {implementation = "nest", tile = array<i64>} :
// A100: aten._int_mm(%t, %w) :
// TRITON: tl.dot(y_value, w_value, product_acc, out_dtype=tl.int32)

// Many rows: units read the matrix from registers, or a tile of it is made in shared memory, where that takes not much
// longer than the library with one in memory.
func.func @many(%x: !aten.tensor<512x2048xbf16, device = "cuda:0">, %w: !aten.tensor<5632x2048xi8, device = "cuda:0">, %z: !aten.tensor<300x2048xi8, device = "cuda:0">) -> (!aten.tensor<512x5632xbf16, device = "cuda:0">, !aten.tensor<512x300xbf16, device = "cuda:0">) {
  %t = aten.t(%w) : !aten.tensor<2048x5632xi8, strides = [1, 2048], device = "cuda:0">
  %c = aten._to_copy(%t, dtype = torch.bfloat16) : !aten.tensor<2048x5632xbf16, strides = [1, 2048], device = "cuda:0">
  %p = aten.mm(%x, %c) : !aten.tensor<512x5632xbf16, device = "cuda:0">
  %u = aten.t(%z) : !aten.tensor<2048x300xi8, strides = [1, 2048], device = "cuda:0">
  %d = aten._to_copy(%u, dtype = torch.bfloat16) : !aten.tensor<2048x300xbf16, strides = [1, 2048], device = "cuda:0">
  %q = aten.mm(%x, %d) : !aten.tensor<512x300xbf16, device = "cuda:0">
  func.return %p, %q : !aten.tensor<512x5632xbf16, device = "cuda:0">, !aten.tensor<512x300xbf16, device = "cuda:0">
}
// CHECK-LABEL: @many
// CHECK: aten.mm(%x, %c) {implementation = "nest", tile = array<i64: 256, 64, 64, 4, 3, {{.*}}, 1>
// CHECK: aten.mm(%x, %d) {implementation = "nest", tile = array<i64: 64, 64, 128, 4, 4, 4>
// REMARK: passed: aten.mm: a nest on matrix units that makes its matrix where it reads: 11.0 MiB in each call
// FASTER-LABEL: @many
// FASTER: aten.mm(%x, %d) :
// SLOWER: missed: aten.mm: its weight is dequantised into memory, 1.2 MiB: {{.*}} us by estimates, {{.*}} without
