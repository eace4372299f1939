// RUN: inductile-opt %s -p loop-fuse,loop-bufferize | filecheck %s

// One step of a KV cache: the new token is written to the cache, nothing is copied.
func.func @kv_cache(%cache: !aten.tensor<2x16x8xf32>, %new: !aten.tensor<2x1x8xf32>, %position: !aten.tensor<1xi64>) -> !aten.tensor<2x8xf32> {
  %updated = loop.scatter set (i0 in 2, i1 in 1, i2 in 8) into %cache[i0, d0, i2] unique {
    %v = loop.load %new[i0, i1, i2]
    %p = loop.load %position[0]
    loop.yield %v, %p
  } : !aten.tensor<2x16x8xf32>
  %sum = loop.generate (i0 in 2, i1 in 8) {
    %s = loop.reduce sum (r0 in 16) {
      %v = loop.load %updated[i0, r0, i1]
      loop.yield %v
    }
    loop.yield %s
  } : !aten.tensor<2x8xf32>
  %c = aten.copy_(%cache, %updated) : !aten.tensor<2x16x8xf32>
  func.return %sum : !aten.tensor<2x8xf32>
}
// The old cache is read behind the scatter: it must be copied.
func.func @read_later(%cache: !aten.tensor<16x8xf32>, %new: !aten.tensor<1x8xf32>) -> !aten.tensor<8xf32> {
  %updated = loop.scatter set (i0 in 1, i1 in 8) into %cache[i0 + 3, i1] unique {
    %v = loop.load %new[i0, i1]
    loop.yield %v
  } : !aten.tensor<16x8xf32>
  %sum = loop.generate (i0 in 8) {
    %s = loop.reduce sum (r0 in 16) {
      %v = loop.load %cache[r0, i0]
      %w = loop.load %updated[r0, i0]
      %d = arith.mulf %v, %w : f32
      loop.yield %d
    }
    loop.yield %s
  } : !aten.tensor<8xf32>
  %c = aten.copy_(%cache, %updated) : !aten.tensor<16x8xf32>
  func.return %sum : !aten.tensor<8xf32>
}
// A returned value must not live in the input.
func.func @returned(%cache: !aten.tensor<16x8xf32>, %new: !aten.tensor<1x8xf32>) -> !aten.tensor<16x8xf32> {
  %updated = loop.scatter set (i0 in 1, i1 in 8) into %cache[i0 + 3, i1] unique {
    %v = loop.load %new[i0, i1]
    loop.yield %v
  } : !aten.tensor<16x8xf32>
  %c = aten.copy_(%cache, %updated) : !aten.tensor<16x8xf32>
  func.return %updated : !aten.tensor<16x8xf32>
}
// An optimiser step: the parameter and its moment are written by the kernel.
func.func @step(%p: !aten.tensor<64xf32>, %g: !aten.tensor<64xf32>, %m: !aten.tensor<64xf32, strides = [2]>) {
  %m1 = loop.generate (i0 in 64) {
    %v = loop.load %m[i0]
    %w = loop.load %g[i0]
    %s = arith.addf %v, %w : f32
    loop.yield %s
  } : !aten.tensor<64xf32>
  %p1 = loop.generate (i0 in 64) {
    %v = loop.load %m1[i0]
    %w = loop.load %p[i0]
    %s = arith.subf %w, %v : f32
    loop.yield %s
  } : !aten.tensor<64xf32>
  %c = aten.copy_(%m, %m1) : !aten.tensor<64xf32, strides = [2]>
  %c1 = aten.copy_(%p, %p1) : !aten.tensor<64xf32>
  func.return
}
// Reversing an input in place would read what it has overwritten.
func.func @reversed(%p: !aten.tensor<64xf32>) {
  %r = loop.generate (i0 in 64) {
    %v = loop.load %p[63 - i0]
    loop.yield %v
  } : !aten.tensor<64xf32>
  %c = aten.copy_(%p, %r) : !aten.tensor<64xf32>
  func.return
}
// The pieces of a cat fill one tensor.
func.func @cat(%x: !aten.tensor<3xf32>, %y: !aten.tensor<5xf32>) -> !aten.tensor<8xf32> {
  %d = loop.empty : !aten.tensor<8xf32>
  %a = loop.scatter set (i0 in 3) into %d[i0] unique {
    %v = loop.load %x[i0]
    loop.yield %v
  } : !aten.tensor<8xf32>
  %b = loop.scatter set (i0 in 5) into %a[i0 + 3] unique {
    %v = loop.load %y[i0]
    loop.yield %v
  } : !aten.tensor<8xf32>
  func.return %b : !aten.tensor<8xf32>
}

