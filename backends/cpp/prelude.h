// Support code of generated kernels. A kernel's source starts with `base` and the sections that it uses, in this
// order. A section is headed by `//@ name` or `//@ name: sections it needs`; `prelude.py` reads these lines.
// Everything here keeps IEEE semantics (NaN, infinities, signed zeros) and avoids C++ library headers, which would
// take longer to compile than the kernels.

//@ base
#include <stdint.h>
#define INLINE __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

//@ libm
// Lets the compiler call glibc's vector math library (libmvec) without -ffast-math.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define VECTOR_MATH __attribute__((simd("notinbranch"), const, nothrow))
#else
#define VECTOR_MATH __attribute__((const, nothrow))
#endif
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
#define VECTOR_MATH_2_35 VECTOR_MATH
#endif
#endif
#ifndef VECTOR_MATH_2_35
#define VECTOR_MATH_2_35 __attribute__((const, nothrow))
#endif

//@ parallel
// Calls f(begin, end, arguments...) for parts of 0 .. count: one a thread, or all at once where threads are not worth
// waking. (An `if` clause would enter a parallel region even then, which costs more than a small kernel.)
extern "C" int omp_get_num_threads();
extern "C" int omp_get_thread_num();
template <class F, class... T>
inline void parallel_for(bool threads, int64_t count, const F& f, T... arguments) {
  if (!threads) {
    f(0, count, arguments...);
    return;
  }
#pragma omp parallel
  {
    const int64_t team = omp_get_num_threads(), rank = omp_get_thread_num();
    const int64_t begin = count * rank / team, end = count * (rank + 1) / team;
    if (begin < end) f(begin, end, arguments...);
  }
}

//@ tiles
// Calls f(first, count) for tiles of N values from lo to hi; the count of a whole tile is a compile-time constant.
template <int64_t N> struct Lanes {
  constexpr operator int64_t() const { return N; }
};
template <int64_t N, class F> INLINE inline void for_whole_tiles(int64_t lo, int64_t hi, F&& f) {
  for (; lo < hi; lo += N) f(lo, Lanes<N>{});
}
template <int64_t N, class F> INLINE inline void for_tiles(int64_t lo, int64_t hi, F&& f) {
  for (; lo + N <= hi; lo += N) f(lo, Lanes<N>{});
  if (lo < hi) f(lo, hi - lo);
}

//@ lanes
// Arrays with one accumulator a lane: giving all of them a value, and combining them in a tree into the first.
template <class T, __SIZE_TYPE__ N> inline void fill(T (&array)[N], T value) {
  for (T& element : array) element = value;
}
template <int64_t N, class F> INLINE inline void fold(F&& combine) {
#pragma GCC unroll 8
  for (int64_t width = N / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) combine(lane, lane + width);
  }
}

