// RUN: inductile-opt %s --target cuda:90 -p graph-expand-products | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p graph-expand-products --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target c -p graph-expand-products | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:90 -p 'graph-expand-products{row-products=false choices=none}' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target hip:gfx942 -p graph-expand-products | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:103 -p graph-expand-products | filecheck %s --check-prefix=OFF
// OFF-NOT: "nest"

// The weight of a linear layer, whose rows lie along the depth, and one vector: on either side, in batches, with a bias.
func.func @taken(%x: !aten.tensor<1x2048xbf16, device = "cuda:0">, %w: !aten.tensor<2048x5632xbf16, strides = [1, 2048], device = "cuda:0">, %b: !aten.tensor<5632xbf16, device = "cuda:0">, %m: !aten.tensor<5632x2048xf32, device = "cuda:0">, %c: !aten.tensor<2048x1xf32, device = "cuda:0">, %q: !aten.tensor<32x1x64xbf16, device = "cuda:0">, %k: !aten.tensor<32x64x100xbf16, strides = [6400, 1, 64], device = "cuda:0">) -> (!aten.tensor<1x5632xbf16, device = "cuda:0">, !aten.tensor<1x5632xbf16, device = "cuda:0">, !aten.tensor<5632x1xf32, device = "cuda:0">, !aten.tensor<32x1x100xbf16, device = "cuda:0">) {
  %0 = aten.mm(%x, %w) : !aten.tensor<1x5632xbf16, device = "cuda:0">
  %1 = aten.addmm(%b, %x, %w) : !aten.tensor<1x5632xbf16, device = "cuda:0">
  %2 = aten.mm(%m, %c) : !aten.tensor<5632x1xf32, device = "cuda:0">
  %3 = aten.bmm(%q, %k) : !aten.tensor<32x1x100xbf16, device = "cuda:0">
  func.return %0, %1, %2, %3 : !aten.tensor<1x5632xbf16, device = "cuda:0">, !aten.tensor<1x5632xbf16, device = "cuda:0">, !aten.tensor<5632x1xf32, device = "cuda:0">, !aten.tensor<32x1x100xbf16, device = "cuda:0">
}
// CHECK-LABEL: @taken
// CHECK: aten.mm(%x, %w) {implementation = "nest"}
// CHECK: aten.addmm(%b, %x, %w) {implementation = "nest"}
// CHECK: aten.mm(%m, %c) {implementation = "nest"}
// CHECK: aten.bmm(%q, %k) {implementation = "nest"}
// REMARK: passed: aten.mm: a nest: sums over rows of a matrix, for few vectors

