// RUN: inductile-opt %s -p kernel-hint-cache -t triton | filecheck %s

// Two steps of a loop over tiles are written out at a time, and four of a serial one.

kernel.func @rows(%x: !kernel.buffer<bf16, 8000>, %y: !kernel.buffer<f32, 8>, %z: !kernel.buffer<bf16, 8000>) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 8 map grid {
    %s = kernel.reduce sum r0 in 0 to 1000 map vector tile 128 unroll 2 {
      %v = kernel.load %x[1000*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    kernel.store %s, %y[i0]
    kernel.for i1 in 0 to 8 map serial unroll 4 {
      kernel.for i2 in 0 to 125 map vector tile 128 {
        %v = kernel.load %x[1000*i0 + 125*i1 + i2]
        kernel.store %v, %z[1000*i0 + 125*i1 + i2]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
// CHECK-BLESS
// CHECK: import triton
// CHECK-NEXT: import triton.language as tl
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid 8, num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def rows(x, y, z, BLOCK_R0: tl.constexpr, BLOCK_I2: tl.constexpr):
// CHECK-NEXT:     i0 = tl.program_id(0)
// CHECK-NEXT:     s_acc = tl.full([BLOCK_R0], 0.0, tl.float32)
// CHECK-NEXT:     for r0_start in tl.range(0, 1000, BLOCK_R0, loop_unroll_factor=2):
// CHECK-NEXT:         r0 = r0_start + tl.arange(0, BLOCK_R0)
// CHECK-NEXT:         r0_mask = r0 < 1000
// CHECK-NEXT:         w = tl.load(x + (1000 * i0 + r0), mask=r0_mask, eviction_policy="evict_last").to(tl.float32)
// CHECK-NEXT:         w_inside = tl.where(r0_mask, w, 0.0)
// CHECK-NEXT:         s_acc = s_acc + w_inside
// CHECK-NEXT:     s = tl.sum(s_acc, 0)
// CHECK-NEXT:     tl.store(y + i0, s)
// CHECK-NEXT:     for i1 in tl.range(0, 8, loop_unroll_factor=4):
// CHECK-NEXT:         i2 = tl.arange(0, BLOCK_I2)
// CHECK-NEXT:         i2_mask = i2 < 125
// CHECK-NEXT:         v = tl.load(x + (1000 * i0 + 125 * i1 + i2), mask=i2_mask, eviction_policy="evict_first")
// CHECK-NEXT:         tl.store(z + (1000 * i0 + 125 * i1 + i2), v, mask=i2_mask, eviction_policy="evict_first")
