// RUN: inductile-opt %s -p 'graph-hoist-weights,lower-aten-to-loop,loop-eliminate-views,loop-hoist-weights,loop-pack-weights{packed-weights="bf16"}' | filecheck %s
// RUN: inductile-opt %s -p 'lower-aten-to-loop,loop-eliminate-views,loop-pack-weights{packed-weights="bf16"}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s -p 'lower-aten-to-loop,loop-eliminate-views,loop-pack-weights{packed-weights="f32"}' | filecheck %s --check-prefix=NONE
// RUN: inductile-opt %s --pipeline 'default{packed-weights="bf16"}' | filecheck %s --check-prefix=HOST

// NONE-NOT: packed_

// What is packed is a view of an argument, which two layers share, or a value that is computed once.
// CHECK-LABEL: func.func @products(
// CHECK-NEXT: %[[T:.*]], %[[E:.*]] = func.call @products_weights(%v, %w) {kept}
// CHECK: "inductile::packed_product"(%x, %[[T]], %b)
// CHECK: "inductile::packed_product"(%{{.*}}, %[[T]], %b)
// CHECK: "inductile::packed_product"(%{{.*}}, %[[E]], none)
// CHECK: aten.mm(%{{.*}}, %u)
// CHECK: func.func private @products_weights(
// CHECK: %[[V:.*]] = loop.view %w[i1, i0]
// CHECK: "inductile::packed_matrix"(%[[V]], 64)
// CHECK: "inductile::packed_matrix"(%e, 64)
// HOST-LABEL: host.func @products(
// HOST: host.call kept
// HOST-LABEL: host.func @products_weights(
// HOST: "inductile::packed_matrix"
// REMARK: passed: aten.addmm: the library arranges its weight once
// REMARK: missed: aten.mm: its weight is not packed: its weight is not frozen
func.func @products(%x: !aten.tensor<64x256xbf16>, %w: !aten.tensor<256x256xbf16> {frozen}, %b: !aten.tensor<256xbf16> {frozen}, %v: !aten.tensor<256x256xbf16> {frozen}, %u: !aten.tensor<256x256xbf16>) -> !aten.tensor<64x256xbf16> {
  %t = aten.t(%w) : !aten.tensor<256x256xbf16, strides = [1, 256]>
  %0 = aten.addmm(%b, %x, %t) : !aten.tensor<64x256xbf16>
  %1 = aten.addmm(%b, %0, %t) : !aten.tensor<64x256xbf16>
  %e = aten.exp(%v) : !aten.tensor<256x256xbf16>
  %2 = aten.mm(%1, %e) : !aten.tensor<64x256xbf16>
  %3 = aten.mm(%2, %u) : !aten.tensor<64x256xbf16>
  func.return %3 : !aten.tensor<64x256xbf16>
}

// A convolution takes along what its only reader does, where the library's result is eager's, NaN included; relu's is
// where an image in front of it is measured, and is small enough for the weights.
// CHECK-LABEL: func.func @images(
// CHECK: %[[A:.*]] = aten.call pure "inductile::packed_convolution"({{.*}}, "hardswish", none, none)
// CHECK-NEXT: %[[B:.*]] = aten.call pure "inductile::packed_convolution"(%[[A]], {{.*}}, "swish", none, none)
// CHECK-NEXT: %[[C:.*]] = aten.call pure "inductile::packed_convolution"(%[[B]], {{.*}}, "none", %[[A]], none)
// CHECK-NEXT: %[[L:.*]] = loop.generate (i0 in 64) {
// CHECK-NEXT: loop.reduce max (r0 in 1, r2 in 14, r3 in 14) {
// CHECK-NEXT: loop.load %[[C]][0, i0, r2, r3]
// CHECK: %[[F:.*]] = loop.generate () {
// CHECK-NEXT: loop.reduce max (r0 in 64) {
// CHECK-NEXT: loop.load %[[L]][r0]
// CHECK: arith.cmpf ole
// CHECK: aten.call pure "inductile::packed_convolution"(%[[C]], {{.*}}, "relu", none, %[[F]])
// CHECK-LABEL: func.func private @images_weights(
// CHECK: %[[M:.*]] = aten.call pure "inductile::bound_constant"(65536.0)
// CHECK-NEXT: %[[B:.*]] = aten.call pure "inductile::bound_convolution"(%[[M]], %w, %b, false)
// CHECK-NEXT: aten.call pure "inductile::finite_limit"([%[[B]]], 65536.0)
// REMARK: loop.generate: the library does it to what it has in registers
func.func @images(%x: !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>, %w: !aten.tensor<64x64x3x3xbf16> {frozen}, %b: !aten.tensor<64xbf16> {frozen}) -> !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]> {
  %0 = aten.convolution(%x, %w, %b, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  %1 = aten.hardswish(%0) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  %2 = aten.convolution(%1, %w, %b, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  %3 = aten.silu(%2) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  %4 = aten.convolution(%3, %w, %b, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  %5 = aten.add.Tensor(%4, %1) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  %6 = aten.convolution(%5, %w, %b, stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  %7 = aten.relu(%6) : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
  func.return %7 : !aten.tensor<1x64x14x14xbf16, strides = [12544, 1, 896, 64]>
}

// Lines, volumes and transposed convolutions are packed, too.
// CHECK-LABEL: func.func @dimensions(
// CHECK: "inductile::packed_convolution"(%x, {{.*}}, [2], [1], [1], false, [0], 1, "swish", none, none)
// CHECK: "inductile::packed_convolution"(%{{.*}}, {{.*}}, [2], [1], [1], true, [1], 1, "none", none, none)
// CHECK: "inductile::packed_convolution"(%y, {{.*}}, [1, 1, 1], [0, 0, 0], [1, 1, 1], false, [0, 0, 0], 1, "none", none, none)
// CHECK: "inductile::packed_filter"(%w, [2], [1], [1], false, [0], 1, [2, 64, 31])
func.func @dimensions(%x: !aten.tensor<2x64x31xbf16, strides = [1984, 1, 64]>, %w: !aten.tensor<64x64x3xbf16> {frozen}, %y: !aten.tensor<1x8x5x6x7xbf16, strides = [1680, 1, 336, 56, 8]>, %v: !aten.tensor<8x8x3x3x3xbf16> {frozen}) -> (!aten.tensor<2x64x32xbf16, strides = [2048, 1, 64]>, !aten.tensor<1x8x3x4x5xbf16, strides = [480, 1, 160, 40, 8]>) {
  %0 = aten.convolution(%x, %w, none, stride = [2], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 1) : !aten.tensor<2x64x16xbf16, strides = [1024, 1, 64]>
  %1 = aten.silu(%0) : !aten.tensor<2x64x16xbf16, strides = [1024, 1, 64]>
  %2 = aten.convolution(%1, %w, none, stride = [2], padding = [1], dilation = [1], transposed = true, output_padding = [1], groups = 1) : !aten.tensor<2x64x32xbf16, strides = [2048, 1, 64]>
  %3 = aten.convolution(%y, %v, none, stride = [1, 1, 1], padding = [0, 0, 0], dilation = [1, 1, 1], transposed = false, output_padding = [0, 0, 0], groups = 1) : !aten.tensor<1x8x3x4x5xbf16, strides = [480, 1, 160, 40, 8]>
  func.return %2, %3 : !aten.tensor<2x64x32xbf16, strides = [2048, 1, 64]>, !aten.tensor<1x8x3x4x5xbf16, strides = [480, 1, 160, 40, 8]>
}
