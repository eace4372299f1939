// RUN: inductile-opt %s -p kernel-fuse-scales | filecheck %s

// Scores of 16 bits are scaled and have a bias added at once; those of float32 are rounded where the program rounds.
kernel.func @biased(%q: !kernel.buffer<bf16, 2048>, %k: !kernel.buffer<bf16, 2048>, %f: !kernel.buffer<f32, 2048>, %bias: !kernel.buffer<f32, 16384>, %o: !kernel.buffer<f32, 2048>) target "cuda:90" num_warps 4 {
  kernel.for i1 in 0 to 128 map grid tile 64 {
    kernel.for i2 in 0 to 16 map vector tile 16 {
      %g = kernel.reduce sum i3 in 0 to 128 map matrix tile 32 {
        %p = kernel.reduce sum i4 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %q[16*i1 + i4]
          %b = kernel.load %k[16*i3 + i4]
          %aw = scalar.widen %a : bf16 to f32
          %bw = scalar.widen %b : bf16 to f32
          %c = arith.mulf %aw, %bw : f32
          kernel.yield %c
        }
        %e = kernel.reduce sum i5 in 0 to 16 map matrix tile 16 {
          %a = kernel.load %f[16*i1 + i5]
          %b = kernel.load %f[16*i3 + i5]
          %c = arith.mulf %a, %b : f32
          kernel.yield %c
        }
        %eighth = arith.constant 0.125 : f32
        %s = arith.mulf %p, %eighth : f32
        %t = kernel.load %bias[128*i1 + i3]
        %x = arith.addf %t, %s : f32
        %u = arith.mulf %e, %eighth : f32
        %y = arith.addf %u, %x : f32
        %n = scalar.narrow %y : f32 to bf16
        %w = scalar.widen %n : bf16 to f32
        %v = kernel.load %k[16*i3 + i2]
        %vw = scalar.widen %v : bf16 to f32
        %r = arith.mulf %w, %vw : f32
        kernel.yield %r
      }
      kernel.store %g, %o[16*i1 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @biased
// CHECK: %[[P:.*]] = kernel.reduce sum i4
// CHECK: %[[T:.*]] = kernel.load %bias
// CHECK: %[[X:.*]] = math.fma %[[P]], %{{.*}}, %[[T]]
// CHECK: %[[U:.*]] = arith.mulf
// CHECK: arith.addf %[[U]], %[[X]]
