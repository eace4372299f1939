// RUN: inductile-opt %s -p "loop-split-products{depth-parts=4}" --target cuda:90 | filecheck %s
// RUN: inductile-opt %s -p "loop-split-products{loop-products=true}" --target cuda:90 | filecheck %s --check-prefix=KNOWN

// Parts of the depth are a batch, and what is done with the sum stands behind the sum of the parts.
func.func @few(%x: !aten.tensor<16x512xbf16, device = "cuda:0">, %w: !aten.tensor<512x64xbf16, device = "cuda:0">) -> !aten.tensor<16x64xbf16, device = "cuda:0"> {
  %p = loop.generate (i0 in 16, i1 in 64) {
    %s = loop.reduce sum (r0 in 512) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %w[r0, i1]
      %c = scalar.widen %a : bf16 to f32
      %d = scalar.widen %b : bf16 to f32
      %m = arith.mulf %c, %d {precision = "bf16"} : f32
      loop.yield %m
    }
    %n = arith.negf %s : f32
    %r = scalar.narrow %n : f32 to bf16
    loop.yield %r
  } : !aten.tensor<16x64xbf16, device = "cuda:0">
  func.return %p : !aten.tensor<16x64xbf16, device = "cuda:0">
}
// CHECK-LABEL: func.func @few
// CHECK:      %[[P:.*]] = loop.generate (i2 in 4, i0 in 16, i1 in 64) {
// CHECK-NEXT:   loop.reduce sum (r0 in 128) {
// CHECK-NEXT:     loop.load %x[i0, 128*i2 + r0]
// CHECK-NEXT:     loop.load %w[128*i2 + r0, i1]
// CHECK:      : !aten.tensor<4x16x64xf32, device = "cuda:0">
// CHECK:      loop.reduce sum ([[R:.*]] in 4) {
// CHECK-NEXT:   loop.load %[[P]][[[R]], i0, i1]
// CHECK:      arith.negf

// No number of parts divides a depth that is prime.
func.func @prime(%x: !aten.tensor<16x521xf32, device = "cuda:0">, %w: !aten.tensor<521x64xf32, device = "cuda:0">) -> !aten.tensor<16x64xf32, device = "cuda:0"> {
  %p = loop.generate (i0 in 16, i1 in 64) {
    %s = loop.reduce sum (r0 in 521) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %w[r0, i1]
      %m = arith.mulf %a, %b : f32
      loop.yield %m
    }
    loop.yield %s
  } : !aten.tensor<16x64xf32, device = "cuda:0">
  func.return %p : !aten.tensor<16x64xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @prime
// CHECK:      loop.reduce sum (r0 in 521)

// KNOWN-LABEL: func.func @few
// KNOWN: loop.reduce sum (r0 in 512)

// Four parts were the best of this product, which have the tile that was measured with them.
func.func @known(%x: !aten.tensor<16x5632xbf16, device = "cuda:0">, %w: !aten.tensor<5632x2048xbf16, strides = [1, 5632], device = "cuda:0">) -> !aten.tensor<16x2048xbf16, device = "cuda:0"> {
  %p = loop.generate (i0 in 16, i1 in 2048) {
    %s = loop.reduce sum (r0 in 5632) {
      %a = loop.load %x[i0, r0]
      %b = loop.load %w[r0, i1]
      %c = scalar.widen %a : bf16 to f32
      %d = scalar.widen %b : bf16 to f32
      %m = arith.mulf %c, %d {precision = "bf16"} : f32
      loop.yield %m
    }
    %r = scalar.narrow %s : f32 to bf16
    loop.yield %r
  } : !aten.tensor<16x2048xbf16, device = "cuda:0">
  func.return %p : !aten.tensor<16x2048xbf16, device = "cuda:0">
}
// KNOWN-LABEL: func.func @known
// KNOWN: loop.reduce sum (r0 in 1408)
// KNOWN: arith.mulf {{.*}} tile = array<i64: 16, 32, 128, 4, 4, 4>