// Rows that lie along the result, many vectors, any number of them, float64, and what has an implementation already.
func.func @kept(%x: !aten.tensor<1x2048xbf16, device = "cuda:0">, %w: !aten.tensor<2048x5632xbf16, device = "cuda:0">, %y: !aten.tensor<64x2048xbf16, device = "cuda:0">, %t: !aten.tensor<2048x5632xbf16, strides = [1, 2048], device = "cuda:0">, %z: !aten.tensor<(s0)x2048xbf16, device = "cuda:0">, %d: !aten.tensor<1x64xf64, device = "cuda:0">, %e: !aten.tensor<64x64xf64, strides = [1, 64], device = "cuda:0">) -> (!aten.tensor<1x5632xbf16, device = "cuda:0">, !aten.tensor<64x5632xbf16, device = "cuda:0">, !aten.tensor<(s0)x5632xbf16, device = "cuda:0">, !aten.tensor<1x64xf64, device = "cuda:0">, !aten.tensor<1x5632xbf16, device = "cuda:0">) attributes {symbols = [#sym.symbol<s0, arg = 4, dim = 0, min = 1>]} {
  %0 = aten.mm(%x, %w) : !aten.tensor<1x5632xbf16, device = "cuda:0">
  %1 = aten.mm(%y, %t) : !aten.tensor<64x5632xbf16, device = "cuda:0">
  %2 = aten.mm(%z, %t) : !aten.tensor<(s0)x5632xbf16, device = "cuda:0">
  %3 = aten.mm(%d, %e) : !aten.tensor<1x64xf64, device = "cuda:0">
  %4 = aten.mm(%x, %t) {implementation = "scratch"} : !aten.tensor<1x5632xbf16, device = "cuda:0">
  func.return %0, %1, %2, %3, %4 : !aten.tensor<1x5632xbf16, device = "cuda:0">, !aten.tensor<64x5632xbf16, device = "cuda:0">, !aten.tensor<(s0)x5632xbf16, device = "cuda:0">, !aten.tensor<1x64xf64, device = "cuda:0">, !aten.tensor<1x5632xbf16, device = "cuda:0">
}
// CHECK-LABEL: @kept
// CHECK-NOT: "nest"
// REMARK: missed: aten.mm: not a nest: the rows of its matrix do not lie along the depth
// REMARK: missed: aten.mm: not a nest: it has more than {{[0-9]+}} vectors

// Many short rows, and attention of one query, of which nobody knows how fast it would be.
func.func @unmeasured(%x: !aten.tensor<1x768xbf16, device = "cuda:0">, %w: !aten.tensor<768x50257xbf16, strides = [1, 768], device = "cuda:0">) -> !aten.tensor<1x50257xbf16, device = "cuda:0"> {
  %0 = aten.mm(%x, %w) : !aten.tensor<1x50257xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<1x50257xbf16, device = "cuda:0">
}
// CHECK-LABEL: @unmeasured
// CHECK-NOT: "nest"
// REMARK: missed: aten.mm: not a nest: its matrix has more than 16384 short rows

// Heads that share keys: their queries are rows of a tile. More of them, and heads with keys of their own, are the library's.
func.func @shared(%q: !aten.tensor<1x32x1x64xbf16, device = "cuda:0">, %k: !aten.tensor<1x4x256x64xbf16, device = "cuda:0">, %r: !aten.tensor<1x32x3x64xbf16, device = "cuda:0">, %o: !aten.tensor<1x4x1x64xbf16, device = "cuda:0">) -> (!aten.tensor<1x32x1x64xbf16, device = "cuda:0">, !aten.tensor<1x32x3x64xbf16, device = "cuda:0">, !aten.tensor<1x4x1x64xbf16, device = "cuda:0">) {
  %0, %1, %2, %3 = aten._scaled_dot_product_efficient_attention(%q, %k, %k, none, compute_log_sumexp = false) : !aten.tensor<1x32x1x64xbf16, device = "cuda:0">, !aten.tensor<1x32x0xf32, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">
  %4, %5, %6, %7 = aten._scaled_dot_product_efficient_attention(%r, %k, %k, none, compute_log_sumexp = false) : !aten.tensor<1x32x3x64xbf16, device = "cuda:0">, !aten.tensor<1x32x0xf32, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">
  %8, %9, %10, %11 = aten._scaled_dot_product_efficient_attention(%o, %k, %k, none, compute_log_sumexp = false) : !aten.tensor<1x4x1x64xbf16, device = "cuda:0">, !aten.tensor<1x4x0xf32, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">
  func.return %0, %4, %8 : !aten.tensor<1x32x1x64xbf16, device = "cuda:0">, !aten.tensor<1x32x3x64xbf16, device = "cuda:0">, !aten.tensor<1x4x1x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: @shared
// CHECK: attention(%q, {{.*}}{implementation = "nest", tile = array<i64: 16, 256, 8, 1>, precision = "bf16"}
// CHECK: attention(%r
// CHECK-NOT: "nest"

// Of eight of them programs are so many that four warps are enough.
func.func @eight(%q: !aten.tensor<8x32x1x64xbf16, device = "cuda:0">, %k: !aten.tensor<8x4x256x64xbf16, device = "cuda:0">) -> !aten.tensor<8x32x1x64xbf16, device = "cuda:0"> {
  %0, %1, %2, %3 = aten._scaled_dot_product_efficient_attention(%q, %k, %k, none, compute_log_sumexp = false) : !aten.tensor<8x32x1x64xbf16, device = "cuda:0">, !aten.tensor<8x32x0xf32, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">, !aten.tensor<i64, device = "cuda:0">
  func.return %0 : !aten.tensor<8x32x1x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: @eight
// CHECK: tile = array<i64: 16, 256, 4, 1>

// With `loop-products` all products of matrices are nests, on a GPU for its matrix units. Those of float32 say how exact
// they are. Few vectors are for sums over rows, or for the library; float64 has no units.
// RUN: inductile-opt %s --target cuda:90 -p 'graph-expand-products{loop-products=true allow-tf32=true}' | filecheck %s --check-prefix=UNITS
// RUN: inductile-opt %s --target hip:gfx942 -p 'graph-expand-products{loop-products=true row-products=false}' | filecheck %s --check-prefix=HIP
// RUN: inductile-opt %s --target cpp -p 'graph-expand-products{loop-products=true}' | filecheck %s --check-prefix=HIP
// UNITS-LABEL: @kept
// UNITS: aten.mm(%x, %w) :
// UNITS: aten.mm(%y, %t) {implementation = "nest", precision = "bf16"} :
// UNITS: aten.mm(%z, %t) {implementation = "nest", precision = "bf16"} :
// UNITS: aten.mm(%d, %e) :
// UNITS: aten.mm(%x, %t) {implementation = "scratch"}
func.func @matrices(%x: !aten.tensor<64x32xf32, device = "cuda:0">, %w: !aten.tensor<32x48xf32, device = "cuda:0">) -> !aten.tensor<64x48xf32, device = "cuda:0"> {
  %0 = aten.mm(%x, %w) : !aten.tensor<64x48xf32, device = "cuda:0">
  func.return %0 : !aten.tensor<64x48xf32, device = "cuda:0">
}
// UNITS-LABEL: @matrices
// UNITS: aten.mm(%x, %w) {implementation = "nest", precision = "tf32"}
// HIP-LABEL: @matrices
// HIP: aten.mm(%x, %w) {implementation = "nest"} :

// On request integers of 8 bits, where both factors lie along the depth.
func.func @bytes(%x: !aten.tensor<64x96xi8, device = "cuda:0">, %w: !aten.tensor<96x48xi8, strides = [1, 96], device = "cuda:0">, %v: !aten.tensor<96x48xi8, device = "cuda:0">) -> (!aten.tensor<64x48xi32, device = "cuda:0">, !aten.tensor<64x48xi32, device = "cuda:0">) {
  %0 = aten._int_mm(%x, %w) : !aten.tensor<64x48xi32, device = "cuda:0">
  %1 = aten._int_mm(%x, %v) : !aten.tensor<64x48xi32, device = "cuda:0">
  func.return %0, %1 : !aten.tensor<64x48xi32, device = "cuda:0">, !aten.tensor<64x48xi32, device = "cuda:0">
}
// CHECK-LABEL: @bytes
// CHECK-NEXT: aten._int_mm(%x, %w) :
// UNITS-LABEL: @bytes
// UNITS-NEXT: aten._int_mm(%x, %w) {implementation = "nest"} :
// UNITS-NEXT: aten._int_mm(%x, %v) :

// So are products of 8-bit floats with scales.
func.func @floats_of_8_bits(%x: !aten.tensor<64x96xf8E4M3FN, device = "cuda:0">, %w: !aten.tensor<96x48xf8E4M3FN, strides = [1, 96], device = "cuda:0">, %v: !aten.tensor<96x48xf8E4M3FN, device = "cuda:0">, %a: !aten.tensor<f32, device = "cuda:0">, %b: !aten.tensor<f32, device = "cuda:0">) -> (!aten.tensor<64x48xbf16, device = "cuda:0">, !aten.tensor<64x48xbf16, device = "cuda:0">) {
  %0 = aten._scaled_mm(%x, %w, %a, %b, out_dtype = torch.bfloat16, use_fast_accum = true) : !aten.tensor<64x48xbf16, device = "cuda:0">
  %1 = aten._scaled_mm(%x, %v, %a, %b, out_dtype = torch.bfloat16) : !aten.tensor<64x48xbf16, device = "cuda:0">
  func.return %0, %1 : !aten.tensor<64x48xbf16, device = "cuda:0">, !aten.tensor<64x48xbf16, device = "cuda:0">
}
// CHECK-LABEL: @floats_of_8_bits
// CHECK-NOT: "nest"
// UNITS-LABEL: @floats_of_8_bits
// UNITS-NEXT: aten._scaled_mm(%x, %w, %a, %b{{.*}}) {implementation = "nest", precision = "fast"} :
// UNITS-NEXT: aten._scaled_mm(%x, %v, %a, %b, out_dtype = torch.bfloat16) :
// HIP-LABEL: @floats_of_8_bits
// HIP-NOT: "nest"

// Where it was measured to be faster, on an H100 without the option, too.
func.func @few_rows_of_8_bits(%x: !aten.tensor<256x4096xf8E4M3FN, device = "cuda:0">, %w: !aten.tensor<4096x4096xf8E4M3FN, strides = [1, 4096], device = "cuda:0">, %a: !aten.tensor<256x1xf32, device = "cuda:0">, %b: !aten.tensor<1x4096xf32, device = "cuda:0">) -> !aten.tensor<256x4096xbf16, device = "cuda:0"> {
  %0 = aten._scaled_mm(%x, %w, %a, %b, out_dtype = torch.bfloat16, use_fast_accum = true) : !aten.tensor<256x4096xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<256x4096xbf16, device = "cuda:0">
}
// CHECK-LABEL: @few_rows_of_8_bits
// CHECK: implementation = "nest", precision = "fast", tile = array<i64: 64, 64, 128, 4, 5>
// UNITS-LABEL: @few_rows_of_8_bits
// UNITS: implementation = "nest", precision = "fast", tile = array<i64:

// One row is sums over rows of the weight; up to 16 have a tile for few rows.
func.func @rows_of_8_bits(%x: !aten.tensor<1x512xf8E4M3FN, device = "cuda:0">, %y: !aten.tensor<5x512xf8E4M3FN, device = "cuda:0">, %w: !aten.tensor<512x2048xf8E4M3FN, strides = [1, 512], device = "cuda:0">, %a: !aten.tensor<1x1xf32, device = "cuda:0">, %c: !aten.tensor<5x1xf32, device = "cuda:0">, %b: !aten.tensor<1x2048xf32, device = "cuda:0">) -> (!aten.tensor<1x2048xbf16, device = "cuda:0">, !aten.tensor<5x2048xbf16, device = "cuda:0">) {
  %0 = aten._scaled_mm(%x, %w, %a, %b, out_dtype = torch.bfloat16) : !aten.tensor<1x2048xbf16, device = "cuda:0">
  %1 = aten._scaled_mm(%y, %w, %c, %b, out_dtype = torch.bfloat16) : !aten.tensor<5x2048xbf16, device = "cuda:0">
  func.return %0, %1 : !aten.tensor<1x2048xbf16, device = "cuda:0">, !aten.tensor<5x2048xbf16, device = "cuda:0">
}
// CHECK-LABEL: @rows_of_8_bits
// CHECK: aten._scaled_mm(%x, %w{{.*}}) {implementation = "nest"} :
// CHECK: aten._scaled_mm(%y, %w{{.*}}) {implementation = "nest", tile = array<i64: 16, 16, 256, 2, 5>} :
