// RUN: inductile-opt %s --target cpp -p graph-expand-products | filecheck %s
// RUN: inductile-opt %s --target cpp -p 'graph-expand-products{row-products=false}' | filecheck %s --check-prefix=OFF

// OFF-NOT: "nest"

// One vector of bfloat16 on a CPU; of other elements, and two vectors, the library is as fast.
// CHECK-LABEL: func.func @rows(
// CHECK: aten.mm(%x, %w) {implementation = "nest"}
// CHECK-NEXT: aten.mm(%y, %w) : !aten.tensor<2x5632xbf16>
// CHECK-NEXT: aten.mm(%z, %v) : !aten.tensor<1x5632xf16>
func.func @rows(%x: !aten.tensor<1x2048xbf16>, %w: !aten.tensor<2048x5632xbf16, strides = [1, 2048]>, %y: !aten.tensor<2x2048xbf16>, %z: !aten.tensor<1x2048xf16>, %v: !aten.tensor<2048x5632xf16, strides = [1, 2048]>) -> (!aten.tensor<1x5632xbf16>, !aten.tensor<2x5632xbf16>, !aten.tensor<1x5632xf16>) {
  %0 = aten.mm(%x, %w) : !aten.tensor<1x5632xbf16>
  %1 = aten.mm(%y, %w) : !aten.tensor<2x5632xbf16>
  %2 = aten.mm(%z, %v) : !aten.tensor<1x5632xf16>
  func.return %0, %1, %2 : !aten.tensor<1x5632xbf16>, !aten.tensor<2x5632xbf16>, !aten.tensor<1x5632xf16>
}
