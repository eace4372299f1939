// RUN: inductile-opt %s -p 'graph-hoist-weights,graph-pack-products{packed-weights="bf16"}' --remarks 2>&1 | filecheck %s
// RUN: inductile-opt %s -p 'graph-pack-products{packed-weights="f32"}' | filecheck %s --check-prefix=NONE
// RUN: inductile-opt %s -p 'graph-pack-products{packed-weights="f32,mkl"}' | filecheck %s --check-prefix=MKL

// NONE-NOT: packed_

// What is packed is a view of an argument, which two layers share, or a value that is computed once.
// CHECK-LABEL: func.func @products(
// CHECK-NEXT: %[[T:.*]], %[[E:.*]] = func.call @products_weights(%v, %w) {kept}
// CHECK: "inductile::packed_product"(%x, %[[T]], %b)
// CHECK: "inductile::packed_product"(%{{.*}}, %[[T]], %b)
// CHECK: "inductile::packed_product"(%{{.*}}, %[[E]], none)
// CHECK: aten.mm(%{{.*}}, %u)
// CHECK: func.func private @products_weights(
// CHECK: %[[V:.*]] = aten.t(%w)
// CHECK: "inductile::packed_matrix"(%[[V]], 64)
// CHECK: "inductile::packed_matrix"(%e, 64)
// CHECK: remark: [graph-pack-products] passed: aten.addmm: the library arranges its weight once
func.func @products(%x: !aten.tensor<64x256xbf16>, %w: !aten.tensor<256x256xbf16> {frozen}, %b: !aten.tensor<256xbf16> {frozen}, %v: !aten.tensor<256x256xbf16> {frozen}, %u: !aten.tensor<256x256xbf16>) -> !aten.tensor<64x256xbf16> {
  %t = aten.t(%w) : !aten.tensor<256x256xbf16, strides = [1, 256]>
  %0 = aten.addmm(%b, %x, %t) : !aten.tensor<64x256xbf16>
  %1 = aten.addmm(%b, %0, %t) : !aten.tensor<64x256xbf16>
  %e = aten.exp(%v) : !aten.tensor<256x256xbf16>
  %2 = aten.mm(%1, %e) : !aten.tensor<64x256xbf16>
  %3 = aten.mm(%2, %u) : !aten.tensor<64x256xbf16>
  func.return %3 : !aten.tensor<64x256xbf16>
}

// MKL packs for a number of rows, and its product has the matrix itself beside the packed one.
// NONE-LABEL: @by_the_blas
// NONE: aten.addmm
// MKL-LABEL: @by_the_blas
// MKL-NEXT: %[[P:.*]] = func.call @by_the_blas_weights(%w) {kept}
// MKL-NEXT: %[[T:.*]] = aten.t(%w)
// MKL-NEXT: aten.call pure "inductile::mkl_product"(%x, %[[P]], %[[T]], %b)
// MKL: "inductile::mkl_matrix"(%{{.*}}, 64)
func.func @by_the_blas(%x: !aten.tensor<64x1024xf32>, %w: !aten.tensor<1024x1024xf32> {frozen}, %b: !aten.tensor<1024xf32> {frozen}) -> !aten.tensor<64x1024xf32> {
  %t = aten.t(%w) : !aten.tensor<1024x1024xf32, strides = [1, 1024]>
  %0 = aten.addmm(%b, %x, %t) : !aten.tensor<64x1024xf32>
  func.return %0 : !aten.tensor<64x1024xf32>
}

// MKL-LABEL: @of_any_rows
// MKL-NEXT: aten.t
// MKL-NEXT: aten.addmm
func.func @of_any_rows(%x: !aten.tensor<(s0)x1024xf32>, %w: !aten.tensor<1024x1024xf32> {frozen}, %b: !aten.tensor<1024xf32> {frozen}) -> !aten.tensor<(s0)x1024xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %t = aten.t(%w) : !aten.tensor<1024x1024xf32, strides = [1, 1024]>
  %0 = aten.addmm(%b, %x, %t) : !aten.tensor<(s0)x1024xf32>
  func.return %0 : !aten.tensor<(s0)x1024xf32>
}