//@ transpose
// Copies rows x columns elements and swaps the axes: out[c * out_stride + r] = in[r * in_stride + c]. Square tiles are
// turned in registers, as storing single elements takes as long as all the rest of a kernel.
template <class T>
inline void transpose_few(const T* in, int64_t in_stride, T* out, int64_t out_stride, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) out[c * out_stride + r] = in[r * in_stride + c];
  }
}
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLES
#endif
#endif
#ifdef HAS_SHUFFLES
template <int... K> struct Places {};
template <int bytes> struct Tile { using places = Places<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>; };
template <> struct Tile<1> : Tile<0> { using word = uint8_t; };
template <> struct Tile<2> : Tile<0> { using word = uint16_t; };
template <> struct Tile<4> : Tile<0> { using word = uint32_t; };
template <> struct Tile<8> { using word = uint64_t; using places = Places<0, 1, 2, 3, 4, 5, 6, 7>; };
// Swaps the elements of x whose index has bit S with those of y whose index lacks it.
template <int S, class V, int... K> INLINE inline void exchange(V& x, V& y, Places<K...>) {
  constexpr int N = sizeof...(K);
  const V low = __builtin_shufflevector(x, y, ((K & S) != 0 ? (K ^ S) + N : K)...);
  y = __builtin_shufflevector(x, y, ((K & S) != 0 ? K + N : K ^ S)...);
  x = low;
}
template <int S, int N, class V, class P> INLINE inline void exchange_rows(V (&rows)[N], P places) {
  if constexpr (S < N) {
    for (int r = 0; r < N; ++r) {
      if ((r & S) == 0) exchange<S>(rows[r], rows[r | S], places);
    }
    exchange_rows<2 * S>(rows, places);
  }
}
template <class T, int... K>
INLINE inline void transpose_tile(const T* in, int64_t in_stride, T* out, int64_t out_stride, Places<K...> places) {
  constexpr int N = sizeof...(K);
  typedef typename Tile<sizeof(T)>::word V __attribute__((vector_size(N * sizeof(T))));
  V rows[N];
  for (int r = 0; r < N; ++r) __builtin_memcpy(&rows[r], in + r * in_stride, sizeof(V));
  exchange_rows<1>(rows, places);
  for (int r = 0; r < N; ++r) __builtin_memcpy(out + r * out_stride, &rows[r], sizeof(V));
}
template <class T>
inline void transpose_copy(const T* in, int64_t in_stride, T* out, int64_t out_stride, int64_t rows, int64_t columns) {
  constexpr int64_t N = sizeof(T) == 8 ? 8 : 16;
  const int64_t whole_rows = rows - rows % N, whole_columns = columns - columns % N;
  for (int64_t r = 0; r < whole_rows; r += N) {
    const T* from = in + r * in_stride;
    for (int64_t c = 0; c < whole_columns; c += N) {
      transpose_tile(from + c, in_stride, out + c * out_stride + r, out_stride, typename Tile<sizeof(T)>::places{});
    }
    transpose_few(from + whole_columns, in_stride, out + whole_columns * out_stride + r, out_stride, N,
                  columns - whole_columns);
  }
  transpose_few(in + whole_rows * in_stride, in_stride, out + whole_rows, out_stride, rows - whole_rows, columns);
}
#else
template <class T>
inline void transpose_copy(const T* in, int64_t in_stride, T* out, int64_t out_stride, int64_t rows, int64_t columns) {
  transpose_few(in, in_stride, out, out_stride, rows, columns);
}
#endif

//@ nan_minmax
// Minimum and maximum that are NaN if either argument is, as torch.minimum and amax. Two choices, each an instruction of
// its own: where masked elements are among the arguments, gcc 12 makes branches of one choice by two comparisons.
template <class T> inline T max_nan(T a, T b) {
  const T m = b > a ? b : a;
  return b != b ? b : m;
}
template <class T> inline T min_nan(T a, T b) {
  const T m = b < a ? b : a;
  return b != b ? b : m;
}

//@ num_minmax
// Minimum and maximum that ignore a NaN, as torch.fmin and fmax; of equal arguments the first.
template <class T> inline T max_num(T a, T b) { return (a >= b) | (b != b) ? a : b; }
template <class T> inline T min_num(T a, T b) { return (a <= b) | (b != b) ? a : b; }

//@ int_minmax
template <class T> inline T max_int(T a, T b) { return a > b ? a : b; }
template <class T> inline T min_int(T a, T b) { return a < b ? a : b; }

//@ unsigned
// The unsigned type of the same width, at least as wide as int, so that arithmetic in it wraps.
template <class T> struct Unsigned;
template <> struct Unsigned<bool> { using same = bool; using wide = uint32_t; };
template <> struct Unsigned<int8_t> { using same = uint8_t; using wide = uint32_t; };
template <> struct Unsigned<int16_t> { using same = uint16_t; using wide = uint32_t; };
template <> struct Unsigned<int32_t> { using same = uint32_t; using wide = uint32_t; };
template <> struct Unsigned<int64_t> { using same = uint64_t; using wide = uint64_t; };

//@ wrap: unsigned
// Two's complement arithmetic: overflow wraps, as in torch.
template <class T> inline T wrap_add(T a, T b) { using U = typename Unsigned<T>::wide; return T(U(a) + U(b)); }
template <class T> inline T wrap_sub(T a, T b) { using U = typename Unsigned<T>::wide; return T(U(a) - U(b)); }
template <class T> inline T wrap_mul(T a, T b) { using U = typename Unsigned<T>::wide; return T(U(a) * U(b)); }
template <class T> inline T wrap_abs(T a) { return a < 0 ? wrap_sub(T(0), a) : a; }

//@ shift: unsigned
// Shifts by a count outside the width give what infinitely many single shifts would.
template <class T> inline bool in_width(T n) { return n >= 0 && n < T(8 * sizeof(T)); }
template <class T> inline T shift_left(T a, T n) {
  using U = typename Unsigned<T>::wide;
  return in_width(n) ? T(U(a) << n) : T(0);
}
template <class T> inline T shift_right(T a, T n) { return T(a >> (in_width(n) ? n : T(8 * sizeof(T) - 1))); }
template <class T> inline T shift_right_logical(T a, T n) {
  return in_width(n) ? T(typename Unsigned<T>::same(a) >> n) : T(0);
}

