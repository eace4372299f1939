"""Special functions that no device library has, for generated kernels: `special.name`.

All work for scalars and block tensors of float32 and float64. Loops run until the last lane is done.
"""

# pyright: reportArgumentType=false, reportAssignmentType=false, reportRedeclaration=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .prelude import float_divide


@triton.jit
def any_lane(condition):
    """Whether a condition holds in some lane."""
    return tl.max((condition + tl.zeros([1], tl.int32)).to(tl.int32), axis=None) > 0


@triton.jit
def polynomial4(x, a, b, c, d, e):
    """a x^4 + b x^3 + c x^2 + d x + e"""
    return (((a * x + b) * x + c) * x + d) * x + e


@triton.jit
def digamma(x):
    """The logarithmic derivative of the gamma function.

    Reflection for x < 0, recurrence up to 10, then log(x) - 1/(2x) - sum of B(2k) / (2k x^2k); -inf at 0 with the
    sign of the zero turned, NaN at negative integers.
    """
    reflected = x < 0.0
    whole = reflected & (tl.floor(x) == x)
    fraction = x - tl.floor(x)
    tangent = libdevice.tan(3.141592653589793 * tl.where(reflected, fraction, 0.25))
    shift = tl.where(reflected, float_divide(3.141592653589793 + x * 0.0, tangent), x * 0.0)
    y = tl.where(reflected, 1.0 - x, x)
    y = tl.where((y > 0.0) & (y < 1e30), y, 10.0 + y * 0.0)
    below = y * 0.0
    for _ in tl.static_range(10):
        small = y < 10.0
        below += tl.where(small, float_divide(1.0 + y * 0.0, y), 0.0)
        y = tl.where(small, y + 1.0, y)
    z = float_divide(1.0 + y * 0.0, y * y)
    tail = polynomial4(z, 0.08333333333333333, -0.021092796092796094, 0.007575757575757576, -0.004166666666666667,
                       0.003968253968253968)  # fmt: skip
    series = z * (0.08333333333333333 + z * (-0.008333333333333333 + z * tail))
    result = libdevice.log(y) - float_divide(0.5 + y * 0.0, y) - series - below - shift
    result = tl.where(x == float("inf"), x, tl.where(x != x, x, result))
    pole = float_divide(-1.0 + x * 0.0, x)
    return tl.where(x == 0.0, pole, tl.where(whole, float("nan"), tl.where(x == -float("inf"), float("nan"), result)))


@triton.jit
def zeta(x, q):
    """Hurwitz's zeta function, sum over k of (q + k)^-x, by Euler-Maclaurin behind the first ten terms.

    inf for x == 1 and for q a negative integer or 0; NaN for x < 1, and for other negative q unless x is whole.
    """
    infinite = (x == 1.0) | ((q <= 0.0) & (tl.floor(q) == q))
    invalid = (x < 1.0) | ((q <= 0.0) & (tl.floor(q) != q) & (tl.floor(x) != x))
    usable = ((infinite | invalid) == 0) & (x == x) & (q == q)
    s = tl.where(usable, x, 2.0 + x * 0.0)
    a = tl.where(usable, q, 1.0 + q * 0.0)
    total = libdevice.pow(a, s * -1.0)
    term = total
    steps = 0
    while any_lane(a <= 9.0) | (steps < 9):
        more = (a <= 9.0) | (steps < 9)
        a = tl.where(more, a + 1.0, a)
        term = tl.where(more, libdevice.pow(a, s * -1.0), term)
        total = tl.where(more, total + term, total)
        steps += 1
    total = total + float_divide(term * a, s - 1.0) - 0.5 * term
    # rising factorial of s over a^(2k+1), times B(2k) / (2k)!
    factor = s
    term = float_divide(term, a)
    total += factor * term * 0.08333333333333333
    factor = factor * (s + 1.0) * (s + 2.0)
    term = float_divide(term, a * a)
    total += factor * term * -0.001388888888888889
    factor = factor * (s + 3.0) * (s + 4.0)
    term = float_divide(term, a * a)
    total += factor * term * 3.306878306878307e-05
    factor = factor * (s + 5.0) * (s + 6.0)
    term = float_divide(term, a * a)
    total += factor * term * -8.267195767195768e-07
    factor = factor * (s + 7.0) * (s + 8.0)
    term = float_divide(term, a * a)
    total += factor * term * 2.08767569878681e-08
    factor = factor * (s + 9.0) * (s + 10.0)
    term = float_divide(term, a * a)
    total += factor * term * -5.284190138687493e-10
    total = tl.where(x != x, x, tl.where(q != q, q, total))
    return tl.where(x == 1.0, float("inf"), tl.where(x < 1.0, float("nan"),
           tl.where(infinite, float("inf"), tl.where(invalid, float("nan"), total))))  # fmt: skip


