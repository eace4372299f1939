// Special functions in double precision, from published formulas: A&S is Abramowitz and Stegun, "Handbook of
// Mathematical Functions"; DLMF is dlmf.nist.gov. Kernels in float round the result. Sections as in prelude.h.

//@ special_base: libm_exp, libm_log
static const double pi = 3.14159265358979323846;
static const double infinity = __builtin_inf();
static const double not_a_number = __builtin_nan("");

//@ erfcx: special_base, libm_erfc
// exp(x*x) * erfc(x). From 25 on its asymptotic series, DLMF 7.12.1.
static inline double erfcx(double x) {
  if (x < 25) return exp(x * x) * erfc(x);
  const double t = 1 / (2 * x * x);
  return (1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t)))) / (x * 1.77245385090551602730);
}

//@ erfinv: special_base, libm_erf, libm_erfc
// Winitzki's approximation ("A handy approximation for the error function and its inverse", 2008) of the x >= 0 with
// 1 - erf(x)^2 == r, given log(r).
static inline double erfinv_start(double log_r) {
  const double a = 2 / (pi * 0.147) + log_r / 2;
  return __builtin_sqrt(__builtin_sqrt(a * a - log_r / 0.147) - a);
}
// One step of Halley's method for f(x) == 0 with f' == slope and f'' == -2*x*slope.
static inline double halley_step(double x, double f, double slope) {
  const double newton = f / slope;
  return x - newton / (1 + x * newton);
}
static inline double erfc_slope(double x) { return -1.12837916709551257390 * exp(-x * x); }
// x with erfc(x) == q for 0 < q <= 1.
static inline double erfc_inverse(double q) {
  double x = erfinv_start(log(q * (2 - q)));
  for (int k = 0; k < 3; ++k) x = halley_step(x, erfc(x) - q, erfc_slope(x));
  return x;
}
static inline double erfinv(double y) {
  const double magnitude = __builtin_fabs(y);
  if (!(magnitude <= 1)) return not_a_number;
  if (magnitude == 1) return y * infinity;
  if (magnitude == 0) return y;
  double x;
  if (magnitude < 0.5) {
    // y*sqrt(pi)/2 is the first term of the series
    x = magnitude < 1e-6 ? magnitude * 0.88622692545275801365 : erfinv_start(log((1 - magnitude) * (1 + magnitude)));
    for (int k = 0; k < 3; ++k) x = halley_step(x, erf(x) - magnitude, -erfc_slope(x));
  } else {
    x = erfc_inverse(1 - magnitude);
  }
  return __builtin_copysign(x, y);
}

//@ ndtri: erfinv
// Quantile of the standard normal distribution.
static inline double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return not_a_number;
  if (p == 0 || p == 1) return p == 0 ? -infinity : infinity;
  const double root2 = 1.41421356237309504880;
  if (p > 0.25 && p < 0.75) return root2 * erfinv(2 * p - 1);
  return p < 0.5 ? -root2 * erfc_inverse(2 * p) : root2 * erfc_inverse(2 * (1 - p));
}

//@ log_ndtr: erfcx, libm_log1p
// Log of the standard normal distribution function.
static inline double log_ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  return x < -1 ? log(erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}

