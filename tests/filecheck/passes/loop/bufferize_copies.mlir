// RUN: inductile-opt %s -p loop-fuse,loop-bufferize | filecheck %s

// What the second copy gives to %b was read before the first one writes %a: it is kept where it was read.
func.func @copied_then_written(%a: !aten.tensor<8xf32>, %b: !aten.tensor<8xf32>) {
  %old = loop.generate (i0 in 8) {
    %v = loop.load %a[i0]
    loop.yield %v
  } : !aten.tensor<8xf32>
  %new = loop.generate (i0 in 8) {
    %v = loop.load %a[i0]
    %w = arith.addf %v, %v : f32
    loop.yield %w
  } : !aten.tensor<8xf32>
  %c = aten.copy_(%a, %new) : !aten.tensor<8xf32>
  %d = aten.copy_(%b, %old) : !aten.tensor<8xf32>
  func.return
}

// CHECK-LABEL: func.func @copied_then_written
// CHECK:         %old_1 = loop.generate
// CHECK-NEXT:      loop.load %a[i0]
// CHECK:         loop.scatter set (i0 in 8) into %a[i0]
// CHECK:         loop.scatter set (i0 in 8) into %b[i0]
// CHECK-NEXT:      loop.load %old_1[i0]
