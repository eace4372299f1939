// RUN: inductile-opt %s --target cuda:90 -p 'loop-chain-products{loop-products=true}' | filecheck %s
// RUN: inductile-opt %s --target cuda:90 -p 'loop-chain-products{loop-products=true}' --remarks 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: inductile-opt %s --target cuda:90 -p 'loop-chain-products' | filecheck %s --check-prefix=OFF
// RUN: inductile-opt %s --target cpp -p 'loop-chain-products{loop-products=true}' | filecheck %s --check-prefix=OFF
// OFF-LABEL: func.func @gradients
// OFF-NEXT: loop.generate (i0 in 64, i1 in 64)

// Scores are read by a pointwise nest, and that by two products and by sums of rows: each computes them where it reads
// them, those of the same tiles in one nest.
func.func @gradients(%q: !aten.tensor<64x16xf32, device = "cuda:0">, %k: !aten.tensor<64x16xf32, device = "cuda:0">, %t: !aten.tensor<64x16xf32, device = "cuda:0">) -> (!aten.tensor<64x16xf32, device = "cuda:0">, !aten.tensor<64x16xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">) {
  %s = loop.generate (i0 in 64, i1 in 64) {
    %r = loop.reduce sum (r0 in 16) {
      %a = loop.load %q[i0, r0]
      %b = loop.load %k[i1, r0]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<64x64xf32, device = "cuda:0">
  %p = loop.generate (i0 in 64, i1 in 64) {
    %a = loop.load %s[i0, i1]
    %b = math.exp %a : f32
    loop.yield %b
  } : !aten.tensor<64x64xf32, device = "cuda:0">
  %g = loop.generate (i0 in 64, i1 in 16) {
    %r = loop.reduce sum (r0 in 64) {
      %a = loop.load %p[r0, i0]
      %b = loop.load %t[r0, i1]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<64x16xf32, device = "cuda:0">
  %h = loop.generate (i0 in 64, i1 in 16) {
    %r = loop.reduce sum (r0 in 64) {
      %a = loop.load %s[r0, i0]
      %b = loop.load %q[r0, i1]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<64x16xf32, device = "cuda:0">
  %m = loop.generate (i0 in 64) {
    %r = loop.reduce max (r0 in 64) {
      %a = loop.load %p[i0, r0]
      loop.yield %a
    }
    loop.yield %r
  } : !aten.tensor<64xf32, device = "cuda:0">
  func.return %g, %h, %m : !aten.tensor<64x16xf32, device = "cuda:0">, !aten.tensor<64x16xf32, device = "cuda:0">, !aten.tensor<64xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @gradients
// CHECK-NEXT: %g, %h = loop.generate (i0 in 64, i1 in 16) {
// CHECK: loop.reduce sum (r0 in 64) {
// CHECK-NEXT: loop.reduce sum (r1 in 16) {
// CHECK-NEXT: loop.load %q[r0, r1]
// CHECK-NEXT: loop.load %k[i0, r1]
// CHECK: math.exp
// CHECK: loop.load %t[r0, i1]
// CHECK: loop.reduce sum (r0 in 64) {
// CHECK-NEXT: loop.reduce sum (r1 in 16) {
// CHECK: loop.load %q[r0, i1]
// CHECK: %m = loop.generate (i0 in 64) {
// CHECK-NEXT: loop.reduce max (r0 in 64) {
// CHECK-NEXT: loop.reduce sum (r1 in 16) {
// REMARK: passed: {{.*}}a product is computed where it is read readers=3

// Something returns them: they are in memory anyway.
func.func @returned(%q: !aten.tensor<64x16xf32, device = "cuda:0">, %t: !aten.tensor<64x16xf32, device = "cuda:0">) -> (!aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<64x16xf32, device = "cuda:0">) {
  %s = loop.generate (i0 in 64, i1 in 64) {
    %r = loop.reduce sum (r0 in 16) {
      %a = loop.load %q[i0, r0]
      %b = loop.load %q[i1, r0]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<64x64xf32, device = "cuda:0">
  %g = loop.generate (i0 in 64, i1 in 16) {
    %r = loop.reduce sum (r0 in 64) {
      %a = loop.load %s[i0, r0]
      %b = loop.load %t[r0, i1]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<64x16xf32, device = "cuda:0">
  func.return %s, %g : !aten.tensor<64x64xf32, device = "cuda:0">, !aten.tensor<64x16xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @returned
// CHECK: loop.load %s[i0, r0]
// REMARK: missed: {{.*}}a product is not computed where it is read: something else needs it in memory

// A product of a thousand columns would compute them again for each tile of its columns.
func.func @wide(%q: !aten.tensor<64x16xf32, device = "cuda:0">, %t: !aten.tensor<64x1024xf32, device = "cuda:0">) -> !aten.tensor<64x1024xf32, device = "cuda:0"> {
  %s = loop.generate (i0 in 64, i1 in 64) {
    %r = loop.reduce sum (r0 in 16) {
      %a = loop.load %q[i0, r0]
      %b = loop.load %q[i1, r0]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<64x64xf32, device = "cuda:0">
  %g = loop.generate (i0 in 64, i1 in 1024) {
    %r = loop.reduce sum (r0 in 64) {
      %a = loop.load %s[i0, r0]
      %b = loop.load %t[r0, i1]
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %r
  } : !aten.tensor<64x1024xf32, device = "cuda:0">
  func.return %g : !aten.tensor<64x1024xf32, device = "cuda:0">
}
// CHECK-LABEL: func.func @wide
// CHECK: loop.load %s[i0, r0]
// REMARK: missed: {{.*}}it is read for more than 256 columns
