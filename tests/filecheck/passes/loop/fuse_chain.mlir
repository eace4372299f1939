// RUN: inductile-opt %s -p loop-fuse,loop-bufferize --split-input-file -o %t
// RUN: inductile-opt %s --split-input-file --verify-each=numerics -p loop-fuse,loop-bufferize,lower-loop-to-kernel | filecheck %s

// Pieces that are written elsewhere in one tensor are one kernel, and in place, where only the next piece uses it.

func.func @chain(%x: !aten.tensor<66x129xf32>, %y: !aten.tensor<66x64xf32>) -> !aten.tensor<66x129xf32> attributes {symbols = []} {
  %t = loop.scatter add (i0 in 66, i1 in 64) into %x[i0, i1 mod 32] {
    %v = loop.load %y[i0, i1]
    loop.yield %v
  } : !aten.tensor<66x129xf32>
  %u = loop.scatter set (i0 in 66) into %t[i0, 64] unique {
    %v = loop.load %y[i0, 0]
    loop.yield %v
  } : !aten.tensor<66x129xf32>
  func.return %u : !aten.tensor<66x129xf32>
}

// CHECK-LABEL: host.func @chain
// CHECK:       host.launch
// CHECK-NOT:   host.launch
// CHECK:       host.return

// -----

// Else it is needed as it was in between, which one kernel cannot keep.

func.func @kept(%x: !aten.tensor<66x129xf32>, %y: !aten.tensor<66x64xf32>) -> (!aten.tensor<66x129xf32>, !aten.tensor<66x129xf32>) attributes {symbols = []} {
  %t = loop.scatter add (i0 in 66, i1 in 64) into %x[i0, i1 mod 32] {
    %v = loop.load %y[i0, i1]
    loop.yield %v
  } : !aten.tensor<66x129xf32>
  %u = loop.scatter set (i0 in 66) into %t[i0, 64] unique {
    %v = loop.load %y[i0, 0]
    loop.yield %v
  } : !aten.tensor<66x129xf32>
  func.return %t, %u : !aten.tensor<66x129xf32>, !aten.tensor<66x129xf32>
}

// CHECK-LABEL: host.func @kept
// CHECK:       host.launch
// CHECK:       host.launch
// CHECK:       host.return
