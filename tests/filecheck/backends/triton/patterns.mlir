// RUN: inductile-opt %s -p kernel-hint-cache,kernel-mark-arithmetic -t triton | filecheck %s

// The five patterns: one readable function each. The same kernels run in tests/backends/triton.

kernel.func @softmax(%x: !kernel.buffer<f32, 300*s0>, %y: !kernel.buffer<f32, 300*s0>) symbols (s0) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to s0 map grid {
    %row = kernel.local tile : !kernel.buffer<f32, 300, local>
    %m = kernel.reduce max r0 in 0 to 300 map vector tile 512 {
      %v = kernel.load %x[300*i0 + r0]
      kernel.yield %v
    }
    %s = kernel.reduce sum r1 in 0 to 300 map vector tile 512 {
      %v = kernel.load %x[300*i0 + r1]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.store %e, %row[r1]
      kernel.yield %e
    }
    kernel.for r2 in 0 to 300 map vector tile 512 {
      %e = kernel.load %row[r2]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[300*i0 + r2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @softmax_looped(%x: !kernel.buffer<bf16, 300*s0>, %y: !kernel.buffer<bf16, 300*s0>) symbols (s0) target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to s0 map grid tile 4 {
    %m = kernel.reduce max r0 in 0 to 300 map vector tile 64 {
      %v = kernel.load %x[300*i0 + r0]
      %w = scalar.widen %v : bf16 to f32
      kernel.yield %w
    }
    %s = kernel.reduce sum r1 in 0 to 300 map vector tile 64 {
      %v = kernel.load %x[300*i0 + r1]
      %w = scalar.widen %v : bf16 to f32
      %d = arith.subf %w, %m : f32
      %e = math.exp %d : f32
      kernel.yield %e
    }
    kernel.for r2 in 0 to 300 map vector tile 64 {
      %v = kernel.load %x[300*i0 + r2]
      %w = scalar.widen %v : bf16 to f32
      %d = arith.subf %w, %m : f32
      %e = math.exp %d : f32
      %q = arith.divf %e, %s : f32
      %n = scalar.narrow %q : f32 to bf16
      kernel.store %n, %y[300*i0 + r2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @add_transposed(%x: !kernel.buffer<f32, 7000>, %y: !kernel.buffer<f32, 7000>, %z: !kernel.buffer<f32, 7000>) target "cuda:90" {
  kernel.for i0 in 0 to 70 map grid tile 32 {
    kernel.for i1 in 0 to 100 map grid tile 32 {
      %a = kernel.load %x[100*i0 + i1]
      %b = kernel.load %y[i0 + 70*i1]
      %c = arith.addf %a, %b : f32
      kernel.store %c, %z[100*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @column_sum(%x: !kernel.buffer<f32, 100*s0>, %y: !kernel.buffer<f32, 100>) symbols (s0) target "cuda:90" {
  kernel.for i0 in 0 to 100 map grid tile 32 {
    %s = kernel.reduce sum r0 in 0 to s0 map vector tile 16 {
      %v = kernel.load %x[i0 + 100*r0]
      %t = math.tanh %v : f32
      kernel.yield %t
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}
kernel.func @gather(%w: !kernel.buffer<bf16, 51200>, %i: !kernel.buffer<i64, s0>, %y: !kernel.buffer<f32, 64*s0>) symbols (s0) errors ["IndexError: index out of range"] target "cuda:90" {
  kernel.for i0 in 0 to s0 map grid tile 8 {
    kernel.for i1 in 0 to 64 map grid tile 32 {
      %j = kernel.load %i[i0]
      %n = kernel.index 800
      %z = kernel.index 0
      %lo = arith.cmpi sge, %j, %z : i64
      %hi = arith.cmpi slt, %j, %n : i64
      %ok = arith.andi %lo, %hi : i1
      kernel.assert %ok, 1
      %v = kernel.load %w[64*d0 + i1] (d0 = %j)
      %f = scalar.widen %v : bf16 to f32
      kernel.store %f, %y[64*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
kernel.func @layer_norm(%x: !kernel.buffer<f32, 768*s0>, %g: !kernel.buffer<f32, 768>, %y: !kernel.buffer<f32, 768*s0>) symbols (s0) target "cuda:90" {
  kernel.for i0 in 0 to s0 map grid tile 2 {
    %zero = arith.constant 0.000000e+00 : f32
    %one = arith.constant 1.000000e+00 : f32
    %eps = arith.constant 1.000000e-05 : f32
    %mean, %m2, %count = kernel.reduce welford r0 in 0 to 768 map vector tile 1024 {
      %v = kernel.load %x[768*i0 + r0]
      kernel.yield %v, %zero, %one
    }
    %var = arith.divf %m2, %count : f32
    %ve = arith.addf %var, %eps : f32
    %r = math.rsqrt %ve : f32
    kernel.for r1 in 0 to 768 map vector tile 1024 {
      %v = kernel.load %x[768*i0 + r1]
      %w = kernel.load %g[r1]
      %d = arith.subf %v, %mean : f32
      %q = arith.mulf %d, %r : f32
      %p = arith.mulf %q, %w : f32
      kernel.store %p, %y[768*i0 + r1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}

// CHECK-BLESS
// CHECK: import triton
// CHECK-NEXT: import triton.language as tl
// CHECK-NEXT: from triton.language.extra import libdevice
// CHECK-NEXT: from inductile.backends.triton import prelude
// CHECK-NEXT: from inductile.backends.triton import nvidia
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid s0, num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def softmax(x, y, s0, BLOCK_R0: tl.constexpr, INDEX: tl.constexpr):
// CHECK-NEXT:     i0 = tl.program_id(0).to(INDEX)
// CHECK-NEXT:     r0 = tl.arange(0, BLOCK_R0).to(INDEX)
// CHECK-NEXT:     r0_mask = r0 < 300
// CHECK-NEXT:     v = tl.load(x + (300 * i0 + r0), mask=r0_mask)
// CHECK-NEXT:     v_inside = tl.where(r0_mask, v, -float("inf"))
// CHECK-NEXT:     m = tl.reduce(v_inside, 0, prelude.maximum)
// CHECK-NEXT:     d = v - m
// CHECK-NEXT:     e = libdevice.exp(d)
// CHECK-NEXT:     e_inside = tl.where(r0_mask, e, 0.0)
// CHECK-NEXT:     s = tl.sum(e_inside, 0)
// CHECK-NEXT:     q = nvidia.divide_by_shared(e, s)
// CHECK-NEXT:     tl.store(y + (300 * i0 + r0), q, mask=r0_mask)
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid (s0 + 3) floordiv 4, num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def softmax_looped(x, y, s0, BLOCK_I0: tl.constexpr, BLOCK_R0: tl.constexpr, INDEX: tl.constexpr):
// CHECK-NEXT:     s0_wide = tl.cast(s0, INDEX)
// CHECK-NEXT:     i0 = tl.program_id(0).to(INDEX) * BLOCK_I0 + tl.arange(0, BLOCK_I0)[:, None]
// CHECK-NEXT:     i0_mask = i0 < s0_wide
// CHECK-NEXT:     m_acc = tl.full([BLOCK_I0, BLOCK_R0], -float("inf"), tl.float32)
// CHECK-NEXT:     for r0_start in range(0, 300, BLOCK_R0):
// CHECK-NEXT:         r0 = r0_start + tl.arange(0, BLOCK_R0).to(INDEX)[None, :]
// CHECK-NEXT:         r0_mask = r0 < 300
// CHECK-NEXT:         mask = i0_mask & r0_mask
// CHECK-NEXT:         w = tl.load(x + (300 * i0 + r0), mask=mask, eviction_policy="evict_last").to(tl.float32)
// CHECK-NEXT:         w_inside = tl.where(r0_mask, w, -float("inf"))
// CHECK-NEXT:         m_acc = prelude.maximum(m_acc, w_inside)
// CHECK-NEXT:     m = tl.reduce(m_acc, 1, prelude.maximum, keep_dims=True)
// CHECK-NEXT:     s_acc = tl.full([BLOCK_I0, BLOCK_R0], 0.0, tl.float32)
// CHECK-NEXT:     for r1_start in range(0, 300, BLOCK_R0):
// CHECK-NEXT:         r1 = r1_start + tl.arange(0, BLOCK_R0).to(INDEX)[None, :]
// CHECK-NEXT:         r1_mask = r1 < 300
// CHECK-NEXT:         mask_1 = i0_mask & r1_mask
// CHECK-NEXT:         w_1 = tl.load(x + (300 * i0 + r1), mask=mask_1, eviction_policy="evict_last").to(tl.float32)
// CHECK-NEXT:         d = w_1 - m
// CHECK-NEXT:         e = libdevice.exp(d)
// CHECK-NEXT:         e_inside = tl.where(r1_mask, e, 0.0)
// CHECK-NEXT:         s_acc = s_acc + e_inside
// CHECK-NEXT:     s = tl.sum(s_acc, 1, keep_dims=True)
// CHECK-NEXT:     for r2_start in range(0, 300, BLOCK_R0):
// CHECK-NEXT:         r2 = r2_start + tl.arange(0, BLOCK_R0).to(INDEX)[None, :]
// CHECK-NEXT:         r2_mask = r2 < 300
// CHECK-NEXT:         mask_2 = i0_mask & r2_mask
// CHECK-NEXT:         w_2 = tl.load(x + (300 * i0 + r2), mask=mask_2, eviction_policy="evict_first").to(tl.float32)
// CHECK-NEXT:         d_1 = w_2 - m
// CHECK-NEXT:         e_1 = libdevice.exp(d_1)
// CHECK-NEXT:         q = nvidia.divide_by_shared(e_1, s)
// CHECK-NEXT:         n = q.to(tl.bfloat16)
// CHECK-NEXT:         tl.store(y + (300 * i0 + r2), n, mask=mask_2, eviction_policy="evict_first")
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid 12, num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def add_transposed(x, y, z, BLOCK_I0: tl.constexpr, BLOCK_I1: tl.constexpr):
// CHECK-NEXT:     pid = tl.program_id(0)
// CHECK-NEXT:     i0 = (pid // 4) * BLOCK_I0 + tl.arange(0, BLOCK_I0)[:, None]
// CHECK-NEXT:     i0_mask = i0 < 70
// CHECK-NEXT:     i1 = (pid % 4) * BLOCK_I1 + tl.arange(0, BLOCK_I1)[None, :]
// CHECK-NEXT:     i1_mask = i1 < 100
// CHECK-NEXT:     mask = i0_mask & i1_mask
// CHECK-NEXT:     a = tl.load(x + (100 * i0 + i1), mask=mask)
// CHECK-NEXT:     b = tl.load(y + (70 * i1 + i0), mask=mask)
// CHECK-NEXT:     c = a + b
// CHECK-NEXT:     tl.store(z + (100 * i0 + i1), c, mask=mask)
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid 4, num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def column_sum(x, y, s0, BLOCK_I0: tl.constexpr, BLOCK_R0: tl.constexpr, INDEX: tl.constexpr):
// CHECK-NEXT:     s0_wide = tl.cast(s0, INDEX)
// CHECK-NEXT:     i0 = tl.program_id(0).to(INDEX) * BLOCK_I0 + tl.arange(0, BLOCK_I0)[:, None]
// CHECK-NEXT:     i0_mask = i0 < 100
// CHECK-NEXT:     s_acc = tl.full([BLOCK_I0, BLOCK_R0], 0.0, tl.float32)
// CHECK-NEXT:     for r0_start in range(0, s0_wide, BLOCK_R0):
// CHECK-NEXT:         r0 = r0_start + tl.arange(0, BLOCK_R0).to(INDEX)[None, :]
// CHECK-NEXT:         r0_mask = r0 < s0_wide
// CHECK-NEXT:         mask = i0_mask & r0_mask
// CHECK-NEXT:         v = tl.load(x + (100 * r0 + i0), mask=mask)
// CHECK-NEXT:         t = nvidia.tanh(v)
// CHECK-NEXT:         t_inside = tl.where(r0_mask, t, 0.0)
// CHECK-NEXT:         s_acc = s_acc + t_inside
// CHECK-NEXT:     s = tl.sum(s_acc, 1, keep_dims=True)
// CHECK-NEXT:     tl.store(y + i0, s, mask=i0_mask)
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid 2*((s0 + 7) floordiv 8), num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def gather(
// CHECK-NEXT:     w,
// CHECK-NEXT:     i,
// CHECK-NEXT:     y,
// CHECK-NEXT:     s0,
// CHECK-NEXT:     status,
// CHECK-NEXT:     BLOCK_I0: tl.constexpr,
// CHECK-NEXT:     BLOCK_I1: tl.constexpr,
// CHECK-NEXT:     INDEX: tl.constexpr,
// CHECK-NEXT: ):
// CHECK-NEXT:     s0_wide = tl.cast(s0, INDEX)
// CHECK-NEXT:     pid = tl.program_id(0).to(INDEX)
// CHECK-NEXT:     i0 = (pid // 2) * BLOCK_I0 + tl.arange(0, BLOCK_I0)[:, None]
// CHECK-NEXT:     i0_mask = i0 < s0_wide
// CHECK-NEXT:     i1 = (pid % 2) * BLOCK_I1 + tl.arange(0, BLOCK_I1)[None, :]
// CHECK-NEXT:     j = tl.load(i + i0, mask=i0_mask)
// CHECK-NEXT:     lo = j >= 0
// CHECK-NEXT:     hi = j < 800
// CHECK-NEXT:     ok = lo & hi
// CHECK-NEXT:     failed = ~ok
// CHECK-NEXT:     mask = i0_mask & failed
// CHECK-NEXT:     prelude.report(status, mask, 1)
// CHECK-NEXT:     mask_1 = i0_mask & ok
// CHECK-NEXT:     f = tl.load(w + (64 * j + i1), mask=mask_1).to(tl.float32)
// CHECK-NEXT:     tl.store(y + (64 * i0 + i1), f, mask=i0_mask)
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: # grid (s0 + 1) floordiv 2, num_warps 4
// CHECK-NEXT: @triton.jit
// CHECK-NEXT: def layer_norm(x, g, y, s0, BLOCK_I0: tl.constexpr, BLOCK_R0: tl.constexpr, INDEX: tl.constexpr):
// CHECK-NEXT:     s0_wide = tl.cast(s0, INDEX)
// CHECK-NEXT:     i0 = tl.program_id(0).to(INDEX) * BLOCK_I0 + tl.arange(0, BLOCK_I0)[:, None]
// CHECK-NEXT:     i0_mask = i0 < s0_wide
// CHECK-NEXT:     r0 = tl.arange(0, BLOCK_R0).to(INDEX)[None, :]
// CHECK-NEXT:     r0_mask = r0 < 768
// CHECK-NEXT:     mask = i0_mask & r0_mask
// CHECK-NEXT:     v = tl.load(x + (768 * i0 + r0), mask=mask)
// CHECK-NEXT:     count = tl.full([], 768.0, tl.float32)
// CHECK-NEXT:     v_inside = tl.where(r0_mask, v, 0.0)
// CHECK-NEXT:     mean_total = tl.sum(v_inside, 1, keep_dims=True)
// CHECK-NEXT:     mean = prelude.float_divide(mean_total, count)
// CHECK-NEXT:     deviation = v - mean
// CHECK-NEXT:     square = deviation * deviation
// CHECK-NEXT:     square_inside = tl.where(r0_mask, square, 0.0)
// CHECK-NEXT:     m2 = tl.sum(square_inside, 1, keep_dims=True)
// CHECK-NEXT:     var = tl.div_rn(m2, count)
// CHECK-NEXT:     ve = var + 1e-05
// CHECK-NEXT:     r = libdevice.rsqrt(ve)
// CHECK-NEXT:     w = tl.load(g + r0, mask=r0_mask)
// CHECK-NEXT:     q = deviation * r
// CHECK-NEXT:     p = q * w
// CHECK-NEXT:     tl.store(y + (768 * i0 + r0), p, mask=mask)