//@ int_division: wrap
// Integer division that cannot trap: by zero it gives 0 (an assert of the kernel reports it), and the smallest
// integer divided by -1 wraps.
template <class T> inline T div_trunc(T a, T b) { return b == 0 ? T(0) : b == -1 ? wrap_sub(T(0), a) : T(a / b); }
template <class T> inline T rem_trunc(T a, T b) { return b == 0 || b == -1 ? T(0) : T(a % b); }
template <class T> inline T div_unsigned(T a, T b) {
  using U = typename Unsigned<T>::same;
  return b == 0 ? T(0) : T(U(a) / U(b));
}
template <class T> inline T rem_unsigned(T a, T b) {
  using U = typename Unsigned<T>::same;
  return b == 0 ? T(0) : T(U(a) % U(b));
}

//@ floor_division: int_division
// Python's // and % on integers. By a known divisor without branches, so that a loop that does not change them computes
// them once and is vectorised.
template <class T> inline T rem_floor(T a, T b) {
  if (__builtin_constant_p(b) && b > 0) {
    const T rest = T(a % b);
    return T(rest + (rest < 0 ? b : T(0)));
  }
  const T r = rem_trunc(a, b);
  return r != 0 && (r < 0) != (b < 0) ? T(r + b) : r;
}
template <class T> inline T div_floor(T a, T b) {
  if (__builtin_constant_p(b) && b > 0) return T(a / b - (a % b < 0));
  const T q = div_trunc(a, b);
  return rem_trunc(a, b) != 0 && (a < 0) != (b < 0) ? T(q - 1) : q;
}
template <class T> inline T div_ceil(T a, T b) {
  const T q = div_trunc(a, b);
  return rem_trunc(a, b) != 0 && (a < 0) == (b < 0) ? T(q + 1) : q;
}

//@ truncate
// GCC reads (float)(int32_t)x as trunc(x) where nothing traps, although that keeps -0.0 and what no integer holds. A
// zero that it cannot see keeps the two conversions apart; loops ask for it once.
#if defined(__clang__)
#define HIDDEN __attribute__((noinline, const))
#else
#define HIDDEN __attribute__((noipa, const))
#endif
HIDDEN static int32_t hidden_zero() { return 0; }
template <class T> inline int32_t to_int32(T x) { return int32_t(x) + hidden_zero(); }
template <class T> inline int64_t to_int64(T x) { return int64_t(x) + hidden_zero(); }
template <class T> inline uint64_t to_uint64(T x) { return uint64_t(x) + uint64_t(hidden_zero()); }

//@ bits
template <class To, class From> inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the width");
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

//@ dot_digits: bits
// The sum over groups of scale times the sum of products of x and numbers of 4 bits less ZERO, two neighbours a byte.
// With AVX-512 a step takes 16 bytes: their halves pick numbers of bfloat16 from a table, which multiply pairs of x.
template <int ZERO> struct DigitTable {
  alignas(64) uint16_t of[32] = {};
  constexpr DigitTable() {
    for (int k = 0; k < 32; ++k) of[k] = uint16_t(__builtin_bit_cast(uint32_t, float((k & 15) - ZERO)) >> 16);
  }
};
template <class S> INLINE inline float scale_of(S s) {
  if constexpr (sizeof(S) == 2) return bit_cast<float>(uint32_t(s) << 16);
  else return s;
}
template <int64_t LANES, int ZERO, int64_t SHARED, class S>
INLINE inline float dot_digits(const uint16_t* x, int64_t x_step, const uint8_t* w, int64_t w_step, const S* scales,
    int64_t scale_step, int64_t groups) {
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__) && defined(__AVX512BW__)
  typedef float Floats __attribute__((vector_size(64)));
  typedef int64_t Words __attribute__((vector_size(64)));
  struct Bytes { uint8_t of[16]; };
  struct Line { uint16_t of[32]; };
  static constexpr DigitTable<ZERO> table{};
  Words numbers;
  __builtin_memcpy(&numbers, table.of, 64);
  const int64_t places = 0x000c000800040000;  // where each half of two bytes begins
  const Words begins = {places, places, places, places, places, places, places, places};
  Floats total = {};
  for (int64_t g = 0; g < groups; ++g) {
    Floats sum = {};
    for (int64_t k = 0; k < LANES; k += 16) {
      Words halves, picked;
      asm("vpmovzxwq %1, %0" : "=v"(halves) : "m"(*(const Bytes*)(w + g * w_step + k)));
      asm("vpmultishiftqb %2, %1, %0" : "=v"(picked) : "v"(begins), "v"(halves));
      asm("vpermw %2, %1, %0" : "=v"(picked) : "v"(picked), "v"(numbers));
      asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(picked), "m"(*(const Line*)(x + g * x_step + 2 * k)));
    }
    total += sum * scale_of(scales[g / SHARED * scale_step]);
  }
  float found = 0;
  for (int k = 0; k < 16; ++k) found += total[k];
  return found;
