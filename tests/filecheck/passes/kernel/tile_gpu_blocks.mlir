// RUN: inductile-opt %s --target cuda:90 --pipeline schedule | filecheck %s
// RUN: inductile-opt %s --target cuda:90 --pipeline 'schedule{elements=2048}' | filecheck %s --check-prefix=OTHER
// RUN: inductile-opt %s --target cuda:90 --pipeline 'schedule{warps=1}' | filecheck %s --check-prefix=ONE
// RUN: inductile-opt %s --target cuda:90 --pipeline 'schedule{step=4096 unroll=2}' | filecheck %s --check-prefix=UNROLLED
// RUN: not inductile-opt %s --target cuda:90 --pipeline 'schedule{step=3000}' 2>&1 | filecheck %s --check-prefix=POWERS

// The numbers that schedules are made of are options.

kernel.func @two(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>) {
  kernel.for i0 in 0 to 33554432 {
    %a = kernel.load %x[i0]
    kernel.store %a, %y[i0]
    kernel.yield
  }
  kernel.yield
}

kernel.func @sums(%x: !kernel.buffer<bf16, 268435456>, %y: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 64 {
    %s = kernel.reduce sum r0 in 0 to 32768 {
      %v = kernel.load %x[32768*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK: num_warps 4
// CHECK: map grid tile 1024
// OTHER: num_warps 8
// OTHER: map grid tile 2048
// ONE: num_warps 1
// ONE: map grid tile 1024
// ONE: num_warps 1
// UNROLLED: kernel.reduce sum r0 in 0 to 32768 map vector tile 4096 unroll 2 {
// POWERS: error: step is 3000
