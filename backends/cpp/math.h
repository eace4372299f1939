// Functions of numbers that libm lacks or has no fast variant of. Sections as in prelude.h.

//@ fma
// a*b + c in one rounding inside our own polynomials, where the machine has it; only speed depends on it.
#ifdef __FMA__
inline float fma_fast(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
inline float fma_fast(float a, float b, float c) { return a * b + c; }
#endif

//@ exp_f32: bits, fma
// exp within 1.1 units in the last place, by inline operations only, so that loops around it stay in registers. With
// x = n*log(2) + r, exp(r) = 1 + r + r*r*Q(r), where Q is a minimax fit made for this file. Adding 1.5*2^23 rounds to
// an integer, which then stands in the low bits, here with a bias. log(2) is split so that n times its first part is
// exact.
inline float exp_reduced(float x, float n) {
  float r = fma_fast(n, -0x1.63p-1f, x);
  r = fma_fast(n, 0x1.bd0106p-13f, r);
  float q = 0x1.6a23ccp-10f;
  q = fma_fast(q, r, 0x1.123a20p-7f);
  q = fma_fast(q, r, 0x1.5558f2p-5f);
  q = fma_fast(q, r, 0x1.555492p-3f);
  q = fma_fast(q, r, 0x1.fffffcp-2f);
  return fma_fast(q, r * r, r) + 1.0f;
}
// For -87 <= x <= 88, where the result is a normal number.
inline float exp_normal(float x) {
  const float magic = 0x1.8p23f + 127.0f, shifted = fma_fast(x, 0x1.715476p+0f, magic);
  return exp_reduced(x, shifted - magic) * bit_cast<float>(bit_cast<uint32_t>(shifted) << 23);
}
// Any x: the scale 2^n is applied in two factors, each a normal number; what the magic number adds to the bits is zero in
// the lowest nine of either half, which alone reach a factor. Limits are set on the bits, as an integer minimum is one
// instruction: as signed numbers those of positive floats are in order, as unsigned ones those of negative floats, in
// reverse.
inline float exp_f32(float x) {
  const int32_t bits = bit_cast<int32_t>(x), below = bits < 0x42b20000 ? bits : 0x42b20000;  // 89
  const uint32_t within = uint32_t(below) < 0xc2d00000u ? uint32_t(below) : 0xc2d00000u;     // -104
  const float limited = bit_cast<float>(within);
  const float magic = 0x1.8p23f + 254.0f, shifted = fma_fast(limited, 0x1.715476p+0f, magic);
  const uint32_t exponent = bit_cast<uint32_t>(shifted), half = exponent >> 1;
  const float scaled = exp_reduced(limited, shifted - magic) * bit_cast<float>(half << 23);
  return x != x ? x : scaled * bit_cast<float>((exponent - half) << 23);
}

//@ combine_logsumexpf: exp_f32
inline void combine_logsumexp(float& m, float& s, float m_b, float s_b) {
  const float largest = m > m_b || m != m ? m : m_b;
  // Equal maxima need no scaling; two infinities would give inf - inf.
  s = (m == largest ? s : s * exp_f32(m - largest)) + (m_b == largest ? s_b : s_b * exp_f32(m_b - largest));
  m = largest;
}

//@ combine_logsumexp: libm_exp
inline void combine_logsumexp(double& m, double& s, double m_b, double s_b) {
  const double largest = m > m_b || m != m ? m : m_b;
  s = (m == largest ? s : s * exp(m - largest)) + (m_b == largest ? s_b : s_b * exp(m_b - largest));
  m = largest;
}

//@ erf_f32: exp_f32
// erf within 1.3 units in the last place, without branches. Both polynomials are minimax fits made for this file:
// erf(x) = x + x*P(x*x) below 0.85, and erf(t) = 1 - exp(-t*Q(t)) up to 4, where it reaches 1.
inline float erf_f32(float x) {
  const float magnitude = __builtin_fabsf(x), s = x * x;
  float p = -0x1.4afec8p-11f;
  p = fma_fast(p, s, 0x1.4b0216p-8f);
  p = fma_fast(p, s, -0x1.b7214ap-6f);
  p = fma_fast(p, s, 0x1.ce23d2p-4f);
  p = fma_fast(p, s, -0x1.81271ap-2f);
  p = fma_fast(p, s, 0x1.06eba8p-3f);
  const int32_t bits = bit_cast<int32_t>(magnitude), four = 0x40800000;
  const float t = bit_cast<float>(bits < four ? bits : four);
  float q = -0x1.c46706p-13f;
  q = fma_fast(q, t, 0x1.a7409cp-9f);
  q = fma_fast(q, t, -0x1.77c4cap-6f);
  q = fma_fast(q, t, 0x1.af7024p-4f);
  q = fma_fast(q, t, 0x1.457602p-1f);
  q = fma_fast(q, t, 0x1.20e752p+0f);
  const float large = __builtin_copysignf(1.0f - exp_normal(-t * q), x);
  // A NaN fails the comparison and stays one in the polynomial.
  return magnitude >= 0.85f ? large : fma_fast(x, p, x);
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
