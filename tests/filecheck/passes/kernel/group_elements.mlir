// RUN: inductile-opt %s --split-input-file --verify-each -p kernel-group-elements | inductile-opt - --split-input-file | filecheck %s

// A row of several tiles: a thread loads four elements of float32, or eight of bfloat16, at once.

kernel.func @rows(%x: !kernel.buffer<f32, 5600>, %z: !kernel.buffer<bf16, 5600>, %y: !kernel.buffer<f32, 16>)
    target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 8 map grid {
    %one = arith.constant 1.0 : f32
    %h, %t = kernel.reduce logsumexp r0 in 0 to 700 map vector tile 256 {
      %v = kernel.load %x[700*i0 + r0]
      kernel.yield %v, %one
    }
    %g, %u = kernel.reduce logsumexp r1 in 0 to 700 map vector tile 256 {
      %v = kernel.load %z[700*i0 + r1]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w, %one
    }
    %a = arith.addf %h, %g : f32
    %b = arith.addf %t, %u : f32
    kernel.store %a, %y[2*i0]
    kernel.store %b, %y[2*i0 + 1]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @rows
// CHECK: kernel.reduce logsumexp r0 in 0 to 700 map vector tile 256 group 4 {
// CHECK: kernel.reduce logsumexp r1 in 0 to 700 map vector tile 256 group 8 {

// -----

// One tile, sums that are no single elements, a tile with few lanes left: nothing to gain.

kernel.func @others(%x: !kernel.buffer<f32, 5600>, %y: !kernel.buffer<f32, 16>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 8 map grid {
    %one = arith.constant 1.0 : f32
    %a, %b = kernel.reduce logsumexp r0 in 0 to 700 map vector tile 1024 {
      %v = kernel.load %x[700*i0 + r0]
      kernel.yield %v, %one
    }
    %c, %d = kernel.reduce logsumexp r1 in 0 to 700 map vector tile 256 {
      %v = kernel.load %x[700*i0 + r1]
      kernel.yield %v, %v
    }
    %e, %f = kernel.reduce logsumexp r2 in 0 to 700 map vector tile 64 {
      %v = kernel.load %x[700*i0 + r2]
      kernel.yield %v, %one
    }
    %g = arith.addf %a, %c : f32
    %h = arith.addf %g, %e : f32
    kernel.store %h, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: @others
// CHECK: kernel.reduce logsumexp r0 in 0 to 700 map vector tile 1024 {
// CHECK: kernel.reduce logsumexp r1 in 0 to 700 map vector tile 256 {
// CHECK: kernel.reduce logsumexp r2 in 0 to 700 map vector tile 64 {
