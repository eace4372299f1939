// RUN: inductile-opt %s -p loop-split-axes | filecheck %s

// A matrix of rows meets its reshaped reader; the ATen call sees the same memory.
func.func @reshaped_reader(%x: !aten.tensor<256x8xf32>, %w: !aten.tensor<8x8xf32>) -> (!aten.tensor<2x128x8xf32>, !aten.tensor<256x8xf32>) {
  %p = loop.generate (i0 in 256, i1 in 8) {
    %v = loop.load %x[i0, i1]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<256x8xf32>
  %mm = aten.mm(%p, %w) : !aten.tensor<256x8xf32>
  %y = loop.generate (i0 in 2, i1 in 128, i2 in 8) {
    %v = loop.load %p[128*i0 + i1, i2]
    %m = loop.reduce max (r0 in 8) {
      %u = loop.load %p[128*i0 + i1, r0]
      loop.yield %u
    }
    %d = arith.divf %v, %m : f32
    loop.yield %d
  } : !aten.tensor<2x128x8xf32>
  func.return %y, %mm : !aten.tensor<2x128x8xf32>, !aten.tensor<256x8xf32>
}
// A reduction over the rows of a tensor of batches; and a nest over rows that reads batches.
func.func @rows(%x: !aten.tensor<2x128x8xf32>) -> (!aten.tensor<8xf32>, !aten.tensor<256x8xf32>) {
  %p = loop.generate (i0 in 2, i1 in 128, i2 in 8) {
    %v = loop.load %x[i0, i1, i2]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<2x128x8xf32>
  %s = loop.generate (i0 in 8) {
    %r = loop.reduce sum (r0 in 256) {
      %v = loop.load %p[r0 floordiv 128, r0 mod 128, i0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<8xf32>
  %y = loop.generate (i0 in 256, i1 in 8) {
    %v = loop.load %p[i0 floordiv 128, i0 mod 128, i1]
    %e = math.sqrt %v : f32
    loop.yield %e
  } : !aten.tensor<256x8xf32>
  func.return %s, %y : !aten.tensor<8xf32>, !aten.tensor<256x8xf32>
}
// The other reader's index would have to divide: nothing is split.
func.func @shifted(%x: !aten.tensor<257xf32>) -> (!aten.tensor<2x128xf32>, !aten.tensor<200xf32>) {
  %p = loop.generate (i0 in 256) {
    %v = loop.load %x[i0 + 1]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<256xf32>
  %y = loop.generate (i0 in 2, i1 in 128) {
    %v = loop.load %p[128*i0 + i1]
    loop.yield %v
  } : !aten.tensor<2x128xf32>
  %z = loop.generate (i0 in 200) {
    %v = loop.load %p[i0 + 5]
    loop.yield %v
  } : !aten.tensor<200xf32>
  func.return %y, %z : !aten.tensor<2x128xf32>, !aten.tensor<200xf32>
}
// Sizes may be symbols.
func.func @symbols(%x: !aten.tensor<(s0*s1)xf32>, %w: !aten.tensor<(s0)x(s1)xf32>) -> !aten.tensor<(s0)x(s1)xf32> attributes {symbols = [#sym.symbol<s0, arg = 1, dim = 0, min = 2>, #sym.symbol<s1, arg = 1, dim = 1, min = 2>]} {
  %p = loop.generate (i0 in s0*s1) {
    %v = loop.load %x[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<(s0*s1)xf32>
  %y = loop.generate (i0 in s0, i1 in s1) {
    %v = loop.load %p[s1*i0 + i1]
    loop.yield %v
  } : !aten.tensor<(s0)x(s1)xf32>
  func.return %y : !aten.tensor<(s0)x(s1)xf32>
}
// The pieces of a scatter's domain.
func.func @heads(%x: !aten.tensor<24x128x64xf32>) -> !aten.tensor<2x128x1536xf32> {
  %d = loop.empty : !aten.tensor<2x128x1536xf32>
  %s = loop.scatter set (i0 in 2, i1 in 128, i2 in 768) into %d[i0, i1, i2 + 768] unique {
    %v = loop.load %x[12*i0 + i2 floordiv 64, i1, i2 mod 64]
    loop.yield %v
  } : !aten.tensor<2x128x1536xf32>
  %t = loop.scatter set (i0 in 2, i1 in 128, i2 in 768) into %s[i0, i1, i2] unique {
    %v = loop.load %x[12*i0 + i2 floordiv 64, i1, i2 mod 64]
    loop.yield %v
  } : !aten.tensor<2x128x1536xf32>
  func.return %t : !aten.tensor<2x128x1536xf32>
}

// CHECK-LABEL: func.func @reshaped_reader
// CHECK-NEXT: %p = loop.generate (i0 in 2, i2 in 128, i1 in 8) {
// CHECK-NEXT: %v = loop.load %x[128*i0 + i2, i1]
// CHECK: %p_1 = loop.view %p[i0 floordiv 128, i0 mod 128, i1] (i0 in 256, i1 in 8) : !aten.tensor<256x8xf32>
// CHECK: %v_1 = loop.load %p[i0, i1, i2]
// CHECK: %u = loop.load %p[i0, i1, r0]
// CHECK-LABEL: func.func @rows
// CHECK: %r = loop.reduce sum (r0 in 2, r1 in 128) {
// CHECK-NEXT: %v_1 = loop.load %p[r0, r1, i0]
// CHECK: %y = loop.generate (i0 in 2, i2 in 128, i1 in 8) {
// CHECK-NEXT: %v_2 = loop.load %p[i0, i2, i1]
// CHECK: %y_1 = loop.view %y[i0 floordiv 128, i0 mod 128, i1] (i0 in 256, i1 in 8) : !aten.tensor<256x8xf32>
// CHECK-NEXT: func.return %s, %y_1 : !aten.tensor<8xf32>, !aten.tensor<256x8xf32>
// CHECK-LABEL: func.func @shifted
// CHECK-NEXT: %p = loop.generate (i0 in 256) {
// CHECK-NEXT: %v = loop.load %x[i0 + 1]
// CHECK-NEXT: %e = math.exp %v : f32
// CHECK: %y = loop.generate (i0 in 2, i1 in 128) {
// CHECK-NEXT: %v_1 = loop.load %p[128*i0 + i1]
// CHECK: %z = loop.generate (i0 in 200) {
// CHECK-NEXT: %v_2 = loop.load %p[i0 + 5]
// CHECK: func.return %y, %z : !aten.tensor<2x128xf32>, !aten.tensor<200xf32>
// CHECK-LABEL: func.func @symbols
// CHECK-NEXT: %p = loop.generate (i0 in s0, i1 in s1) {
// CHECK-NEXT: %v = loop.load %x[i0*s1 + i1]
// CHECK: %v_1 = loop.load %p[i0, i1]
// CHECK-LABEL: func.func @heads
// CHECK: %s = loop.scatter set (i0 in 2, i1 in 128, i2 in 12, i3 in 64) into %d[i0, i1, 64*i2 + i3 + 768] unique {
// CHECK-NEXT: %v = loop.load %x[12*i0 + i2, i1, i3]
// CHECK: %t = loop.scatter set (i0 in 2, i1 in 128, i2 in 12, i3 in 64) into %s[i0, i1, 64*i2 + i3] unique {
// CHECK-NEXT: %v_1 = loop.load %x[12*i0 + i2, i1, i3]