#else
  float total[LANES] = {};
  for (int64_t g = 0; g < groups; ++g) {
    const float scale = scale_of(scales[g / SHARED * scale_step]);
    #pragma omp simd
    for (int64_t k = 0; k < LANES; ++k) {
      const uint8_t byte = w[g * w_step + k];
      const float low = scale_of(x[g * x_step + 2 * k]), high = scale_of(x[g * x_step + 2 * k + 1]);
      total[k] += (low * float(int(byte & 15) - ZERO) + high * float(int(byte >> 4) - ZERO)) * scale;
    }
  }
  float found = 0;
  for (int64_t k = 0; k < LANES; ++k) found += total[k];
  return found;
#endif
}

//@ dot_bytes: bits
// The sum of products of n elements of bfloat16 and of integers of a byte, which are numbers of bfloat16, too.
template <class B> INLINE inline float dot_bytes(const uint16_t* x, const B* w, int64_t n) {
  float found = 0;
#if defined(__AVX512BF16__)
  typedef float Floats __attribute__((vector_size(64)));
  struct Bytes { B of[16]; };
  struct Line { uint16_t of[32]; };
  const auto floats = [&](int64_t k) INLINE {
    Floats found;
    if constexpr (B(-1) < B(0)) asm("vpmovsxbd %1, %0" : "=v"(found) : "m"(*(const Bytes*)(w + k)));
    else asm("vpmovzxbd %1, %0" : "=v"(found) : "m"(*(const Bytes*)(w + k)));
    asm("vcvtdq2ps %0, %0" : "+v"(found));
    return found;
  };
  Floats sums[2] = {};
  const auto step = [&](int64_t k, Floats& sum) INLINE {
    const Floats low = floats(k), high = floats(k + 16);
    Floats pairs;
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs) : "v"(low), "v"(high));
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(pairs), "m"(*(const Line*)(x + k)));
  };
  int64_t k = 0;
  for (; k + 64 <= n; k += 64) {
    step(k, sums[0]);
    step(k + 32, sums[1]);
  }
  for (; k < n; k += 32) step(k, sums[0]);
  sums[0] += sums[1];
  for (int lane = 0; lane < 16; ++lane) found += sums[0][lane];
#else
  float sums[32] = {};
  for (int64_t k = 0; k < n; k += 32) {
    #pragma omp simd
    for (int64_t lane = 0; lane < 32; ++lane) {
      sums[lane] += bit_cast<float>(uint32_t(x[k + lane]) << 16) * float(w[k + lane]);
    }
  }
  for (int lane = 0; lane < 32; ++lane) found += sums[lane];
#endif
  return found;
}

//@ scratch
// Heap memory for a local buffer that is too large for the stack, one per thread.
extern "C" void* aligned_alloc(__SIZE_TYPE__, __SIZE_TYPE__);
extern "C" void free(void*);
template <class T> struct Scratch {
  T* data;
  explicit Scratch(int64_t n) : data((T*)aligned_alloc(64, (n * int64_t(sizeof(T)) + 63) / 64 * 64 + 64)) {
    if (data == nullptr) __builtin_trap();
  }
  ~Scratch() { free(data); }
  Scratch(const Scratch&) = delete;
};

//@ checked
// A buffer of a kernel that is checked: an index outside is reported, and reads or writes a place of no use.
template <class T> struct Checked {
  T* data;
  int64_t extent;
  int64_t* report;
  int64_t number;
  INLINE T& operator[](int64_t index) const {
    if (uint64_t(index) < uint64_t(extent)) return data[index];
    return outside(index);
  }
  NOINLINE T& outside(int64_t index) const {
    static thread_local T nowhere{};
    __atomic_store_n(report + 1, number, __ATOMIC_RELAXED);
    __atomic_store_n(report + 2, index, __ATOMIC_RELAXED);
    __atomic_store_n(report + 3, extent, __ATOMIC_RELAXED);
    __atomic_fetch_or(report, 1, __ATOMIC_RELAXED);
    return nowhere;
  }
};

