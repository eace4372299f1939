// RUN: inductile-opt %s -p loop-fuse | filecheck %s

// What is computed once a row joins the rows: on a CPU they are enough to keep all threads busy.
func.func @rows(%x: !aten.tensor<4096x512xf32>, %t: !aten.tensor<4096xf32>) -> !aten.tensor<4096x512xf32> {
  %s = loop.generate (i0 in 4096) {
    %v = loop.load %t[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4096xf32>
  %y = loop.generate (i0 in 4096, i1 in 512) {
    %v = loop.load %x[i0, i1]
    %w = loop.load %s[i0]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<4096x512xf32>
  func.return %y : !aten.tensor<4096x512xf32>
}
// CHECK-LABEL: @rows
// CHECK: loop.fusion (a0 in 4096 | a1 in 512) {
// CHECK-NOT: loop.fusion
// CHECK: func.return

// What is computed once a column does not: the columns would be far apart in memory.
func.func @columns(%x: !aten.tensor<4096x512xf32>, %t: !aten.tensor<512xf32>) -> !aten.tensor<4096x512xf32> {
  %s = loop.generate (i0 in 512) {
    %v = loop.load %t[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<512xf32>
  %y = loop.generate (i0 in 4096, i1 in 512) {
    %v = loop.load %x[i0, i1]
    %w = loop.load %s[i1]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<4096x512xf32>
  func.return %y : !aten.tensor<4096x512xf32>
}
// CHECK-LABEL: @columns
// CHECK: loop.fusion (a0 in 512) {
// CHECK: loop.fusion (a0 in 4096, a1 in 512) {

// A GPU runs all elements side by side.
func.func @gpu(%x: !aten.tensor<4096x512xf32, device = "cuda:0">, %t: !aten.tensor<4096xf32, device = "cuda:0">) -> !aten.tensor<4096x512xf32, device = "cuda:0"> {
  %s = loop.generate (i0 in 4096) {
    %v = loop.load %t[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<4096xf32, device = "cuda:0">
  %y = loop.generate (i0 in 4096, i1 in 512) {
    %v = loop.load %x[i0, i1]
    %w = loop.load %s[i0]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<4096x512xf32, device = "cuda:0">
  func.return %y : !aten.tensor<4096x512xf32, device = "cuda:0">
}
// CHECK-LABEL: @gpu
// CHECK: loop.fusion (a0 in 4096) {
// CHECK: loop.fusion (a0 in 4096, a1 in 512) {
