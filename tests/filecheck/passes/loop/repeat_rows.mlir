// RUN: inductile-opt %s --target cuda:90 --verify-each -p loop-repeat-rows | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p loop-repeat-rows{repeat-rows=false} | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cuda:90 -p loop-repeat-rows --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// OFF-COUNT-10: loop.generate
// REMARK-COUNT-1: passed: {{.*}}computed again for each row of a matrix

// A norm that only a product with a matrix reads: the number is reduced, and the vector scaled, in each of its rows.
func.func @norm(%x: !aten.tensor<64xf32, device = "cuda:0">, %w: !aten.tensor<1024x64xbf16, device = "cuda:0">) -> !aten.tensor<1024xf32, device = "cuda:0"> {
  %n = loop.generate (i0 in 1) {
    %s = loop.reduce sum (r0 in 64) {
      %a = loop.load %x[r0]
      %b = arith.mulf %a, %a : f32
      loop.yield %b
    }
    %r = math.rsqrt %s : f32
    loop.yield %r
  } : !aten.tensor<1xf32, device = "cuda:0">
  %v = loop.generate (i0 in 64) {
    %a = loop.load %x[i0]
    %b = loop.load %n[0]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<64xf32, device = "cuda:0">
  %y = loop.generate (i0 in 1024) {
    %s = loop.reduce sum (r0 in 64) {
      %a = loop.load %v[r0]
      %b = loop.load %w[i0, r0]
      %c = scalar.widen %b : bf16 to f32
      %d = arith.mulf %a, %c : f32
      loop.yield %d
    }
    loop.yield %s
  } : !aten.tensor<1024xf32, device = "cuda:0">
  func.return %y : !aten.tensor<1024xf32, device = "cuda:0">
}
// CHECK-LABEL: @norm
// CHECK-NEXT: loop.generate (i0 in 1024) {
// CHECK-NEXT: loop.reduce sum (r{{[0-9]}} in 64) {
// CHECK: math.rsqrt
// CHECK-NEXT: loop.reduce sum (r0 in 64) {
// CHECK: loop.load %x[r0]
// CHECK: loop.load %w[i0, r0]
// CHECK-NOT: loop.generate

// Few rows hide nothing of what would be computed again; and what something else reads is in memory anyway.
func.func @few(%x: !aten.tensor<64xf32, device = "cuda:0">, %w: !aten.tensor<256x64xbf16, device = "cuda:0">) -> !aten.tensor<256xf32, device = "cuda:0"> {
  %n = loop.generate (i0 in 1) {
    %s = loop.reduce sum (r0 in 64) {
      %a = loop.load %x[r0]
      loop.yield %a
    }
    loop.yield %s
  } : !aten.tensor<1xf32, device = "cuda:0">
  %v = loop.generate (i0 in 64) {
    %a = loop.load %x[i0]
    %b = loop.load %n[0]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<64xf32, device = "cuda:0">
  %y = loop.generate (i0 in 256) {
    %s = loop.reduce sum (r0 in 64) {
      %a = loop.load %v[r0]
      %b = loop.load %w[i0, r0]
      %c = scalar.widen %b : bf16 to f32
      %d = arith.mulf %a, %c : f32
      loop.yield %d
    }
    loop.yield %s
  } : !aten.tensor<256xf32, device = "cuda:0">
  func.return %y : !aten.tensor<256xf32, device = "cuda:0">
}
// CHECK-LABEL: @few
// CHECK-COUNT-3: loop.generate

func.func @shared(%x: !aten.tensor<64xf32, device = "cuda:0">, %w: !aten.tensor<1024x64xbf16, device = "cuda:0">) -> (!aten.tensor<1024xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %n = loop.generate (i0 in 1) {
    %s = loop.reduce sum (r0 in 64) {
      %a = loop.load %x[r0]
      loop.yield %a
    }
    loop.yield %s
  } : !aten.tensor<1xf32, device = "cuda:0">
  %v = loop.generate (i0 in 64) {
    %a = loop.load %x[i0]
    %b = loop.load %n[0]
    %c = arith.mulf %a, %b : f32
    loop.yield %c
  } : !aten.tensor<64xf32, device = "cuda:0">
  %z = loop.generate (i0 in 64) {
    %a = loop.load %v[i0]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<64xf32, device = "cuda:0">
  %y = loop.generate (i0 in 1024) {
    %s = loop.reduce sum (r0 in 64) {
      %a = loop.load %v[r0]
      %b = loop.load %w[i0, r0]
      %c = scalar.widen %b : bf16 to f32
      %d = arith.mulf %a, %c : f32
      loop.yield %d
    }
    loop.yield %s
  } : !aten.tensor<1024xf32, device = "cuda:0">
  func.return %y, %z : !aten.tensor<1024xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
}
// CHECK-LABEL: @shared
// CHECK-COUNT-4: loop.generate
