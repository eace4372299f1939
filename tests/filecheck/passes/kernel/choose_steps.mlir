// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-choose-steps | filecheck %s
// RUN: inductile-opt %s --split-input-file -p kernel-choose-steps{step=4096} | filecheck %s --check-prefix=OPTION

// Small programs do not run all at once: they take short steps, with 16 elements for a thread.

kernel.func @many(%x: !kernel.buffer<f32, 268435456>, %y: !kernel.buffer<f32, 8192>) target "cuda:90" per_thread 32 {
  kernel.for i0 in 0 to 8192 map grid {
    %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 8192 {
      %v = kernel.load %x[32768*i0 + i1]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @many
// CHECK-SAME: per_thread 16 {
// CHECK: map vector tile 2048 {

// -----

// Two loops read the row: they take equal steps.

kernel.func @twice(%x: !kernel.buffer<f32, 32768>, %y: !kernel.buffer<f32, 32768>) target "cuda:90" per_thread 32 {
  kernel.for i0 in 0 to 1 map grid {
    %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 4096 {
      %v = kernel.load %x[32768*i0 + i1]
      kernel.yield %v
    }
    kernel.for i2 in 0 to 32768 map vector tile 8192 {
      %v = kernel.load %x[32768*i0 + i2]
      %d = arith.subf %v, %s : f32
      kernel.store %d, %y[32768*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @twice
// CHECK-SAME: per_thread 32 {
// CHECK: kernel.reduce sum i1 in 0 to 32768 map vector tile 4096 {
// CHECK: kernel.for i2 in 0 to 32768 map vector tile 4096 {
// OPTION-LABEL: @twice
// OPTION: kernel.for i2 in 0 to 32768 map vector tile 8192 {
