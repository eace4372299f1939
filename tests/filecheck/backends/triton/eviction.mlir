// RUN: inductile-opt %s --split-input-file -p kernel-hint-cache -t triton | filecheck %s

// A row of 20,000 elements is read three times: it is kept in the cache until the last loop, whose results must not
// take its place. The weights are read by one loop only.

kernel.func @norm(%x: !kernel.buffer<f32, 160000>, %w: !kernel.buffer<f32, 20000>, %y: !kernel.buffer<f32, 160000>) target "cuda:90" {
  kernel.for i0 in 0 to 8 map grid {
    %m = kernel.reduce sum r0 in 0 to 20000 map vector tile 4096 {
      %a = kernel.load %x[20000*i0 + r0]
      kernel.yield %a
    }
    %s = kernel.reduce sum r1 in 0 to 20000 map vector tile 4096 {
      %b = kernel.load %x[20000*i0 + r1]
      %d = arith.subf %b, %m : f32
      %e = arith.mulf %d, %d : f32
      kernel.yield %e
    }
    kernel.for i1 in 0 to 20000 map vector tile 4096 {
      %c = kernel.load %x[20000*i0 + i1]
      %g = kernel.load %w[i1]
      %f = arith.mulf %c, %s : f32
      %h = arith.mulf %f, %g : f32
      kernel.store %h, %y[20000*i0 + i1]
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
// CHECK-NEXT: def norm(x, w, y, BLOCK_R0: tl.constexpr):
// CHECK-NEXT:     i0 = tl.program_id(0)
// CHECK-NEXT:     m_acc = tl.full([BLOCK_R0], 0.0, tl.float32)
// CHECK-NEXT:     for r0_start in range(0, 20000, BLOCK_R0):
// CHECK-NEXT:         r0 = r0_start + tl.arange(0, BLOCK_R0)
// CHECK-NEXT:         r0_mask = r0 < 20000
// CHECK-NEXT:         a = tl.load(x + (20000 * i0 + r0), mask=r0_mask, eviction_policy="evict_last")
// CHECK-NEXT:         a_inside = tl.where(r0_mask, a, 0.0)
// CHECK-NEXT:         m_acc = m_acc + a_inside
// CHECK-NEXT:     m = tl.sum(m_acc, 0)
// CHECK-NEXT:     s_acc = tl.full([BLOCK_R0], 0.0, tl.float32)
// CHECK-NEXT:     for r1_start in range(0, 20000, BLOCK_R0):
// CHECK-NEXT:         r1 = r1_start + tl.arange(0, BLOCK_R0)
// CHECK-NEXT:         r1_mask = r1 < 20000
// CHECK-NEXT:         b = tl.load(x + (20000 * i0 + r1), mask=r1_mask, eviction_policy="evict_last")
// CHECK-NEXT:         d = b - m
// CHECK-NEXT:         e = d * d
// CHECK-NEXT:         e_inside = tl.where(r1_mask, e, 0.0)
// CHECK-NEXT:         s_acc = s_acc + e_inside
// CHECK-NEXT:     s = tl.sum(s_acc, 0)
// CHECK-NEXT:     for i1_start in range(0, 20000, BLOCK_R0):
// CHECK-NEXT:         i1 = i1_start + tl.arange(0, BLOCK_R0)
// CHECK-NEXT:         i1_mask = i1 < 20000
// CHECK-NEXT:         c = tl.load(x + (20000 * i0 + i1), mask=i1_mask, eviction_policy="evict_first")
// CHECK-NEXT:         g = tl.load(w + i1, mask=i1_mask)
// CHECK-NEXT:         f = c * s
// CHECK-NEXT:         h = f * g
// CHECK-NEXT:         tl.store(y + (20000 * i0 + i1), h, mask=i1_mask, eviction_policy="evict_first")

// -----

// Each program reads a part of %x of its own, once: that need not stay. All programs share %w, and what two loads read,
// here of %o, may meet in the cache.

kernel.func @dots(%x: !kernel.buffer<f32, 16000000>, %w: !kernel.buffer<f32, 20000>, %o: !kernel.buffer<f32, 16000008>, %y: !kernel.buffer<f32, 800>) target "cuda:90" {
  kernel.for i0 in 0 to 800 map grid {
    %s = kernel.reduce sum r0 in 0 to 20000 map vector tile 4096 {
      %a = kernel.load %x[20000*i0 + r0]
      %b = kernel.load %w[r0]
      %c = kernel.load %o[20000*i0 + r0]
      %d = kernel.load %o[20000*i0 + r0 + 8]
      %e = arith.mulf %a, %b : f32
      %f = arith.mulf %c, %d : f32
      %g = arith.addf %e, %f : f32
      kernel.yield %g
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-BLESS
// CHECK: import triton
// CHECK-NEXT: import triton.language as tl
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid 800, num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def dots(x, w, o, y, BLOCK_R0: tl.constexpr):
// CHECK-NEXT:     i0 = tl.program_id(0)
// CHECK-NEXT:     s_acc = tl.full([BLOCK_R0], 0.0, tl.float32)
// CHECK-NEXT:     for r0_start in range(0, 20000, BLOCK_R0):
// CHECK-NEXT:         r0 = r0_start + tl.arange(0, BLOCK_R0)
// CHECK-NEXT:         r0_mask = r0 < 20000
// CHECK-NEXT:         a = tl.load(x + (20000 * i0 + r0), mask=r0_mask, eviction_policy="evict_first")
// CHECK-NEXT:         b = tl.load(w + r0, mask=r0_mask)
// CHECK-NEXT:         c = tl.load(o + (20000 * i0 + r0), mask=r0_mask)
// CHECK-NEXT:         d = tl.load(o + (20000 * i0 + r0 + 8), mask=r0_mask)
// CHECK-NEXT:         e = a * b
// CHECK-NEXT:         f = c * d
// CHECK-NEXT:         g = e + f
// CHECK-NEXT:         g_inside = tl.where(r0_mask, g, 0.0)
// CHECK-NEXT:         s_acc = s_acc + g_inside
// CHECK-NEXT:     s = tl.sum(s_acc, 0)
// CHECK-NEXT:     tl.store(y + i0, s)

// -----

// Rows in registers of which a program keeps numbers alone are not needed again, whatever becomes of these; what an
// elementwise kernel reads is kept from results that nobody waits for.

kernel.func @products(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>, %z: !kernel.buffer<f32, 8192>) target "cuda:90" num_warps 16 streams {
  kernel.for i0 in 0 to 8192 map grid {
    %s = kernel.reduce sum r0 in 0 to 4096 map vector tile 4096 {
      %v = kernel.load %x[4096*i0 + r0]
      %w = kernel.load %y[4096*i0 + r0]
      %a = scalar.widen %v : bf16 to f32
      %b = scalar.widen %w : bf16 to f32
      %c = arith.mulf %a, %b : f32
      kernel.yield %c
    }
    kernel.store %s, %z[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @copy(%x: !kernel.buffer<bf16, 33554432>, %y: !kernel.buffer<bf16, 33554432>) target "cuda:90" num_warps 4 streams {
  kernel.for i0 in 0 to 33554432 map grid tile 1024 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK-LABEL: def products(
// CHECK: tl.load(x + (4096 * i0 + r0), eviction_policy="evict_first")
// CHECK: tl.load(y + (4096 * i0 + r0), eviction_policy="evict_first")
// CHECK-LABEL: def copy(
// CHECK: tl.load(x + i0, eviction_policy="evict_last")
