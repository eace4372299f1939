// RUN: inductile-opt %s -p kernel-order-programs | filecheck %s
// RUN: inductile-opt %s -p kernel-order-programs -t triton | filecheck %s --check-prefix=TRITON

// Later rows see more keys: they come first, of all heads.
kernel.func @causal(%x: !kernel.buffer<f32, 4194304>, %v: !kernel.buffer<f32, 131072>, %o: !kernel.buffer<f32, 131072>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 16 map grid {
    kernel.for i1 in 0 to 512 map grid tile 64 {
      kernel.for i2 in 0 to 16 map vector tile 16 {
        %g = kernel.reduce sum i3 in 0 to 64*(i1 floordiv 64) + 64 map matrix tile 32 {
          %p = kernel.load %x[262144*i0 + 512*i1 + i3]
          %w = kernel.load %v[8192*i0 + 16*i3 + i2]
          %r = arith.mulf %p, %w : f32
          kernel.yield %r
        }
        kernel.store %g, %o[8192*i0 + 16*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @causal
// CHECK-NEXT: kernel.for i1 in 0 to 512 map grid tile 64 descending {
// CHECK-NEXT: kernel.for i0 in 0 to 16 map grid {
// TRITON: i1 = (7 - (pid // 16)) * BLOCK_I1

// First keys are seen by most rows. What all heads read is more than the cache has room for.
kernel.func @many(%x: !kernel.buffer<f32, 68719476736>, %v: !kernel.buffer<f32, 268435456>, %o: !kernel.buffer<f32, 268435456>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 64 map grid {
    kernel.for i1 in 0 to 32768 map grid tile 64 {
      kernel.for i2 in 0 to 128 map vector tile 128 {
        %g = kernel.reduce sum i3 in 64*(i1 floordiv 64) to 32768 map matrix tile 32 {
          %p = kernel.load %x[1073741824*i0 + 32768*i1 + i3]
          %w = kernel.load %v[4194304*i0 + 128*i3 + i2]
          %r = arith.mulf %p, %w : f32
          kernel.yield %r
        }
        kernel.store %g, %o[4194304*i0 + 128*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @many
// CHECK-NEXT: kernel.for i0 in 0 to 64 map grid swizzle 2 {
// CHECK-NEXT: kernel.for i1 in 0 to 32768 map grid tile 64 {
// TRITON: i0_tile, i1_tile = tl.swizzle2d(pid // 512, pid % 512, 64, 512, 2)

// All rows see as much.
kernel.func @full(%x: !kernel.buffer<f32, 4194304>, %v: !kernel.buffer<f32, 131072>, %o: !kernel.buffer<f32, 131072>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 16 map grid {
    kernel.for i1 in 0 to 512 map grid tile 64 {
      kernel.for i2 in 0 to 16 map vector tile 16 {
        %g = kernel.reduce sum i3 in 0 to 512 map matrix tile 32 {
          %p = kernel.load %x[262144*i0 + 512*i1 + i3]
          %w = kernel.load %v[8192*i0 + 16*i3 + i2]
          %r = arith.mulf %p, %w : f32
          kernel.yield %r
        }
        kernel.store %g, %o[8192*i0 + 16*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-LABEL: kernel.func @full
// CHECK-NEXT: kernel.for i0 in 0 to 16 map grid {
// CHECK-NEXT: kernel.for i1 in 0 to 512 map grid tile 64 {
