// RUN: inductile-opt %s -p lower-aten-to-loop,loop-fuse,loop-bufferize --remarks -o %t 2>&1 | filecheck %s

// Who writes to an input is told once, by the pass that decides it: not as an op without a lowering.
func.func @computed(%cache: !aten.tensor<8xf32>, %x: !aten.tensor<8xf32>) {
  %0 = aten.sin(%x) : !aten.tensor<8xf32>
  %1 = aten.copy_(%cache, %0) : !aten.tensor<8xf32>
  func.return
}

func.func @given(%cache: !aten.tensor<8xf32>, %x: !aten.tensor<8xf32>) {
  %0 = aten.copy_(%cache, %x) : !aten.tensor<8xf32>
  func.return
}

// CHECK-NOT: lower-aten-to-loop{{.*}}aten.copy_
// CHECK:     [loop-bufferize] passed: aten.copy_: computed in place
// CHECK:     [loop-bufferize] missed: aten.copy_: the value is copied: it is not what a kernel computes