//@ checked_loops
// Where a loop from lo to hi ends, and how often a nest runs: not at all when too few steps are left in the report.
inline bool take_steps(int64_t* report, uint64_t count) {
  if (count <= 1) return true;
  if (count < uint64_t(1) << 62 && __atomic_sub_fetch(report + 4, int64_t(count), __ATOMIC_RELAXED) >= 0) return true;
  __atomic_fetch_or(report, 2, __ATOMIC_RELAXED);
  return false;
}
inline int64_t loop_end(int64_t* report, int64_t lo, int64_t hi) {
  if (lo >= hi) return lo;
  const int64_t far = int64_t(1) << 61;
  const bool near = lo > -far && hi < far;
  return take_steps(report, near ? uint64_t(hi - lo) : uint64_t(1) << 63) ? hi : lo;
}
template <__SIZE_TYPE__ N> inline int64_t loop_count(int64_t* report, const int64_t (&trips)[N]) {
  int64_t count = 1;
  for (int64_t trip : trips) {
    if (trip <= 0) return 0;
    if (__builtin_mul_overflow(count, trip, &count)) count = int64_t(1) << 62;
  }
  return take_steps(report, uint64_t(count)) ? count : 0;
}

//@ checked_division: floor_division
// Python's // and % of index expressions; one by zero is reported, and gives what is not used.
inline int64_t div_checked(int64_t* report, int64_t a, int64_t b) {
  if (b == 0) __atomic_fetch_or(report, 8, __ATOMIC_RELAXED);
  return div_floor(a, b);
}
inline int64_t rem_checked(int64_t* report, int64_t a, int64_t b) {
  if (b == 0) __atomic_fetch_or(report, 8, __ATOMIC_RELAXED);
  return rem_floor(a, b);
}

//@ checked_scratch: checked
// Heap memory of a checked local buffer; one without elements, and a report, where there is not that much.
extern "C" void* calloc(__SIZE_TYPE__, __SIZE_TYPE__);
extern "C" void free(void*);
template <class T> struct CheckedScratch {
  T* data;
  int64_t extent;
  int64_t* report;
  CheckedScratch(int64_t n, int64_t* report) : data(nullptr), extent(n < 0 ? 0 : n), report(report) {
    if (extent < int64_t(1) << 32) data = (T*)calloc(extent + 1, sizeof(T));
    if (data != nullptr) return;
    extent = 0;
    __atomic_fetch_or(report, 4, __ATOMIC_RELAXED);
  }
  ~CheckedScratch() { free(data); }
  CheckedScratch(const CheckedScratch&) = delete;
  Checked<T> buffer() const { return {data, extent, report, -1}; }
};

//@ atomic: bits
// Replaces *place by update(*place) without interference by other threads.
template <class T, class F> inline void atomic_update(T* place, F update) {
  T old;
  __atomic_load(place, &old, __ATOMIC_RELAXED);
  for (;;) {
    T next = update(old);
    if (__atomic_compare_exchange(place, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
  }
}

//@ same
// A parameter type that does not take part in template deduction.
template <class T> struct SameType {
  using type = T;
};
template <class T> using Same = typename SameType<T>::type;

//@ combine_arg: same
// (value, index) pairs: NaN wins, ties go to the lower index.
template <class T> inline bool arg_tie(T a, int64_t i, T b, int64_t j) {
  return ((a == b) | ((a != a) & (b != b))) & (j < i);
}
template <class T> inline void combine_argmax(T& a, int64_t& i, Same<T> b, int64_t j) {
  const bool take = (b > a) | ((b != b) & (a == a)) | arg_tie(a, i, b, j);
  a = take ? b : a;
  i = take ? j : i;
}
template <class T> inline void combine_argmin(T& a, int64_t& i, Same<T> b, int64_t j) {
  const bool take = (b < a) | ((b != b) & (a == a)) | arg_tie(a, i, b, j);
  a = take ? b : a;
  i = take ? j : i;
}

//@ combine_welford: same
// Chan, Golub, LeVeque: means, sums of squared deviations and counts of two sets to those of their union.
template <class T> inline void combine_welford(T& mean, T& m2, T& count, Same<T> mean_b, Same<T> m2_b, Same<T> count_b) {
  const T total = count + count_b;
  const T share = total == T(0) ? T(0) : count_b / total;
  const T delta = mean_b - mean;
  mean = mean + delta * share;
  m2 = m2 + m2_b + delta * delta * count * share;
  count = total;
}
