// Support code of kernels in C11. Sections and their order as in cpp/prelude.h; what C++ says by templates is a macro
// here, which defines a function for each type: `max_int_int32_t`.

//@ base
#include <stdbool.h>
#include <stdint.h>
#define INLINE inline
#define NOINLINE __attribute__((noinline))

//@ libm

//@ integers
// F(type, unsigned type of that width, unsigned type at least as wide as int) for each type that kernels compute with.
#define INTEGERS(F) F(bool, bool, uint32_t) F(int8_t, uint8_t, uint32_t) F(int16_t, uint16_t, uint32_t) \
  F(int32_t, uint32_t, uint32_t) F(int64_t, uint64_t, uint64_t)

//@ floats
// F(type, suffix of its functions)
#define FLOATS(F) F(float, f) F(double, )

//@ nan_minmax: floats
// Minimum and maximum that are NaN if either argument is.
#define NAN_MINMAX(T, S) \
  static inline T max_nan_##T(T a, T b) { const T m = b > a ? b : a; return b != b ? b : m; } \
  static inline T min_nan_##T(T a, T b) { const T m = b < a ? b : a; return b != b ? b : m; }
FLOATS(NAN_MINMAX)

//@ num_minmax: floats
// Minimum and maximum that ignore a NaN; of equal arguments the first.
#define NUM_MINMAX(T, S) \
  static inline T max_num_##T(T a, T b) { return (a >= b) | (b != b) ? a : b; } \
  static inline T min_num_##T(T a, T b) { return (a <= b) | (b != b) ? a : b; }
FLOATS(NUM_MINMAX)

//@ int_minmax: integers
#define INT_MINMAX(T, U, W) \
  static inline T max_int_##T(T a, T b) { return a > b ? a : b; } \
  static inline T min_int_##T(T a, T b) { return a < b ? a : b; } \
  static inline U max_int_u##T(U a, U b) { return a > b ? a : b; } \
  static inline U min_int_u##T(U a, U b) { return a < b ? a : b; }
INTEGERS(INT_MINMAX)

//@ wrap: integers
// Two's complement arithmetic: overflow wraps.
#define WRAP(T, U, W) \
  static inline T wrap_add_##T(T a, T b) { return (T)((W)a + (W)b); } \
  static inline T wrap_sub_##T(T a, T b) { return (T)((W)a - (W)b); } \
  static inline T wrap_mul_##T(T a, T b) { return (T)((W)a * (W)b); } \
  static inline T wrap_abs_##T(T a) { return a < 0 ? wrap_sub_##T(0, a) : a; }
INTEGERS(WRAP)

//@ shift: integers
// Shifts by a count outside the width give what infinitely many single shifts would.
#define SHIFT(T, U, W) \
  static inline bool in_width_##T(T n) { return n >= 0 && n < (T)(8 * sizeof(T)); } \
  static inline T shift_left_##T(T a, T n) { return in_width_##T(n) ? (T)((W)a << n) : 0; } \
  static inline T shift_right_##T(T a, T n) { return (T)(a >> (in_width_##T(n) ? n : (T)(8 * sizeof(T) - 1))); } \
  static inline T shift_right_logical_##T(T a, T n) { return in_width_##T(n) ? (T)((U)a >> n) : 0; }
INTEGERS(SHIFT)

//@ int_division: wrap
// Integer division that cannot trap: by zero it gives 0, and the smallest integer divided by -1 wraps.
#define INT_DIVISION(T, U, W) \
  static inline T div_trunc_##T(T a, T b) { return b == 0 ? 0 : b == -1 ? wrap_sub_##T(0, a) : (T)(a / b); } \
  static inline T rem_trunc_##T(T a, T b) { return b == 0 || b == -1 ? 0 : (T)(a % b); } \
  static inline T div_unsigned_##T(T a, T b) { return b == 0 ? 0 : (T)((U)a / (U)b); } \
  static inline T rem_unsigned_##T(T a, T b) { return b == 0 ? 0 : (T)((U)a % (U)b); }
INTEGERS(INT_DIVISION)

//@ floor_division: int_division
// Python's // and % on integers. By a known divisor without branches, so that a loop that does not change them computes
// them once and is vectorised.
#define FLOOR_DIVISION(T, U, W) \
  static inline T rem_floor_##T(T a, T b) { \
    if (__builtin_constant_p(b) && b > 0) { \
      const T rest = (T)(a % b); \
      return (T)(rest + (rest < 0 ? b : 0)); \
    } \
    const T r = rem_trunc_##T(a, b); \
    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r; \
  } \
  static inline T div_floor_##T(T a, T b) { \
    if (__builtin_constant_p(b) && b > 0) return (T)(a / b - (a % b < 0)); \
    const T q = div_trunc_##T(a, b); \
    return rem_trunc_##T(a, b) != 0 && (a < 0) != (b < 0) ? (T)(q - 1) : q; \
  } \
  static inline T div_ceil_##T(T a, T b) { \
    const T q = div_trunc_##T(a, b); \
    return rem_trunc_##T(a, b) != 0 && (a < 0) == (b < 0) ? (T)(q + 1) : q; \
  }
INTEGERS(FLOOR_DIVISION)

//@ truncate
// GCC reads (float)(int32_t)x as trunc(x) where nothing traps, although that keeps -0.0 and what no integer holds. A
// zero that it cannot see keeps the two conversions apart.
#if defined(__clang__)
#define HIDDEN __attribute__((noinline, const))
#else
#define HIDDEN __attribute__((noipa, const))
#endif
HIDDEN static int32_t hidden_zero(void) { return 0; }
static inline int32_t to_int32(double x) { return (int32_t)x + hidden_zero(); }
static inline int64_t to_int64(double x) { return (int64_t)x + hidden_zero(); }
static inline uint64_t to_uint64(double x) { return (uint64_t)x + (uint64_t)hidden_zero(); }