//@ digamma: special_base, libm_tan
// Reflection (DLMF 5.5.4), recurrence up to 10 (5.5.2), then the asymptotic series (5.11.2).
static inline double digamma(double x) {
  if (x == 0) return __builtin_copysign(infinity, -x);
  double result = 0;
  if (x < 0) {
    const double fraction = x - __builtin_trunc(x);
    if (fraction == 0) return not_a_number;
    result = -pi / tan(pi * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  const double t = 1 / (x * x);
  const double series =
      t * (1.0 / 12 - t * (1.0 / 120 - t * (1.0 / 252 - t * (1.0 / 240 - t * (1.0 / 132 - t * (691.0 / 32760))))));
  return result + log(x) - 0.5 / x - series;
}

//@ bessel_i: special_base
// exp(-|x|) * I_n(x) for n = 0, 1 and x >= 0: the power series (DLMF 10.25.2), whose terms are positive, and from 30 on
// the asymptotic series (DLMF 10.40.1), which is accurate to double precision there.
static inline double bessel_i_scaled(int n, double x) {
  if (x != x) return x;
  if (x < 30) {
    const double quarter = x * x / 4;
    double term = n == 0 ? 1 : x / 2, sum = term;
    for (int k = 1; term > sum * 1e-17; ++k) sum += term *= quarter / ((double)k * (k + n));
    return sum * exp(-x);
  }
  if (x == infinity) return 0;
  double term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    term *= -(4.0 * n * n - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k * x);
    sum += term;
  }
  return sum / __builtin_sqrt(2 * pi * x);
}
static inline double bessel_i0e(double x) { return bessel_i_scaled(0, __builtin_fabs(x)); }
static inline double bessel_i1e(double x) {
  const double value = bessel_i_scaled(1, __builtin_fabs(x));
  return x < 0 ? -value : value;
}
// inf * 0 makes these NaN at infinity, as in torch.
static inline double bessel_i0(double x) { return exp(__builtin_fabs(x)) * bessel_i0e(x); }
static inline double bessel_i1(double x) { return exp(__builtin_fabs(x)) * bessel_i1e(x); }

//@ zeta: special_base, libm_pow
// Hurwitz zeta function by the Euler-Maclaurin formula, DLMF 25.11.28 with twelve terms before it.
static inline double zeta(double s, double q) {
  if (s == 1) return infinity;
  if (s < 1) return not_a_number;
  if (q <= 0) {
    if (q == __builtin_floor(q)) return infinity;
    if (s != __builtin_floor(s)) return not_a_number;
  }
  double sum = 0, a = q;
  for (int k = 0; k < 12 || a < 12; ++k, a += 1) {
    const double term = pow(a, -s);
    sum += term;
    if (a > 0 && term < sum * 1e-17) return sum;
  }
  const double power = pow(a, -s);
  sum += power * a / (s - 1) + power / 2;
  // Bernoulli numbers B_2j divided by (2j)!
  static const double coefficients[] = {
      1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0,
      1.0 / 74724249600.0, -3617.0 / 10670622842880000.0,
  };
  double factor = power * s / a;
  for (int j = 0; j < 8; ++j) {
    sum += coefficients[j] * factor;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
  }
  return sum;
}

//@ igamma: special_base, libm_lgamma, libm_log1p, libm_erfc
// Regularized incomplete gamma functions: the series DLMF 8.7.1 below a + 1, else the continued fraction DLMF 8.9.2 by
// Lentz's method; for large a the uniform expansion DLMF 8.12.3 with its first term, whose error is of order a^-3/2.
static inline double igamma_factor(double a, double x) { return exp(a * log(x) - x - lgamma(a)); }
static inline double igamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; term > sum * 1e-17; n += 1) sum += term *= x / n;
  return sum * igamma_factor(a, x);
}
static inline double igammac_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, product = d;
  for (int n = 1; n < 100000; ++n) {
    const double step = n * (a - n);
    b += 2;
    d = step * d + b;
    c = b + step / c;
    d = 1 / (__builtin_fabs(d) < 1e-300 ? 1e-300 : d);
    c = __builtin_fabs(c) < 1e-300 ? 1e-300 : c;
    product *= c * d;
    if (__builtin_fabs(c * d - 1) < 1e-16) break;
  }
  return product * igamma_factor(a, x);
}
static inline double igamma_large(double a, double x, bool upper) {
  const double d = (x - a) / a, half_square = d - log1p(d);
  const double eta = __builtin_copysign(__builtin_sqrt(2 * half_square), d);
  const double c0 = __builtin_fabs(eta) < 1e-2 ? -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta / 864))
                                               : 1 / d - 1 / eta;
  const double rest = exp(-a * half_square) / __builtin_sqrt(2 * pi * a) * c0;
  const double tail = erfc((upper ? eta : -eta) * __builtin_sqrt(a / 2)) / 2;
  return upper ? tail + rest : tail - rest;
}
// P for upper == false, Q == 1 - P for upper == true; the order of the tests decides about NaN as in torch.
static inline double igamma_either(double a, double x, bool upper) {
  if (a < 0 || x < 0) return not_a_number;
  if (a == 0) return x > 0 ? (upper ? 0 : 1) : not_a_number;
  if (x == 0) return upper ? 1 : 0;
  if (a == infinity) return x == infinity ? not_a_number : upper ? 1 : 0;
  if (x == infinity) return upper ? 0 : 1;
  if (a > 1e5) return igamma_large(a, x, upper);
  if (x < a + 1) return upper ? 1 - igamma_series(a, x) : igamma_series(a, x);
  return upper ? igammac_fraction(a, x) : 1 - igammac_fraction(a, x);
}
static inline double igamma(double a, double x) { return igamma_either(a, x, false); }
static inline double igammac(double a, double x) { return igamma_either(a, x, true); }

//@ bessel_jy: special_base, libm_j0, libm_j1, libm_y0, libm_y1
// At infinity, where libm gives the limit 0, NaN as in torch.
static inline double nan_at_infinity(double x, double value) { return __builtin_isinf(x) ? not_a_number : value; }
static inline double bessel_j0(double x) { return nan_at_infinity(x, j0(x)); }
static inline double bessel_j1(double x) { return nan_at_infinity(x, j1(x)); }
static inline double bessel_y0(double x) { return nan_at_infinity(x, y0(x)); }
static inline double bessel_y1(double x) { return nan_at_infinity(x, y1(x)); }
