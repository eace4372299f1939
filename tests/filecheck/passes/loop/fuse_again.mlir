// RUN: inductile-opt %s -p loop-fuse | filecheck %s

// The scale of a row is not worth the parallel points of a step over its elements, until that has joined the maximum of
// the row and has lost them.
func.func @again(%x: !aten.tensor<4096x512xf32>, %t: !aten.tensor<4096xf32>) -> !aten.tensor<4096x512xf32> {
  %m = loop.generate (i0 in 4096) {
    %r = loop.reduce max (r0 in 512) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<4096xf32>
  %s = loop.generate (i0 in 4096) {
    %v = loop.load %t[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4096xf32>
  %y = loop.generate (i0 in 4096, i1 in 512) {
    %v = loop.load %x[i0, i1]
    %n = loop.load %m[i0]
    %w = loop.load %s[i0]
    %d = arith.subf %v, %n : f32
    %p = arith.mulf %d, %w : f32
    loop.yield %p
  } : !aten.tensor<4096x512xf32>
  func.return %y : !aten.tensor<4096x512xf32>
}
// CHECK-LABEL: @again
// CHECK: loop.fusion (a0 in 4096 | a1 in 512) {
// CHECK: math.exp
// CHECK-NOT: loop.fusion
// CHECK: func.return