// Pieces of a cat along the last dimension are one kernel; along the first they stay apart.
func.func @cat_rows(%x: !aten.tensor<64x3xf32>, %y: !aten.tensor<64x5xf32>, %z: !aten.tensor<64x(s0)xf32>) -> !aten.tensor<64x(s0 + 8)xf32> attributes {symbols = [#sym.symbol<s0, arg = 2, dim = 1, min = 2>]} {
  %d = loop.empty : !aten.tensor<64x(s0 + 8)xf32>
  %a = loop.scatter set (i0 in 64, i1 in 3) into %d[i0, i1] unique {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<64x(s0 + 8)xf32>
  %b = loop.scatter set (i0 in 64, i1 in s0) into %a[i0, i1 + 3] unique {
    %v = loop.load %z[i0, i1]
    loop.yield %v
  } : !aten.tensor<64x(s0 + 8)xf32>
  %c = loop.scatter set (i0 in 64, i1 in 5) into %b[i0, i1 + s0 + 3] unique {
    %v = loop.load %y[i0, i1]
    loop.yield %v
  } : !aten.tensor<64x(s0 + 8)xf32>
  func.return %c : !aten.tensor<64x(s0 + 8)xf32>
}
func.func @cat_first(%x: !aten.tensor<3x64xf32>, %y: !aten.tensor<5x64xf32>) -> !aten.tensor<8x64xf32> {
  %d = loop.empty : !aten.tensor<8x64xf32>
  %a = loop.scatter set (i0 in 3, i1 in 64) into %d[i0, i1] unique {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<8x64xf32>
  %b = loop.scatter set (i0 in 5, i1 in 64) into %a[i0 + 3, i1] unique {
    %v = loop.load %y[i0, i1]
    loop.yield %v
  } : !aten.tensor<8x64xf32>
  func.return %b : !aten.tensor<8x64xf32>
}
// Overlapping writes keep their order.
func.func @overlap(%x: !aten.tensor<64x5xf32>, %y: !aten.tensor<64x5xf32>) -> !aten.tensor<64x8xf32> {
  %d = loop.generate (i0 in 64, i1 in 8) {
    %v = arith.constant 1.0 : f32
    loop.yield %v
  } : !aten.tensor<64x8xf32>
  %a = loop.scatter set (i0 in 64, i1 in 5) into %d[i0, i1] unique {
    %v = loop.load %x[i0, i1]
    loop.yield %v
  } : !aten.tensor<64x8xf32>
  %b = loop.scatter set (i0 in 64, i1 in 5) into %a[i0, i1 + 3] unique {
    %v = loop.load %y[i0, i1]
    loop.yield %v
  } : !aten.tensor<64x8xf32>
  func.return %b : !aten.tensor<64x8xf32>
}

// CHECK-LABEL: func.func @kv_cache
// CHECK: %updated_1 = loop.scatter set (i0 in 2, i1 in 1, i2 in 8) into %cache[i0, d0, i2] unique in_place on (a0, _, a1) {
// CHECK-LABEL: func.func @read_later
// CHECK-NEXT: %updated = loop.fusion (a0 in 8) {
// CHECK-NEXT: %updated_1 = loop.scatter set (i0 in 1, i1 in 8) into %cache[i0 + 3, i1] unique on (_, a0) {
// CHECK: %sum = loop.fusion (a0 in 8 | a1 in 16) {
// CHECK-NEXT: %sum_1 = loop.generate (i0 in 8) on (a0) {
// CHECK-NEXT: %s = loop.reduce sum (r0 in 16) on (a1) {
// CHECK-LABEL: func.func @returned
// CHECK-NEXT: %updated = loop.fusion (a0 in 8) {
// CHECK-NEXT: %updated_1 = loop.scatter set (i0 in 1, i1 in 8) into %cache[i0 + 3, i1] unique on (_, a0) {
// CHECK-NEXT: %v = loop.load %new[i0, i1]
// CHECK: %c = aten.copy_(%cache, %updated) : !aten.tensor<16x8xf32>
// CHECK-NEXT: func.return %updated : !aten.tensor<16x8xf32>
// CHECK-LABEL: func.func @step
// CHECK: %m1_2 = loop.scatter set (i0 in 64) into %m[i0] unique in_place on (a0) {
// CHECK-NEXT: %0 = loop.load %m1_1[i0]
// CHECK: %p1_1 = loop.scatter set (i0 in 64) into %p[i0] unique in_place on (a0) {
// CHECK-LABEL: func.func @reversed
// CHECK-NEXT: %r = loop.fusion (a0 in 64) {
// CHECK-NEXT: %r_1 = loop.generate (i0 in 64) on (a0) {
// CHECK-NEXT: %v = loop.load %p[-i0 + 63]
// CHECK: %c = aten.copy_(%p, %r) : !aten.tensor<64xf32>
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func @cat
// CHECK: %a_1 = loop.scatter set (i0 in 3) into %d[i0] unique in_place on (a0) {
// CHECK: %b_1 = loop.scatter set (i0 in 5) into %a[i0 + 3] unique in_place on (a0) {
// CHECK-LABEL: func.func @cat_rows
// CHECK: %a = loop.scatter set (i0 in 64, i1 in 3) into %d[i0, i1] unique in_place on (a0, a2) {
// CHECK: %b = loop.scatter set (i0 in 64, i1 in s0) into %a[i0, i1 + 3] unique in_place on (a0, a3) {
// CHECK: %c_1 = loop.scatter set (i0 in 64, i1 in 5) into %b[i0, i1 + s0 + 3] unique in_place on (a0, a1) {
// CHECK-LABEL: func.func @cat_first
// CHECK: %a_1 = loop.scatter set (i0 in 3, i1 in 64) into %d[i0, i1] unique in_place on (a0, a1) {
// CHECK: %b_1 = loop.scatter set (i0 in 5, i1 in 64) into %a[i0 + 3, i1] unique in_place on (a0, a1) {
// CHECK-LABEL: func.func @overlap
// CHECK: %a_1 = loop.scatter set (i0 in 64, i1 in 5) into %d[i0, i1] unique in_place on (a0, a1) {
// CHECK: %b_1 = loop.scatter set (i0 in 64, i1 in 5) into %a[i0, i1 + 3] unique in_place on (a0, a1) {
