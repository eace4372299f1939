// RUN: inductile-opt -p kernel-assign-accumulators -t cpp %s | filecheck %s

// A vector reduction has one accumulator a lane, folded at the end; a straight vector loop is left to the compiler.
// The user's lines stand above what they became. What nothing uses is not written.

kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0) target "cpp" {
  kernel.for i0 in 0 to s0 map parallel {
    %row = kernel.local : !kernel.buffer<f32, 4096, local>
    %m = kernel.reduce max r0 in 0 to 4096 map vector {
      %v = kernel.load %x[4096*i0 + r0]
      kernel.yield %v
    } loc("folder/model.py":7:0)
    kernel.for r0 in 0 to 4096 map vector tile 16 {
      %e = kernel.load %x[4096*i0 + r0]
      %d = arith.subf %e, %m : f32
      %q = math.exp %d : f32
      kernel.store %q, %y[4096*i0 + r0]
      kernel.yield
    } loc("folder/model.py":8:0)
    kernel.yield
  }
  kernel.yield
}

// CHECK:       // softmax: model.py:7, model.py:8
// CHECK-NEXT:  extern "C" NOINLINE int softmax(const float* __restrict x, float* __restrict y, int64_t s0) {
// CHECK-NEXT:    parallel_for(4096*s0 >= 16384, s0, [&](int64_t begin, int64_t end, const float* __restrict x,
// CHECK-NEXT:        float* __restrict y) NOINLINE {
// CHECK-NEXT:    for (int64_t i0 = begin; i0 < end; ++i0) {
// CHECK-NEXT:      // model.py:7
// CHECK-NEXT:      float max[32];
// CHECK-NEXT:      fill<float>(max, -__builtin_inff());
// CHECK-NEXT:      for (int64_t r0_tile = 0; r0_tile < 4096; r0_tile += 32) {
// CHECK-NEXT:        #pragma omp simd
// CHECK-NEXT:        for (int64_t lane = 0; lane < 32; ++lane) {
// CHECK-NEXT:          const int64_t r0 = r0_tile + lane;
// CHECK-NEXT:          const float v0 = x[4096*i0 + r0];
// CHECK-NEXT:          max[lane] = max_nan(max[lane], v0);
// CHECK-NEXT:        }
// CHECK-NEXT:      }
// CHECK-NEXT:      fold<32>([&](int64_t lane, int64_t other) INLINE {
// CHECK-NEXT:        max[lane] = max_nan(max[lane], max[other]);
// CHECK-NEXT:      });
// CHECK-NEXT:      const float v1 = max[0];
// CHECK-NEXT:      // model.py:8
// CHECK-NEXT:      #pragma omp simd
// CHECK-NEXT:      for (int64_t r0 = 0; r0 < 4096; ++r0) {
// CHECK-NEXT:        const float v2 = x[4096*i0 + r0];
// CHECK-NEXT:        y[4096*i0 + r0] = exp_f32(v2 - v1);
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    }, x, y);
// CHECK-NEXT:    return 0;
// CHECK-NEXT:  }
