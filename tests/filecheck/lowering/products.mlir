// RUN: inductile-opt %s -p lower-aten-to-loop | filecheck %s
// RUN: inductile-opt %s -p 'lower-aten-to-loop{fallback-by-default=true}' --remarks | filecheck %s --check-prefix=LEFT

// A product that is marked is a sum of products in float32, rounded once, behind what is added.
func.func @linear(%b: !aten.tensor<40xbf16>, %x: !aten.tensor<1x64xbf16>, %w: !aten.tensor<64x40xbf16, strides = [1, 64]>) -> !aten.tensor<1x40xbf16> {
  %0 = aten.addmm(%b, %x, %w) {implementation = "nest"} : !aten.tensor<1x40xbf16>
  func.return %0 : !aten.tensor<1x40xbf16>
}
// CHECK-LABEL: @linear
// CHECK: loop.generate (i0 in 1, i1 in 40) {
// CHECK-NEXT: %[[S:.*]] = loop.reduce sum (r0 in 64) {
// CHECK-NEXT: loop.load %x[i0, r0]
// CHECK: loop.load %w[r0, i1]
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: loop.load %b[i1]
// CHECK: arith.addf %[[S]], %{{.*}} : f32
// CHECK-NEXT: scalar.narrow %{{.*}} : f32 to bf16
// LEFT-LABEL: @linear
// LEFT: aten.addmm

// What beta = 0 leaves out is not read.
func.func @scaled(%c: !aten.tensor<2x1x3xf32>, %x: !aten.tensor<2x1x8xf32>, %y: !aten.tensor<2x8x3xf32>) -> !aten.tensor<2x1x3xf32> {
  %0 = aten.baddbmm(%c, %x, %y, beta = 0, alpha = 2) {implementation = "nest"} : !aten.tensor<2x1x3xf32>
  func.return %0 : !aten.tensor<2x1x3xf32>
}
// CHECK-LABEL: @scaled
// CHECK-NOT: loop.load %c
// CHECK: loop.load %x[i0, i1, r0]
// CHECK: loop.load %y[i0, r0, i2]
// CHECK: arith.constant 2.0

// Others are calls, and lose a mark that says what they are not.
func.func @calls(%x: !aten.tensor<1x64xf32>, %w: !aten.tensor<64x40xf32>, %i: !aten.tensor<1x64xi32>, %j: !aten.tensor<64x40xi32>) -> (!aten.tensor<1x40xf32>, !aten.tensor<1x40xi32>) {
  %0 = aten.mm(%x, %w) : !aten.tensor<1x40xf32>
  %1 = aten.mm(%i, %j) {implementation = "nest"} : !aten.tensor<1x40xi32>
  func.return %0, %1 : !aten.tensor<1x40xf32>, !aten.tensor<1x40xi32>
}
// CHECK-LABEL: @calls
// CHECK-NEXT: aten.mm(%x, %w) :
// CHECK-NEXT: aten.mm(%i, %j) :
