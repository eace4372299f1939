// RUN: inductile-opt %s -p loop-turn-readers --verify-each | filecheck %s
// RUN: inductile-opt %s --target cpp --verify-each -p loop-turn-readers,loop-fuse,loop-bufferize | filecheck %s --check-prefix=FUSED

// The gradient of a cumulative sum: its scan is read backwards, and what reads it writes backwards instead.
func.func @flipped(%x: !aten.tensor<4x64xf32>, %y: !aten.tensor<4x64xf32>) -> !aten.tensor<4x64xf32> {
  %s = loop.scan sum (i0 in 4, i1 in 64) along i1 {
    %0 = loop.load %x[i0, -i1 + 63]
    loop.yield %0
  } : !aten.tensor<4x64xf32>
  %r = loop.generate (i0 in 4, i1 in 64) {
    %1 = loop.load %s[i0, -i1 + 63]
    %2 = loop.load %y[i0, i1]
    %3 = arith.mulf %1, %2 : f32
    loop.yield %3
  } : !aten.tensor<4x64xf32>
  func.return %r : !aten.tensor<4x64xf32>
}
// CHECK-LABEL: @flipped
// CHECK: %[[D:.*]] = loop.empty
// CHECK-NEXT: loop.scatter set (i0 in 4, i1 in 64) into %[[D]][i0, -i1 + 63] unique {
// CHECK-NEXT: loop.load %s[i0, i1]
// CHECK-NEXT: loop.load %y[i0, -i1 + 63]
// FUSED-LABEL: @flipped
// FUSED: loop.fusion
// FUSED-NOT: loop.fusion
// FUSED: func.return

// One that reads it at two places, or what is no scan, stays.
func.func @kept(%x: !aten.tensor<4x64xf32>) -> (!aten.tensor<4x64xf32>, !aten.tensor<4x64xf32>) {
  %s = loop.scan sum (i0 in 4, i1 in 64) along i1 {
    %0 = loop.load %x[i0, i1]
    loop.yield %0
  } : !aten.tensor<4x64xf32>
  %r = loop.generate (i0 in 4, i1 in 64) {
    %1 = loop.load %s[i0, -i1 + 63]
    %2 = loop.load %s[i0, i1]
    %3 = arith.mulf %1, %2 : f32
    loop.yield %3
  } : !aten.tensor<4x64xf32>
  %q = loop.generate (i0 in 4, i1 in 64) {
    %4 = loop.load %x[i0, -i1 + 63]
    loop.yield %4
  } : !aten.tensor<4x64xf32>
  func.return %r, %q : !aten.tensor<4x64xf32>, !aten.tensor<4x64xf32>
}
// CHECK-LABEL: @kept
// CHECK-NOT: loop.scatter
