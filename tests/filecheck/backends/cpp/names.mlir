// RUN: inductile-opt -t cpp %s | filecheck %s

// Names of the IR never become code as they are: keywords and functions of the support code are renamed. An assert is
// one bit of the status. Nested parallel loops are one; a small one starts no threads. A loop that stores bytes gets what
// it reads as arguments: a byte may lie anywhere, also in what the loop captured.

kernel.func @expf(%while: !kernel.buffer<i64, n>, %gcd: !kernel.buffer<ui8, n>) symbols (n)
    errors ["IndexError: too \"low\"", "RuntimeError: too high"] {
  kernel.for i0 in 0 to 8 map parallel {
    kernel.for i1 in 0 to n map parallel {
      %zero = arith.constant 0 : i64
      %v = kernel.load %while[8*i1 + i0]
      %ok = arith.cmpi slt, %v, %zero : i64
      kernel.assert %ok, 2
      %b = scalar.cast %v : i64 to ui8
      kernel.store %b, %gcd[(8*i1 + i0) mod n]
      kernel.yield
    }
    kernel.yield
  }
  kernel.for i2 in 0 to 100 map parallel {
    %v = kernel.load %gcd[i2]
    %w = scalar.cast %v : ui8 to i64
    kernel.store %w, %while[i2]
    kernel.yield
  }
  kernel.yield
}

// CHECK:       extern "C" NOINLINE int expf_2(int64_t* __restrict while_2, uint8_t* __restrict gcd_2, int64_t n) {
// CHECK-NEXT:    uint32_t failed = 0;  // bit k - 1: an assert with error code k
// CHECK-NEXT:    parallel_for(8*n >= 16384, 8*n, [&, &all_failed = failed](int64_t begin, int64_t end, int64_t* __restrict while_2,
// CHECK-NEXT:        uint8_t* __restrict gcd_2, int64_t n) NOINLINE {
// CHECK-NEXT:      uint32_t failed = 0;
// CHECK-NEXT:      for (int64_t iteration = begin; iteration < end; ++iteration) {
// CHECK-NEXT:        const int64_t i0 = iteration / n;
// CHECK-NEXT:        const int64_t i1 = iteration % n;
// CHECK-NEXT:        const int64_t v0 = while_2[8*i1 + i0];
// CHECK-NEXT:        failed |= (v0 < 0L) ? 0u : 2u;
// CHECK-NEXT:        gcd_2[(8*i1 + i0) % n] = (uint8_t)(int8_t)v0;
// CHECK-NEXT:      }
// CHECK-NEXT:      if (failed) __atomic_fetch_or(&all_failed, failed, __ATOMIC_RELAXED);
// CHECK-NEXT:    }, while_2, gcd_2, n);
// CHECK-NEXT:    for (int64_t i2 = 0; i2 < 100; ++i2) {
// CHECK-NEXT:      const int8_t v1 = (int8_t)gcd_2[i2];
// CHECK-NEXT:      while_2[i2] = (int64_t)(uint8_t)v1;
// CHECK-NEXT:    }
// CHECK-NEXT:    return __builtin_ffs(failed);
// CHECK-NEXT:  }
