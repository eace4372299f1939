// RUN: not inductile-opt %s --split-input-file 2>&1 | filecheck %s

// Names in index expressions are checked as values are: by what is declared around an op and before it.

// CHECK: 'loop.load' op uses 'zz', which nothing around it declares
func.func @axis(%x: !aten.tensor<4x4xf32>) -> !aten.tensor<4xf32> {
  %0 = loop.generate (i0 in 4) {
    %1 = loop.load %x[i0, zz]
    loop.yield %1
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'loop.load' op uses 'r0', which nothing around it declares
func.func @behind(%x: !aten.tensor<4x4xf32>) -> !aten.tensor<4xf32> {
  %0 = loop.generate (i0 in 4) {
    %1 = loop.reduce sum (r0 in 4) {
      %2 = loop.load %x[i0, r0]
      loop.yield %2
    }
    %3 = loop.load %x[i0, r0]
    %4 = arith.addf %1, %3 : f32
    loop.yield %4
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'loop.load' op uses 'r0', which nothing around it declares
func.func @combine(%x: !aten.tensor<4x4xf32>) -> !aten.tensor<4xf32> {
  %0 = loop.generate (i0 in 4) {
    %z = arith.constant 0.0 : f32
    %1 = loop.reduce custom init(%z) (r0 in 4) {
      %2 = loop.load %x[i0, r0]
      loop.yield %2
    } combine {
    ^bb0(%a: f32, %b: f32):
      %3 = loop.load %x[i0, r0]
      loop.yield %3
    }
    loop.yield %1
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'loop.reduce' op declares axis 'i0', which is declared already around it
func.func @again(%x: !aten.tensor<4x4xf32>) -> !aten.tensor<4xf32> {
  %0 = loop.generate (i0 in 4) {
    %1 = loop.reduce sum (i0 in 4) {
      %2 = loop.load %x[i0, i0]
      loop.yield %2
    }
    loop.yield %1
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'loop.generate' op declares 'i0' twice
func.func @twice(%x: !aten.tensor<4x4xf32>) -> !aten.tensor<4x4xf32> {
  %0 = loop.generate (i0 in 4, i0 in 4) {
    %2 = loop.load %x[i0, i0]
    loop.yield %2
  } : !aten.tensor<4x4xf32>
  func.return %0 : !aten.tensor<4x4xf32>
}

// -----

// CHECK: 'loop.load' op uses d1, and has no such dynamic operand
func.func @dynamic(%x: !aten.tensor<4xf32>, %j: !aten.tensor<4xi64>) -> !aten.tensor<4xf32> {
  %0 = loop.generate (i0 in 4) {
    %1 = loop.load %j[i0]
    %2 = loop.load %x[d1] (d0 = %1)
    loop.yield %2
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'func.func' op uses 's0', which nothing around it declares
func.func @size(%x: !aten.tensor<(s0)xf32>) -> !aten.tensor<(s0)xf32> {
  func.return %x : !aten.tensor<(s0)xf32>
}

// -----

// CHECK: 'aten.exp' op uses 'u0', which nothing around it declares
func.func @unbacked(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> attributes {symbols = [#sym.symbol<u0>]} {
  %0 = aten.exp(%x) : !aten.tensor<(u0)xf32>
  %1 = aten.nonzero(%x) binds [u0] : !aten.tensor<(u0)x1xi64>
  func.return %x : !aten.tensor<4xf32>
}

// -----

// CHECK: 'func.func' op symbol s0 comes from argument 0, which is !aten.tensor<4xf32> and not a tensor with a dimension 1
func.func @declared(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 1>]} {
  func.return %x : !aten.tensor<4xf32>
}

// -----

// CHECK: 'kernel.store' op uses 's1', which nothing around it declares
kernel.func @symbol(%x: !kernel.buffer<f32, s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 {
    %1 = kernel.load %x[i0]
    kernel.store %1, %x[i0 + s1]
    kernel.yield
  }
  kernel.yield
}

// -----

// CHECK: 'kernel.for' op uses 'i1', which nothing around it declares
kernel.func @bound(%x: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to min(i1, 4) {
    kernel.for i1 in 0 to 4 {
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// -----

// CHECK: 'host.launch' op uses 's1', which nothing around it declares
kernel.func @k(%x: !kernel.buffer<f32, s0>) symbols (s0) {
  kernel.yield
}
host.func @launch(%x: !aten.tensor<(s0)xf32>) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {
  host.launch @k(%x) [s1]
  host.return
}

// -----

// CHECK: 'kernel.for' op an axis or symbol cannot be called 'i 0': it does not read back
kernel.func @spelling(%x: !kernel.buffer<f32, 4>) {
  "kernel.for"() <{axis = "i 0", lo = #sym.expr<0>, hi = #sym.expr<4>, mapping = "serial"}> ({
    kernel.yield
  }) : () -> ()
  kernel.yield
}

// -----

// CHECK: 'kernel.reduce' op an axis cannot be called 'init': it does not read back
kernel.func @keyword(%x: !kernel.buffer<f32, 4>) {
  %0 = "kernel.reduce"() <{combiners = ["sum"], axis = "init", lo = #sym.expr<0>, hi = #sym.expr<4>, mapping = "serial", operandSegmentSizes = array<i32: 0, 0>}> ({
    %1 = arith.constant 1.0 : f32
    kernel.yield %1
  }) : () -> f32
  kernel.yield
}

// -----

// CHECK: 'kernel.load' op uses 'i0', which nothing around it declares
kernel.for i0 in 0 to 64 {
  kernel.func @inner(%x: !kernel.buffer<f32, 64>) {
    %v = kernel.load %x[i0]
    kernel.yield
  }
  kernel.yield
}

// -----

// CHECK: 'kernel.func' op has a body without ops, which ends in no terminator
kernel.func @hollow(%x: !kernel.buffer<f32, 64>) {
}
