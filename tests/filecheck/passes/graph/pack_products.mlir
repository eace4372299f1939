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
func.func @products(%x: !aten.tensor<64x256xbf16>, %w: !aten.tensor<256x256xbf16> {frozen}, %b: !aten.tensor<256xbf16> {frozen}, %v: !aten.tensor<256x256xbf16> {frozen}, %u: !aten.tensor<256x256xbf16>) -> !aten.tensor<64x256xbf16> {
  %t = aten.t(%w) : !aten.tensor<256x256xbf16, strides = [1, 256]>
  %0 = aten.addmm(%b, %x, %t) : !aten.tensor<64x256xbf16>
  %1 = aten.addmm(%b, %0, %t) : !aten.tensor<64x256xbf16>
  %e = aten.exp(%v) : !aten.tensor<256x256xbf16>
  %2 = aten.mm(%1, %e) : !aten.tensor<64x256xbf16>
  %3 = aten.mm(%2, %u) : !aten.tensor<64x256xbf16>
  func.return %3 : !aten.tensor<64x256xbf16>
}

// Both matrices of a layer of an LSTM are packed in one call; what trains has a workspace, and a mode of its own.
// CHECK-LABEL: func.func @lstm(
// CHECK-NEXT: %[[W:.*]], %[[U:.*]] = func.call @lstm_weights(%w, %u) {kept}
// CHECK: %y, %h1, %c1 = aten.call pure "inductile::packed_lstm"(%x, %[[W]], %[[U]], %b, %b, %h, %c, 8, true, true, false)
// CHECK: aten.mkldnn_rnn_layer(
// CHECK: func.func private @lstm_weights(
// CHECK-NEXT: aten.call pure "inductile::packed_recurrent_matrices"(%w, %u, 8, true, true, false)
// CHECK: remark: [graph-pack-products] passed: aten.addmm: the library arranges its weight once
func.func @lstm(%x: !aten.tensor<5x2x4xbf16>, %w: !aten.tensor<32x4xbf16> {frozen}, %u: !aten.tensor<32x8xbf16> {frozen}, %b: !aten.tensor<32xbf16> {frozen}, %h: !aten.tensor<2x8xbf16>, %c: !aten.tensor<2x8xbf16>) -> (!aten.tensor<5x2x8xbf16>, !aten.tensor<2x8xbf16>, !aten.tensor<5x2x8xbf16>) {
  %y, %h1, %c1, %s = aten.mkldnn_rnn_layer(%x, %w, %u, %b, %b, %h, %c, reverse = true, batch_sizes = [], mode = 2, hidden_size = 8, num_layers = 1, has_biases = true, bidirectional = false, batch_first = false, train = false) : !aten.tensor<5x2x8xbf16>, !aten.tensor<2x8xbf16>, !aten.tensor<2x8xbf16>, !aten.tensor<0xbf16>
  %y2, %h2, %c2, %s2 = aten.mkldnn_rnn_layer(%x, %w, %u, %b, %b, %h, %c, reverse = true, batch_sizes = [], mode = 2, hidden_size = 8, num_layers = 1, has_biases = true, bidirectional = false, batch_first = false, train = true) : !aten.tensor<5x2x8xbf16>, !aten.tensor<2x8xbf16>, !aten.tensor<2x8xbf16>, !aten.tensor<0xbf16>
  func.return %y, %h1, %y2 : !aten.tensor<5x2x8xbf16>, !aten.tensor<2x8xbf16>, !aten.tensor<5x2x8xbf16>
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

// A kernel adds the bias where it alone reads the product, for MKL copies that to each row first.
// MKL-LABEL: @bias_of_a_kernel
// MKL: %[[Y:.*]] = aten.call pure "inductile::mkl_product"(%x, %{{.*}}, %{{.*}}, none)
// MKL-NEXT: %[[Z:.*]] = aten.add.Tensor(%[[Y]], %b)
// MKL-NEXT: aten.view(%[[Z]]
// MKL: "inductile::mkl_product"(%{{.*}}, %{{.*}}, %{{.*}}, %b)
func.func @bias_of_a_kernel(%x: !aten.tensor<64x1024xf32>, %w: !aten.tensor<1024x1024xf32> {frozen}, %b: !aten.tensor<1024xf32> {frozen}) -> !aten.tensor<64x1024xf32> {
  %0 = aten.addmm(%b, %x, %w) : !aten.tensor<64x1024xf32>
  %1 = aten.view(%0, size = [1, 64, 1024]) : !aten.tensor<1x64x1024xf32>
  %2 = aten.gelu(%1) : !aten.tensor<1x64x1024xf32>
  %3 = aten.view(%2, size = [64, 1024]) : !aten.tensor<64x1024xf32>
  %4 = aten.addmm(%b, %3, %w) : !aten.tensor<64x1024xf32>
  func.return %4 : !aten.tensor<64x1024xf32>
}

// MKL-LABEL: @of_any_rows
// MKL-NEXT: aten.t
// MKL-NEXT: aten.addmm
func.func @of_any_rows(%x: !aten.tensor<(s0)x1024xf32>, %w: !aten.tensor<1024x1024xf32> {frozen}, %b: !aten.tensor<1024xf32> {frozen}) -> !aten.tensor<(s0)x1024xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
  %t = aten.t(%w) : !aten.tensor<1024x1024xf32, strides = [1, 1024]>
  %0 = aten.addmm(%b, %x, %t) : !aten.tensor<(s0)x1024xf32>
  func.return %0 : !aten.tensor<(s0)x1024xf32>
}
