// RUN: inductile-opt %s -p loop-fuse | filecheck %s

// A kernel for a GPU cannot write a number into the CPU's memory, where the kernel behind the call reads it.

func.func @two_readers(%s: !aten.tensor<f32>, %x: !aten.tensor<72xf32, device = "cuda:0">) -> (!aten.tensor<72xf32, device = "cuda:0">, !aten.tensor<72xf32, device = "cuda:0">) {
  %t = loop.generate () {
    %v = loop.load %s[]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<f32>
  %y = loop.generate (i0 in 72) {
    %v = loop.load %x[i0]
    %w = loop.load %t[]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<72xf32, device = "cuda:0">
  %c, %d = aten.sort(%y) : !aten.tensor<72xf32, device = "cuda:0">, !aten.tensor<72xi64, device = "cuda:0">
  %z = loop.generate (i0 in 72) {
    %v = loop.load %c[i0]
    %w = loop.load %t[]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<72xf32, device = "cuda:0">
  func.return %y, %z : !aten.tensor<72xf32, device = "cuda:0">, !aten.tensor<72xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @two_readers
// CHECK: %t = loop.fusion
// CHECK: %y = loop.fusion
// CHECK: %z = loop.fusion

// Nor do numbers of both devices share one.

func.func @numbers(%s: !aten.tensor<f32>, %x: !aten.tensor<f32, device = "cuda:0">) -> (!aten.tensor<f32>, !aten.tensor<f32, device = "cuda:0">) {
  %t = loop.generate () {
    %v = loop.load %s[]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<f32>
  %y = loop.generate () {
    %v = loop.load %x[]
    %e = math.exp %v : f32
    loop.yield %e
  } : !aten.tensor<f32, device = "cuda:0">
  func.return %t, %y : !aten.tensor<f32>, !aten.tensor<f32, device = "cuda:0">
}

// CHECK-LABEL: func.func @numbers
// CHECK: %t = loop.fusion
// CHECK: %y = loop.fusion