@triton.jit
def log_ndtr(x):
    """log of the standard normal distribution function."""
    t = x * 0.7071067811865476
    far = libdevice.log(libdevice.erfcx(t * -1.0) * 0.5) - t * t
    near = libdevice.log1p(libdevice.erfc(t) * -0.5)
    return tl.where(x < -1.0, far, near)


@triton.jit
def ndtri(p):
    """The quantile of the standard normal distribution, in float64 and refined by one step of Halley's method.

    The first guess is P. J. Acklam's rational approximation, with a relative error of 1.15e-9.
    """
    wide = p.to(tl.float64)
    upper = wide > 0.5
    q = tl.where(upper, 1.0 - wide, wide)
    inside = (q > 0.0) & (q <= 0.5)
    q = tl.where(inside, q, 0.25 + q * 0.0)
    r = tl.sqrt(-2.0 * libdevice.log(q))
    tail = (
        polynomial4(r, -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838, -2.549732539343734,
                    4.374664141464968) * r + 2.938163982698783
    ) / polynomial4(r, 7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996, 3.754408661907416,
                    1.0)  # fmt: skip
    c = q - 0.5
    t = c * c
    middle = (
        c * (polynomial4(t, -3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02, 1.383577518672690e02,
                         -3.066479806614716e01) * t + 2.506628277459239)
    ) / (polynomial4(t, -5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02, 6.680131188771972e01,
                     -1.328068155288572e01) * t + 1.0)  # fmt: skip
    x = tl.where(q < 0.02425, tail, middle)
    error = 0.5 * libdevice.erfc(x * -0.7071067811865476) - q
    u = error * 2.5066282746310002 * libdevice.exp(x * x * 0.5)
    x = x - u / (1.0 + x * u * 0.5)
    x = tl.where(upper, x * -1.0, x)
    x = tl.where(wide == 0.0, -float("inf"), tl.where(wide == 1.0, float("inf"), x))
    invalid = (wide < 0.0) | (wide > 1.0) | (wide != wide)
    return tl.where(invalid, float("nan"), x).to(p.dtype)


@triton.jit
def incomplete_gamma(a, x):
    """(lower, upper) regularized incomplete gamma functions in float64, by series where x <= a + 1, else by the
    continued fraction of the upper one (modified Lentz)."""
    by_series = x <= a + 1.0
    front = libdevice.exp(a * libdevice.log(x) - x - libdevice.lgamma(a))
    term = 1.0 / a
    total = term
    n = a
    steps = 0
    while any_lane(by_series & (tl.abs(term) > tl.abs(total) * 1e-16)) & (steps < 5000):
        n += 1.0
        term = term * x / n
        total += term
        steps += 1
    lower = total * front
    b = x + 1.0 - a
    tiny = 1e-300
    c = b * 0.0 + 1.0 / tiny
    d = 1.0 / tl.where(b == 0.0, tiny, b)
    fraction = d
    delta = d * 0.0 + 2.0
    k = 0.0
    steps = 0
    while any_lane((by_series == 0) & (tl.abs(delta - 1.0) > 1e-16)) & (steps < 5000):
        k += 1.0
        numerator = k * (a - k)
        b += 2.0
        d = numerator * d + b
        d = 1.0 / tl.where(tl.abs(d) < tiny, tiny, d)
        c = b + numerator / c
        c = tl.where(tl.abs(c) < tiny, tiny, c)
        delta = d * c
        fraction = fraction * delta
        steps += 1
    upper = front * fraction
    return tl.where(by_series, lower, 1.0 - upper), tl.where(by_series, 1.0 - lower, upper)


@triton.jit
def regularized_gamma(a, x, is_upper: tl.constexpr):
    """igamma or igammac with their values at the edges of the domain."""
    a64 = a.to(tl.float64)
    x64 = x.to(tl.float64)
    inner = (a64 > 0.0) & (x64 > 0.0) & (a64 < float("inf")) & (x64 < float("inf"))
    lower, upper = incomplete_gamma(tl.where(inner, a64, 1.0), tl.where(inner, x64, 1.0))
    result = upper if is_upper else lower
    none: tl.constexpr = 1.0 if is_upper else 0.0
    all_: tl.constexpr = 0.0 if is_upper else 1.0
    at_edge = tl.where((x64 == 0.0) | (a64 == float("inf")), none, all_)
    # eager looks at x == 0 before it meets a NaN
    invalid = (x64 < 0.0) | (a64 < 0.0) | ((x64 != 0.0) & ((x64 != x64) | (a64 != a64)))
    invalid = invalid | ((x64 == 0.0) & (a64 == 0.0)) | ((x64 == float("inf")) & (a64 == float("inf")))
    return tl.where(invalid, float("nan"), tl.where(inner, result, at_edge)).to(a.dtype)


@triton.jit
def igamma(a, x):
    """The regularized lower incomplete gamma function."""
    return regularized_gamma(a, x, False)


@triton.jit
def igammac(a, x):
    """The regularized upper incomplete gamma function."""
    return regularized_gamma(a, x, True)
