// RUN: inductile-opt %s --split-input-file --verify-each --target cpp -p kernel-choose-threads | filecheck %s

// As many loops as feed every core are one; a thread is given 1024 iterations at least.

kernel.func @joined(%x: !kernel.buffer<f32, 524288>, %y: !kernel.buffer<f32, 524288>) {
  kernel.for i0 in 0 to 8 map parallel {
    kernel.for i1 in 0 to 1024 map parallel {
      kernel.for i2 in 0 to 64 map vector tile 16 {
        %v = kernel.load %x[65536*i0 + 64*i1 + i2]
        kernel.store %v, %y[65536*i0 + 64*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @joined
// CHECK-SAME: target "cpp"
// CHECK-NEXT: kernel.for i3 in 0 to 8192 map parallel tile 1024 {
// CHECK-NEXT: kernel.for i2 in 0 to 64 map vector tile 16 {

// -----

// The outer loop is enough; the inner one is serial.

kernel.func @enough(%x: !kernel.buffer<f32, 4194304>, %y: !kernel.buffer<f32, 4194304>) {
  kernel.for i0 in 0 to 4096 map parallel {
    kernel.for i1 in 0 to 16 map parallel {
      kernel.for i2 in 0 to 64 map vector tile 16 {
        %v = kernel.load %x[1024*i0 + 64*i1 + i2]
        kernel.store %v, %y[1024*i0 + 64*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @enough
// CHECK-NEXT: kernel.for i0 in 0 to 4096 map parallel tile 64 {
// CHECK-NEXT: kernel.for i1 in 0 to 16 {

// -----

// Blocks of an axis, of which the last may be shorter, are as much work as the axis: 655360 times a load and a store.

kernel.func @blocks(%x: !kernel.buffer<f32, 655360>, %y: !kernel.buffer<f32, 655360>) {
  kernel.for i1 in 0 to 41 map parallel {
    kernel.for i0 in 16000*i1 to min(655360, 16000*i1 + 16000) map vector tile 16 {
      %v = kernel.load %x[i0]
      kernel.store %v, %y[i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @blocks
// CHECK-NEXT: kernel.for i1 in 0 to 41 map parallel tile 4 {

// -----

// Too little work for a second thread. What starts elsewhere than at 0 is not joined.

kernel.func @small(%x: !kernel.buffer<f32, 1024>, %y: !kernel.buffer<f32, 1024>) {
  kernel.for i0 in 0 to 32 map parallel {
    kernel.for i1 in 8 to 32 map parallel {
      %v = kernel.load %x[32*i0 + i1]
      kernel.store %v, %y[32*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @run_small(%x: !aten.tensor<1024xf32, device = "cuda:0">, %y: !aten.tensor<1024xf32, device = "cuda:0">) -> (!aten.tensor<1024xf32, device = "cuda:0">) {
  host.launch @small(%x, %y)
  host.return %y
}

// CHECK-LABEL: @small
// CHECK-NEXT: kernel.for i0 in 0 to 32 {
// CHECK-NEXT: kernel.for i1 in 8 to 32 {
