// RUN: not inductile-opt %s --split-input-file 2>&1 | filecheck %s

// What is certain to be outside of a tensor, a buffer or a kernel's parameters does not verify.

// CHECK: 'kernel.load' op index i0 + 100000000 of dimension 0, of size 64, becomes 100000063
kernel.func @load(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %1 = kernel.load %x[i0 + 100000000]
    kernel.store %1, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// -----

// CHECK: 'kernel.store' op index -i0 + 2 of dimension 0, becomes -1
kernel.func @store(%x: !kernel.buffer<f32, s0>) symbols (s0) {
  %1 = arith.constant 1.0 : f32
  kernel.for i0 in 0 to 4 {
    kernel.store %1, %x[-i0 + 2]
    kernel.yield
  }
  kernel.yield
}

// -----

// CHECK: 'loop.load' op index 4 of dimension 1, of size 4, becomes 4
func.func @constant(%x: !aten.tensor<4x4xf32>) -> !aten.tensor<4xf32> {
  %0 = loop.generate (i0 in 4) {
    %1 = loop.load %x[i0, 4]
    loop.yield %1
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// CHECK: 'loop.view' op index i0 + 2 of dimension 0, of size 4, becomes 4
func.func @view(%x: !aten.tensor<4xf32>) -> !aten.tensor<3xf32> {
  %0 = loop.view %x[i0 + 2] (i0 in 3) : !aten.tensor<3xf32>
  func.return %0 : !aten.tensor<3xf32>
}

// -----

// CHECK: 'loop.scatter' op index i0 + 2 of dimension 0, of size 4, becomes 4
func.func @scatter(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = loop.scatter set (i0 in 3) into %x[i0 + 2] unique {
    %1 = arith.constant 1.0 : f32
    loop.yield %1
  } : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}

// -----

// What never runs, and what a mask may leave out, is not certain: this part verifies up to its last function.

func.func @empty(%x: !aten.tensor<0xf32>, %y: !aten.tensor<4xf32>) -> (!aten.tensor<0xf32>, !aten.tensor<6xf32>) {
  %0 = loop.generate (i0 in 0) {
    %1 = loop.load %x[0]
    loop.yield %1
  } : !aten.tensor<0xf32>
  %2 = loop.generate (i0 in 6) {
    %z = arith.constant 0.0 : f32
    %i = loop.index i0
    %n = loop.index 4
    %c = arith.cmpi slt, %i, %n : i64
    %3 = loop.load %y[i0] if %c else %z
    loop.yield %3
  } : !aten.tensor<6xf32>
  func.return %0, %2 : !aten.tensor<0xf32>, !aten.tensor<6xf32>
}
// CHECK-NOT: 'loop.load' op index
// CHECK: 'host.launch' op argument 0 is !aten.tensor<64xi8>, @k takes elements of f64
kernel.func @k(%x: !kernel.buffer<f64, 64>) {
  kernel.yield
}
host.func @launch(%x: !aten.tensor<64xi8>) {
  host.launch @k(%x)
  host.return
}

// -----

// CHECK: 'host.launch' op argument 0 is !aten.tensor<4xf64> with 4 elements, @k uses 64 of them
kernel.func @k(%x: !kernel.buffer<f64, s0>) symbols (s0) {
  kernel.yield
}
host.func @short(%x: !aten.tensor<4xf64>) {
  host.launch @k(%x) [64]
  host.return
}

// -----

// CHECK: 'host.launch' op gives 2 buffers and 0 symbols, @k takes 1 and 0
kernel.func @k(%x: !kernel.buffer<f64, 4>) {
  kernel.yield
}
host.func @count(%x: !aten.tensor<4xf64>) {
  host.launch @k(%x, %x)
  host.return
}

// -----

// CHECK: 'host.launch' op writes a tensor of the CPU, and reads or writes others on cuda:0
kernel.func @k(%x: !kernel.buffer<f64, 1>, %y: !kernel.buffer<f64, 1>) {
  %1 = kernel.load %x[0]
  kernel.store %1, %y[0]
  kernel.yield
}
host.func @device(%x: !aten.tensor<f64, device = "cuda:0">, %y: !aten.tensor<f64>) {
  host.launch @k(%x, %y)
  host.return
}

// -----

// CHECK: 'host.launch' op operand 0 (%x) is used after its end of life by host.free
kernel.func @k(%x: !kernel.buffer<f64, 4>) {
  kernel.yield
}
host.func @freed(%x: !aten.tensor<4xf64>) {
  host.free %x
  host.launch @k(%x)
  host.return
}

// -----

// CHECK: 'kernel.assert' op reports error 2, and its kernel has 1
kernel.func @k(%x: !kernel.buffer<f64, 4>) errors ["IndexError: no"] {
  %1 = arith.constant false
  kernel.assert %1, 2
  kernel.yield
}

// -----

// CHECK: 'host.launch' op launches @k on cuda:0, and it is scheduled for cpp
kernel.func @k(%x: !kernel.buffer<f32, 4>) target "cpp" {
  %v = arith.constant 1.0 : f32
  kernel.store %v, %x[0]
  kernel.yield
}
host.func @f() -> (!aten.tensor<4xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @k(%a)
  host.return %a
}

// -----

// CHECK: 'host.launch' op launches @k on cpu, and it is scheduled for cuda:90
kernel.func @k(%x: !kernel.buffer<f32, 4>) target "cuda:90" {
  %v = arith.constant 1.0 : f32
  kernel.store %v, %x[0]
  kernel.yield
}
host.func @f() -> (!aten.tensor<4xf32>) {
  %a = host.empty : !aten.tensor<4xf32>
  host.launch @k(%a)
  host.return %a
}
