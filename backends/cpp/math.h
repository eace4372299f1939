// Functions of numbers that libm lacks or has no fast variant of. Sections as in prelude.h.

//@ fma
// a*b + c in one rounding inside our own polynomials, where the machine has it; only speed depends on it.
#ifdef __FMA__
inline float fma_fast(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
inline float fma_fast(float a, float b, float c) { return a * b + c; }
#endif

//@ erf_f32: fma, libm_expf
// erf within 1.2 units in the last place, without branches. Both polynomials are minimax fits made for this file:
// erf(x) = x + x*P(x*x) below 1, and erf(t) = 1 - exp(-t*Q(t)) up to 4, where it reaches 1.
inline float erf_f32(float x) {
  const float magnitude = __builtin_fabsf(x), s = x * x;
  float p = 0x1.496a28p-14f;
  p = fma_fast(p, s, -0x1.a3f6fcp-11f);
  p = fma_fast(p, s, 0x1.5405b2p-8f);
  p = fma_fast(p, s, -0x1.b7f90cp-6f);
  p = fma_fast(p, s, 0x1.ce2cf8p-4f);
  p = fma_fast(p, s, -0x1.81273ep-2f);
  p = fma_fast(p, s, 0x1.06eba8p-3f);
  const float t = magnitude < 4.0f ? magnitude : 4.0f;
  float q = 0x1.29158ap-18f;
  q = fma_fast(q, t, -0x1.49ad3ap-15f);
  q = fma_fast(q, t, -0x1.576c5ap-14f);
  q = fma_fast(q, t, 0x1.8bdf2ep-9f);
  q = fma_fast(q, t, -0x1.75e888p-6f);
  q = fma_fast(q, t, 0x1.afbc4ap-4f);
  q = fma_fast(q, t, 0x1.456702p-1f);
  q = fma_fast(q, t, 0x1.20e9d4p+0f);
  const float large = __builtin_copysignf(1.0f - expf(-t * q), x);
  // A NaN fails the comparison with 1, hence the negated one.
  return magnitude >= 1.0f ? large : fma_fast(x, p, x);
}

//@ round_away
// Rounds halfway cases away from zero: adding the largest number below 1/2 cannot reach the next integer by rounding.
inline float round_away(float x) { return __builtin_truncf(x + __builtin_copysignf(0x1.fffffep-2f, x)); }
inline double round_away(double x) { return __builtin_trunc(x + __builtin_copysign(0x1.fffffffffffffp-2, x)); }

//@ bit_counts: unsigned
template <class T> inline T leading_zeros(T x) {
  const auto bits = typename Unsigned<T>::same(x);
  return bits == 0 ? T(8 * sizeof(T)) : T(__builtin_clzll(bits) - (64 - 8 * int(sizeof(T))));
}
template <class T> inline T trailing_zeros(T x) {
  const auto bits = typename Unsigned<T>::same(x);
  return bits == 0 ? T(8 * sizeof(T)) : T(__builtin_ctzll(bits));
}
template <class T> inline T count_ones(T x) { return T(__builtin_popcountll(typename Unsigned<T>::same(x))); }

//@ pow_int
// x to an integer power by squaring.
template <class T, class I> inline T pow_int(T x, I n) {
  uint64_t rest = n < 0 ? 0 - uint64_t(n) : uint64_t(n);
  T result = 1;
  for (T square = x; rest != 0; rest >>= 1, square = square * square) {
    if (rest & 1) result = result * square;
  }
  return n < 0 ? T(1) / result : result;
}

//@ wrap_pow: wrap
// Integer power; a negative exponent gives the reciprocal rounded towards zero.
template <class T> inline T wrap_pow(T x, T n) {
  if (n < 0) return x == 1 ? T(1) : x == -1 ? T(n % 2 == 0 ? 1 : -1) : T(0);
  T result = 1;
  for (T square = x; n != 0; n = T(n >> 1), square = wrap_mul<T>(square, square)) {
    if (n & 1) result = wrap_mul<T>(result, square);
  }
  return result;
}

//@ gcd: wrap
// Euclid's algorithm; never negative, except that the smallest integer is its own absolute value.
template <class T> inline T gcd(T a, T b) {
  a = wrap_abs<T>(a);
  b = wrap_abs<T>(b);
  while (a != 0) {
    const T rest = a == -1 ? T(0) : T(b % a);
    b = a;
    a = rest;
  }
  return b;
}

//@ fmod: libm_fmod, libm_fmodf
// Python's % and // on floats, from C's fmod, which is exact.
inline float fmod_of(float x, float y) { return fmodf(x, y); }
inline double fmod_of(double x, double y) { return fmod(x, y); }
inline float floor_of(float x) { return __builtin_floorf(x); }
inline double floor_of(double x) { return __builtin_floor(x); }
template <class T> inline T rem_floor_float(T x, T y) {
  const T rest = fmod_of(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
template <class T> inline T div_floor_float(T x, T y) {
  if (y == 0) return x / y;
  const T rest = fmod_of(x, y);
  T quotient = (x - rest) / y;
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= T(1);
  if (quotient == 0) return __builtin_signbit(x / y) ? -T(0) : T(0);
  const T rounded = floor_of(quotient);
  return quotient - rounded > T(0.5) ? rounded + T(1) : rounded;
}

//@ philox
// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). The key is the
// seed; the counter is the number of the block of four words; `offset` counts words.
inline int32_t philox(int64_t seed, int64_t offset) {
  const uint64_t block = uint64_t(offset) >> 2;
  uint32_t key0 = uint32_t(uint64_t(seed)), key1 = uint32_t(uint64_t(seed) >> 32);
  uint32_t c0 = uint32_t(block), c1 = uint32_t(block >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t(0xD2511F53u) * c0, product1 = uint64_t(0xCD9E8D57u) * c2;
    const uint32_t next0 = uint32_t(product1 >> 32) ^ c1 ^ key0, next2 = uint32_t(product0 >> 32) ^ c3 ^ key1;
    c1 = uint32_t(product1);
    c3 = uint32_t(product0);
    c0 = next0;
    c2 = next2;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const int word = int(offset & 3);
  return int32_t(word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3);
}
