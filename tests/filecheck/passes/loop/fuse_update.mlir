// RUN: inductile-opt %s -p loop-fuse | filecheck %s

// A step reads a counter and advances it. On a GPU the programs of the nest compute the step each for itself, at any
// time: it is written back by a kernel of its own. On the CPU nests of a kernel run one after the other.

func.func @gpu(%n: !aten.tensor<f32, device = "cuda:0">, %x: !aten.tensor<72xf32, device = "cuda:0">) -> !aten.tensor<72xf32, device = "cuda:0"> {
  %t = loop.generate () {
    %v = loop.load %n[]
    %one = arith.constant 1.0 : f32
    %s = arith.addf %v, %one : f32
    loop.yield %s
  } : !aten.tensor<f32, device = "cuda:0">
  %y = loop.generate (i0 in 72) {
    %v = loop.load %x[i0]
    %s = loop.load %t[]
    %p = math.powf %v, %s : f32
    loop.yield %p
  } : !aten.tensor<72xf32, device = "cuda:0">
  %c = aten.copy_(%n, %t) : !aten.tensor<f32, device = "cuda:0">
  func.return %y : !aten.tensor<72xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @gpu
// CHECK: %t = loop.fusion
// CHECK: %y = loop.fusion

func.func @cpu(%n: !aten.tensor<f32>, %x: !aten.tensor<72xf32>) -> !aten.tensor<72xf32> {
  %t = loop.generate () {
    %v = loop.load %n[]
    %one = arith.constant 1.0 : f32
    %s = arith.addf %v, %one : f32
    loop.yield %s
  } : !aten.tensor<f32>
  %y = loop.generate (i0 in 72) {
    %v = loop.load %x[i0]
    %s = loop.load %t[]
    %p = math.powf %v, %s : f32
    loop.yield %p
  } : !aten.tensor<72xf32>
  %c = aten.copy_(%n, %t) : !aten.tensor<f32>
  func.return %y : !aten.tensor<72xf32>
}

// CHECK-LABEL: func.func @cpu
// CHECK: %t, %y = loop.fusion