//@ bits
#define BIT_CAST(FROM, TO) \
  static inline TO bit_cast_##FROM##_##TO(FROM from) { \
    TO to; \
    __builtin_memcpy(&to, &from, sizeof(to)); \
    return to; \
  }
BIT_CAST(float, int32_t) BIT_CAST(int32_t, float) BIT_CAST(double, int64_t) BIT_CAST(int64_t, double)
BIT_CAST(float, float) BIT_CAST(double, double) BIT_CAST(int8_t, int8_t) BIT_CAST(int16_t, int16_t)
BIT_CAST(int32_t, int32_t) BIT_CAST(int64_t, int64_t) BIT_CAST(bool, bool)

//@ heap
// Memory that is freed at the end of a block.
extern void free(void*);
static inline void free_scratch(void** memory) { free(*memory); }
#define SCRATCH __attribute__((cleanup(free_scratch)))

//@ scratch: heap
// Heap memory for a local buffer that is too large for the stack.
extern void* aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__);
static inline void* scratch(int64_t count, int64_t size) {
  void* memory = aligned_alloc(64, (__SIZE_TYPE__)((count * size + 63) / 64 * 64 + 64));
  if (memory == 0) __builtin_trap();
  return memory;
}

//@ checked
// A buffer of a kernel that is checked: an index outside is reported, and reads or writes a place of no use.
typedef struct {
  void* data;
  int64_t extent;
  int64_t* report;
  int64_t number;
} Checked;
static NOINLINE void* outside(const Checked* buffer, int64_t index) {
  static _Thread_local double nowhere;
  nowhere = 0;
  if (buffer->report[0] & 1) return &nowhere;  // the first one is told
  buffer->report[1] = buffer->number;
  buffer->report[2] = index;
  buffer->report[3] = buffer->extent;
  buffer->report[0] |= 1;
  return &nowhere;
}
static inline void* at(const Checked* buffer, int64_t index, int64_t size) {
  return (uint64_t)index < (uint64_t)buffer->extent ? (char*)buffer->data + index * size : outside(buffer, index);
}
#define AT(T, buffer, index) (*(T*)at(&buffer, index, sizeof(T)))

//@ checked_loops
// Where a loop from lo to hi ends: at once when too few steps are left in the report.
static inline bool take_steps(int64_t* report, uint64_t count) {
  if (count <= 1) return true;
  if (count < (uint64_t)1 << 62 && (report[4] -= (int64_t)count) >= 0) return true;
  report[0] |= 2;
  return false;
}
static inline int64_t loop_end(int64_t* report, int64_t lo, int64_t hi) {
  if (lo >= hi) return lo;
  const int64_t far = (int64_t)1 << 61;
  const bool near = lo > -far && hi < far;
  return take_steps(report, near ? (uint64_t)(hi - lo) : (uint64_t)1 << 63) ? hi : lo;
}

//@ checked_division: floor_division
// Python's // and % of index expressions; one by zero is reported, and gives what is not used.
static inline int64_t div_checked(int64_t* report, int64_t a, int64_t b) {
  if (b == 0) report[0] |= 8;
  return div_floor_int64_t(a, b);
}
static inline int64_t rem_checked(int64_t* report, int64_t a, int64_t b) {
  if (b == 0) report[0] |= 8;
  return rem_floor_int64_t(a, b);
}

//@ checked_scratch: checked, heap
// Heap memory of a checked local buffer; one without elements, and a report, where there is not that much.
extern void* calloc(__SIZE_TYPE__, __SIZE_TYPE__);
static inline Checked checked_scratch(int64_t count, int64_t size, int64_t* report, void** memory) {
  int64_t extent = count < 0 ? 0 : count;
  if (extent < (int64_t)1 << 32) *memory = calloc((__SIZE_TYPE__)extent + 1, (__SIZE_TYPE__)size);
  if (*memory == 0) {
    extent = 0;
    report[0] |= 4;
  }
  const Checked buffer = {*memory, extent, report, -1};
  return buffer;
}

//@ combine_arg: integers, floats
// (value, index) pairs: NaN wins, ties go to the lower index.
#define COMBINE_ARG(T, ...) \
  static inline bool arg_tie_##T(T a, int64_t i, T b, int64_t j) { \
    return ((a == b) | ((a != a) & (b != b))) & (j < i); \
  } \
  static inline void combine_argmax_##T(T* a, int64_t* i, T b, int64_t j) { \
    const bool take = (b > *a) | ((b != b) & (*a == *a)) | arg_tie_##T(*a, *i, b, j); \
    *a = take ? b : *a; \
    *i = take ? j : *i; \
  } \
  static inline void combine_argmin_##T(T* a, int64_t* i, T b, int64_t j) { \
    const bool take = (b < *a) | ((b != b) & (*a == *a)) | arg_tie_##T(*a, *i, b, j); \
    *a = take ? b : *a; \
    *i = take ? j : *i; \
  }
INTEGERS(COMBINE_ARG)
FLOATS(COMBINE_ARG)

//@ combine_welford: floats
// Chan, Golub, LeVeque: means, sums of squared deviations and counts of two sets to those of their union.
#define COMBINE_WELFORD(T, S) \
  static inline void combine_welford_##T(T* mean, T* m2, T* count, T mean_b, T m2_b, T count_b) { \
    const T total = *count + count_b, share = total == 0 ? 0 : count_b / total, delta = mean_b - *mean; \
    *mean = *mean + delta * share; \
    *m2 = *m2 + m2_b + delta * delta * *count * share; \
    *count = total; \
  }
FLOATS(COMBINE_WELFORD)
