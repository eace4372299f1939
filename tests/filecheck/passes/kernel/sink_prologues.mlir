// RUN: inductile-opt %s --split-input-file --verify-each=numerics --target cuda:90 -p kernel-sink-prologues | filecheck %s

// A row's scale is computed again for each of its elements, which are then spread over programs.

kernel.func @scale(%x: !kernel.buffer<f32, 8192>, %s: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    %k = kernel.load %s[i0]
    %e = arith.mulf %k, %k : f32
    kernel.for i1 in 0 to 128 {
      %v = kernel.load %x[128*i0 + i1]
      %w = arith.mulf %v, %e : f32
      kernel.store %w, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<8192xf32, device = "cuda:0">, %s: !aten.tensor<64xf32, device = "cuda:0">, %y: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @scale(%x, %s, %y)
  host.return %y
}

// CHECK-LABEL: @scale
// CHECK: kernel.for i0 in 0 to 64 {
// CHECK-NEXT: kernel.for i1 in 0 to 128 {
// CHECK-NEXT: kernel.load %s[i0]
// CHECK-NEXT: arith.mulf

// -----

// A reduction in front of an elementwise loop is too much, and what the nest writes must be read where it was.

kernel.func @row(%x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    %s = kernel.reduce sum i2 in 0 to 128 {
      %v = kernel.load %x[128*i0 + i2]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 128 {
      %v = kernel.load %x[128*i0 + i1]
      %w = arith.subf %v, %s : f32
      kernel.store %w, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%x: !aten.tensor<8192xf32, device = "cuda:0">, %y: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @row(%x, %y)
  host.return %y
}

// CHECK-LABEL: @row
// CHECK: kernel.for i0 in 0 to 64 {
// CHECK-NEXT: kernel.reduce

// -----

kernel.func @written(%y: !kernel.buffer<f32, 8192>) {
  kernel.for i0 in 0 to 64 {
    %k = kernel.load %y[128*i0]
    kernel.for i1 in 0 to 128 {
      %v = kernel.load %y[128*i0 + i1]
      %w = arith.mulf %v, %k : f32
      kernel.store %w, %y[128*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run(%y: !aten.tensor<8192xf32, device = "cuda:0">) -> (!aten.tensor<8192xf32, device = "cuda:0">) {
  host.launch @written(%y)
  host.return %y
}

// CHECK-LABEL: @written
// CHECK: kernel.for i0 in 0 to 64 {
// CHECK-NEXT: kernel.load %y[128*i0]
