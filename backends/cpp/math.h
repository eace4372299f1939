// Functions of numbers that libm lacks or has no fast variant of. Sections as in prelude.h.

//@ combine_logsumexpf: exp_f32
inline void combine_logsumexp(float& m, float& s, float m_b, float s_b) {
  const float largest = m > m_b || m != m ? m : m_b;
  // Equal maxima need no scaling; two infinities would give inf - inf.
  s = (m == largest ? s : s * exp_f32(m - largest)) + (m_b == largest ? s_b : s_b * exp_f32(m_b - largest));
  m = largest;
}

//@ combine_logsumexp_wide: exp_f32
// Sums of a scan are kept in double: in float, the errors of its steps would pile up.
inline void combine_logsumexp(float& m, double& s, float m_b, float s_b) {
  const float largest = m > m_b || m != m ? m : m_b;
  s = (m == largest ? s : s * exp_f32(m - largest)) + (m_b == largest ? s_b : s_b * exp_f32(m_b - largest));
  m = largest;
}

//@ combine_logsumexp: libm_exp
inline void combine_logsumexp(double& m, double& s, double m_b, double s_b) {
  const double largest = m > m_b || m != m ? m : m_b;
  s = (m == largest ? s : s * exp(m - largest)) + (m_b == largest ? s_b : s_b * exp(m_b - largest));
  m = largest;
}

//@ combine_softmax_sumf: exp_f32
inline void combine_softmax_sum(float& m, float& s, float& t, float m_b, float s_b, float t_b) {
  const float largest = m > m_b || m != m ? m : m_b;
  // What is -inf weighs nothing, also where the difference is NaN.
  const float scale = m == -__builtin_inff() ? 0.0f : exp_f32(m - largest);
  const float scale_b = m_b == -__builtin_inff() ? 0.0f : exp_f32(m_b - largest);
  s = s * scale + s_b * scale_b;
  t = t * scale + t_b * scale_b;
  m = largest;
}

//@ combine_softmax_sum: libm_exp
inline void combine_softmax_sum(double& m, double& s, double& t, double m_b, double s_b, double t_b) {
  const double largest = m > m_b || m != m ? m : m_b;
  const double scale = m == -__builtin_inf() ? 0.0 : exp(m - largest);
  const double scale_b = m_b == -__builtin_inf() ? 0.0 : exp(m_b - largest);
  s = s * scale + s_b * scale_b;
  t = t * scale + t_b * scale_b;
  m = largest;
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

