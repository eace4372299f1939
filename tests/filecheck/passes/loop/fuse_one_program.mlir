// RUN: inductile-opt %s -p loop-fuse | filecheck %s

// The sum of all rows leaves nothing to run in parallel. On a GPU its steps, of a row each, would wait for memory one
// after the other: it is a kernel of its own. The CPU takes few of them along.

func.func @gpu(%x: !aten.tensor<256x8xf32, device = "cuda:0">) -> !aten.tensor<f32, device = "cuda:0"> {
  %m = loop.generate (i0 in 256) {
    %r = loop.reduce max (r0 in 8) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<256xf32, device = "cuda:0">
  %y = loop.generate () {
    %r = loop.reduce sum (r0 in 256) {
      %v = loop.load %m[r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32, device = "cuda:0">
  func.return %y : !aten.tensor<f32, device = "cuda:0">
}

// CHECK-LABEL: func.func @gpu
// CHECK:         %m = loop.fusion
// CHECK:         %y = loop.fusion

func.func @cpu(%x: !aten.tensor<256x8xf32>) -> !aten.tensor<f32> {
  %m = loop.generate (i0 in 256) {
    %r = loop.reduce max (r0 in 8) {
      %v = loop.load %x[i0, r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<256xf32>
  %y = loop.generate () {
    %r = loop.reduce sum (r0 in 256) {
      %v = loop.load %m[r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32>
  func.return %y : !aten.tensor<f32>
}

// CHECK-LABEL: func.func @cpu
// CHECK-NOT:     %m = loop.fusion
// CHECK:         %y = loop.fusion


// What one loop does, lanes do side by side.

func.func @lanes(%x: !aten.tensor<256xf32, device = "cuda:0">) -> (!aten.tensor<256xf32, device = "cuda:0">, !aten.tensor<f32, device = "cuda:0">) {
  %m = loop.generate (i0 in 256) {
    %v = loop.load %x[i0]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<256xf32, device = "cuda:0">
  %y = loop.generate () {
    %r = loop.reduce sum (r0 in 256) {
      %v = loop.load %m[r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32, device = "cuda:0">
  func.return %m, %y : !aten.tensor<256xf32, device = "cuda:0">, !aten.tensor<f32, device = "cuda:0">
}

// CHECK-LABEL: func.func @lanes
// CHECK-NOT:     %m = loop.fusion
// CHECK:         %m, %y = loop.fusion
