// RUN: inductile-opt -p kernel-assign-accumulators -t cpp %s | filecheck %s

// A tiled vector axis around loops: the body is cut at its inner loops, values that cross the cuts are arrays, and a
// ragged last tile runs the same code with fewer lanes. Long sums of floats are made in blocks.

kernel.func @columns(%x: !kernel.buffer<f32, m*n>, %y: !kernel.buffer<f32, n>) symbols (m, n) {
  kernel.for i0 in 0 to n map vector tile 64 {
    %first = kernel.load %x[i0]
    %s = kernel.reduce sum r0 in 0 to m {
      %v = kernel.load %x[n*r0 + i0]
      %w = arith.mulf %v, %first : f32
      kernel.yield %w
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}

// CHECK:       for_tiles<64>(0, n, [&](int64_t i0_tile, auto lanes) INLINE {
// CHECK-NEXT:    float v0[64];
// CHECK-NEXT:    #pragma omp simd
// CHECK-NEXT:    for (int64_t lane = 0; lane < lanes; ++lane) {
// CHECK-NEXT:      const int64_t i0 = i0_tile + lane;
// CHECK-NEXT:      v0[lane] = x[i0];
// CHECK-NEXT:    }
// CHECK-NEXT:    double sum[64];
// CHECK-NEXT:    fill<double>(sum, 0.0f);
// CHECK-NEXT:    // in blocks, so that rounding errors do not pile up
// CHECK-NEXT:    for (int64_t r0_block = 0; r0_block < m; r0_block += 32) {
// CHECK-NEXT:      float block_sum[64];
// CHECK-NEXT:      fill<float>(block_sum, 0.0f);
// CHECK-NEXT:      for (int64_t r0 = r0_block; r0 < min_int<int64_t>(r0_block + 32, m); ++r0) {
// CHECK-NEXT:        #pragma omp simd
// CHECK-NEXT:        for (int64_t lane = 0; lane < lanes; ++lane) {
// CHECK-NEXT:          const int64_t i0 = i0_tile + lane;
// CHECK-NEXT:          const float v1 = x[n*r0 + i0];
// CHECK-NEXT:          block_sum[lane] += v1 * v0[lane];
// CHECK-NEXT:        }
// CHECK-NEXT:      }
// CHECK-NEXT:      for (int64_t lane = 0; lane < 64; ++lane) {
// CHECK-NEXT:        sum[lane] += block_sum[lane];
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    #pragma omp simd
// CHECK-NEXT:    for (int64_t lane = 0; lane < lanes; ++lane) {
// CHECK-NEXT:      const int64_t i0 = i0_tile + lane;
// CHECK-NEXT:      y[i0] = (float)sum[lane];
// CHECK-NEXT:    }
// CHECK-NEXT:  });
// CHECK-NEXT:  return 0;
