// RUN: inductile-opt %s -t triton | filecheck %s

// Lanes that see equally many elements share their number: a quotient a step is taken once, not once a lane.

kernel.func @moments(%x: !kernel.buffer<bf16, 32000>, %y: !kernel.buffer<f32, 8>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 8 map grid {
    %mean, %m2, %count = kernel.reduce welford r0 in 0 to 1024 map vector tile 128 {
      %v = kernel.load %x[1024*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      kernel.yield %w, %zero, %one
    }
    %m, %n, %c = kernel.reduce welford r1 in 0 to 1000 map vector tile 128 {
      %v = kernel.load %x[1024*i0 + r1]
      %w = scalar.widen %v : bf16 to f32
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      kernel.yield %w, %zero, %one
    }
    %d = arith.addf %m2, %n : f32
    kernel.store %d, %y[i0]
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: def moments(
// CHECK: mean_acc = tl.full([BLOCK_R0], 0.0, tl.float32)
// CHECK: count_acc = tl.full([], 0.0, tl.float32)
// CHECK: mean_acc, m2_acc, count_acc = prelude.welford_step(mean_acc, m2_acc, count_acc, w, 1.0)
// And sums join what they have found, without a quotient for each pair.
// CHECK-NEXT: mean, m2, count = prelude.welford_of_equals(mean_acc, m2_acc, count_acc, 0, False)
// The last step fills some lanes only, so that the lanes count for themselves.
// CHECK: c_acc = tl.full([BLOCK_R1], 0.0, tl.float32)
// CHECK: tl.reduce((m_acc, n_acc, c_acc), 0, prelude.welford)
