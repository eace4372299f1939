// RUN: inductile-opt %s --split-input-file --verify-each -p host-reuse | filecheck %s

// Another shape over the same memory: what the kernel writes is a view of what it read. Not so what is returned, nor
// where the input is a part of its memory only.

kernel.func @tanh(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.tanh %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @shapes(%x: !aten.tensor<8x4xf32>, %w: !aten.tensor<4x4xf32>) -> (!aten.tensor<8x4xf32>) symbols [] {
  %a = aten.mm(%x, %w) : !aten.tensor<8x4xf32>
  %b = host.empty : !aten.tensor<2x4x4xf32>
  host.launch @tanh(%a, %b)
  %c = host.view %b offset 0 : !aten.tensor<8x4xf32>
  %d = host.empty : !aten.tensor<32xf32>
  host.launch @tanh(%c, %d)
  %e = host.view %d offset 0 : !aten.tensor<8x4xf32>
  %f = aten.mm(%e, %w) : !aten.tensor<8x4xf32>
  host.return %f
}

// CHECK-LABEL: host.func @shapes
// CHECK-NEXT:    %a = aten.mm
// CHECK-NEXT:    %b = host.view %a offset 0 : !aten.tensor<2x4x4xf32>
// CHECK-NEXT:    host.launch @tanh(%a)
// CHECK-NEXT:    %c = host.view %b offset 0
// CHECK-NEXT:    %d = host.view %c offset 0 : !aten.tensor<32xf32>
// CHECK-NEXT:    host.launch @tanh(%c)

// -----

kernel.func @tanh(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.tanh %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @returned(%x: !aten.tensor<8x4xf32>, %w: !aten.tensor<4x4xf32>) -> (!aten.tensor<2x4x4xf32>) symbols [] {
  %a = aten.mm(%x, %w) : !aten.tensor<8x4xf32>
  %b = host.empty : !aten.tensor<2x4x4xf32>
  host.launch @tanh(%a, %b)
  host.return %b
}

// CHECK-LABEL: host.func @returned
// CHECK:         host.launch @tanh(%a, %b)

// -----

kernel.func @tanh(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.tanh %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @part(%x: !aten.tensor<16x4xf32>, %w: !aten.tensor<4x4xf32>) -> (!aten.tensor<8x4xf32>) symbols [] {
  %a = aten.mm(%x, %w) : !aten.tensor<16x4xf32>
  %p = host.view %a offset 0 : !aten.tensor<8x4xf32>
  %b = host.empty : !aten.tensor<8x4xf32>
  host.launch @tanh(%p, %b)
  %f = aten.mm(%b, %w) : !aten.tensor<8x4xf32>
  host.return %f
}

// CHECK-LABEL: host.func @part
// CHECK:         host.launch @tanh(%p, %b)

// -----

// Launches of one kernel in a row: the second may write over what the first makes, but then the first may not make it a
// view, for the second returns it.

kernel.func @tanh(%x: !kernel.buffer<f32, 32>, %y: !kernel.buffer<f32, 32>) {
  kernel.for i0 in 0 to 32 {
    %v = kernel.load %x[i0]
    %w = math.tanh %v : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @chain(%x: !aten.tensor<8x4xf32>, %w: !aten.tensor<4x4xf32>) -> (!aten.tensor<2x4x4xf32>) symbols [] {
  %a = aten.mm(%x, %w) : !aten.tensor<8x4xf32>
  %b = host.empty : !aten.tensor<2x4x4xf32>
  host.launch @tanh(%a, %b)
  %c = host.empty : !aten.tensor<2x4x4xf32>
  host.launch @tanh(%b, %c)
  host.return %c
}

// CHECK-LABEL: host.func @chain
// CHECK-NOT:     host.view
// CHECK:         host.return %c
