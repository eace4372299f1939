// Functions of numbers that libm lacks, in C11. Sections as in prelude.h.

//@ combine_logsumexp_of
// Equal maxima need no scaling; two infinities would give inf - inf.
#define COMBINE_LOGSUMEXP(NAME, T, S, EXP) \
  static inline void combine_logsumexp_##NAME(T* m, S* s, T m_b, T s_b) { \
    const T largest = *m > m_b || *m != *m ? *m : m_b; \
    *s = (*m == largest ? *s : *s * EXP(*m - largest)) + (m_b == largest ? s_b : s_b * EXP(m_b - largest)); \
    *m = largest; \
  }

//@ combine_logsumexpf: combine_logsumexp_of, exp_f32
COMBINE_LOGSUMEXP(float, float, float, exp_f32)

//@ combine_logsumexp_wide: combine_logsumexp_of, exp_f32
// Sums of a scan are kept in double: in float, the errors of its steps would pile up.
COMBINE_LOGSUMEXP(wide, float, double, exp_f32)

//@ combine_logsumexp: combine_logsumexp_of, libm_exp
COMBINE_LOGSUMEXP(double, double, double, exp)

//@ combine_softmax_sum_of
// What is -inf weighs nothing, also where the difference is NaN.
#define COMBINE_SOFTMAX_SUM(T, EXP) \
  static inline void combine_softmax_sum_##T(T* m, T* s, T* t, T m_b, T s_b, T t_b) { \
    const T largest = *m > m_b || *m != *m ? *m : m_b; \
    const T scale = *m == -__builtin_inf() ? 0 : EXP(*m - largest), scale_b = m_b == -__builtin_inf() ? 0 : EXP(m_b - largest); \
    *s = *s * scale + s_b * scale_b; \
    *t = *t * scale + t_b * scale_b; \
    *m = largest; \
  }

//@ combine_softmax_sumf: combine_softmax_sum_of, exp_f32
COMBINE_SOFTMAX_SUM(float, exp_f32)

//@ combine_softmax_sum: combine_softmax_sum_of, libm_exp
COMBINE_SOFTMAX_SUM(double, exp)

//@ round_away
// Rounds halfway cases away from zero: adding the largest number below 1/2 cannot reach the next integer by rounding.
static inline float round_away_float(float x) {
  return __builtin_truncf(x + __builtin_copysignf(0x1.fffffep-2f, x));
}
static inline double round_away_double(double x) {
  return __builtin_trunc(x + __builtin_copysign(0x1.fffffffffffffp-2, x));
}

//@ bit_counts: integers
#define BIT_COUNTS(T, U, W) \
  static inline T leading_zeros_##T(T x) { \
    return (T)((U)x == 0 ? 8 * (int)sizeof(T) : __builtin_clzll((U)x) - (64 - 8 * (int)sizeof(T))); \
  } \
  static inline T trailing_zeros_##T(T x) { return (T)((U)x == 0 ? 8 * (int)sizeof(T) : __builtin_ctzll((U)x)); } \
  static inline T count_ones_##T(T x) { return (T)__builtin_popcountll((U)x); }
INTEGERS(BIT_COUNTS)

//@ pow_int: floats
// x to an integer power by squaring.
#define POW_INT(T, S) \
  static inline T pow_int_##T(T x, int64_t n) { \
    uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n; \
    T result = 1; \
    for (T square = x; rest != 0; rest >>= 1, square = square * square) { \
      if (rest & 1) result = result * square; \
    } \
    return n < 0 ? 1 / result : result; \
  }
FLOATS(POW_INT)

//@ wrap_pow: wrap
// Integer power; a negative exponent gives the reciprocal rounded towards zero.
#define WRAP_POW(T, U, W) \
  static inline T wrap_pow_##T(T x, T n) { \
    if (n < 0) return x == 1 ? 1 : x == -1 ? (T)(n % 2 == 0 ? 1 : -1) : 0; \
    T result = 1; \
    for (T square = x; n != 0; n = (T)(n >> 1), square = wrap_mul_##T(square, square)) { \
      if (n & 1) result = wrap_mul_##T(result, square); \
    } \
    return result; \
  }
INTEGERS(WRAP_POW)

//@ gcd: wrap
// Euclid's algorithm; never negative, except that the smallest integer is its own absolute value.
#define GCD(T, U, W) \
  static inline T gcd_##T(T a, T b) { \
    a = wrap_abs_##T(a); \
    b = wrap_abs_##T(b); \
    while (a != 0) { \
      const T rest = a == -1 ? 0 : (T)(b % a); \
      b = a; \
      a = rest; \
    } \
    return b; \
  }
INTEGERS(GCD)

//@ fmod: floats, libm_fmod, libm_fmodf
// Python's % and // on floats, from C's fmod, which is exact.
#define FLOOR_FLOAT(T, S) \
  static inline T rem_floor_float_##T(T x, T y) { \
    const T rest = fmod##S(x, y); \
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest; \
  } \
  static inline T div_floor_float_##T(T x, T y) { \
    if (y == 0) return x / y; \
    const T rest = fmod##S(x, y); \
    T quotient = (x - rest) / y; \
    if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1; \
    if (quotient == 0) return __builtin_signbit(x / y) ? -(T)0 : (T)0; \
    const T rounded = __builtin_floor##S(quotient); \
    return quotient - rounded > (T)0.5 ? rounded + 1 : rounded; \
  }
FLOATS(FLOOR_FLOAT)
