// RUN: inductile-opt %s -p loop-inline | filecheck %s

// A kernel for a GPU computes numbers of the CPU itself, but not where a decision depends on how a device rounds:
// eager computes `int(s ** 0.5)` on the CPU.

func.func @scaled(%s: !aten.tensor<f32>, %x: !aten.tensor<72xf32, device = "cuda:0">) -> !aten.tensor<72xf32, device = "cuda:0"> {
  %t = loop.generate () {
    %v = loop.load %s[]
    %q = math.rsqrt %v : f32
    loop.yield %q
  } : !aten.tensor<f32>
  %y = loop.generate (i0 in 72) {
    %v = loop.load %x[i0]
    %w = loop.load %t[]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<72xf32, device = "cuda:0">
  func.return %y : !aten.tensor<72xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @scaled
// CHECK-NOT: %t = loop.generate
// CHECK: func.return

func.func @exact_step(%s: !aten.tensor<f32>, %x: !aten.tensor<72xf32, device = "cuda:0">) -> !aten.tensor<72xf32, device = "cuda:0"> {
  %t = loop.generate () {
    %v = loop.load %s[]
    %e = math.sqrt %v : f32
    %f = math.trunc %e : f32
    loop.yield %f
  } : !aten.tensor<f32>
  %y = loop.generate (i0 in 72) {
    %v = loop.load %x[i0]
    %w = loop.load %t[]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<72xf32, device = "cuda:0">
  func.return %y : !aten.tensor<72xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @exact_step
// CHECK-NOT: %t = loop.generate
// CHECK: func.return

func.func @step(%s: !aten.tensor<f64>, %x: !aten.tensor<72xf32, device = "cuda:0">) -> !aten.tensor<72xf32, device = "cuda:0"> {
  %r = loop.generate () {
    %v = loop.load %s[]
    %h = arith.constant 0.5 : f64
    %e = math.powf %v, %h : f64
    loop.yield %e
  } : !aten.tensor<f64>
  %t = loop.generate () {
    %v = loop.load %r[]
    %e = math.trunc %v : f64
    %f = scalar.cast %e : f64 to f32
    loop.yield %f
  } : !aten.tensor<f32>
  %y = loop.generate (i0 in 72) {
    %v = loop.load %x[i0]
    %w = loop.load %t[]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<72xf32, device = "cuda:0">
  func.return %y : !aten.tensor<72xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @step
// CHECK: %t = loop.generate ()
// CHECK: math.powf
// CHECK: math.trunc
// CHECK: %y = loop.generate
// CHECK: loop.load %t[]

func.func @threshold(%s: !aten.tensor<f32>, %x: !aten.tensor<72xf32, device = "cuda:0">) -> !aten.tensor<72xi1, device = "cuda:0"> {
  %t = loop.generate () {
    %v = loop.load %s[]
    %q = math.rsqrt %v : f32
    loop.yield %q
  } : !aten.tensor<f32>
  %y = loop.generate (i0 in 72) {
    %v = loop.load %x[i0]
    %w = loop.load %t[]
    %p = arith.cmpf oge, %v, %w : f32
    loop.yield %p
  } : !aten.tensor<72xi1, device = "cuda:0">
  func.return %y : !aten.tensor<72xi1, device = "cuda:0">
}

// CHECK-LABEL: func.func @threshold
// CHECK: %t = loop.generate ()
// CHECK: %y = loop.generate

// What reads a whole tensor of the CPU stays there.

func.func @sum(%s: !aten.tensor<64xf32>, %x: !aten.tensor<1xf32, device = "cuda:0">) -> !aten.tensor<1xf32, device = "cuda:0"> {
  %t = loop.generate () {
    %r = loop.reduce sum (r0 in 64) {
      %v = loop.load %s[r0]
      loop.yield %v
    }
    loop.yield %r
  } : !aten.tensor<f32>
  %y = loop.generate (i0 in 1) {
    %v = loop.load %x[i0]
    %w = loop.load %t[]
    %p = arith.mulf %v, %w : f32
    loop.yield %p
  } : !aten.tensor<1xf32, device = "cuda:0">
  func.return %y : !aten.tensor<1xf32, device = "cuda:0">
}

// CHECK-LABEL: func.func @sum
// CHECK: %t = loop.generate ()
// CHECK: %y = loop.generate
