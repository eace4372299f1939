"""Functions of real numbers: exponentials, trigonometry, rounding, special functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..dtypes import LOW_PRECISION, finite_limit, is_float
from ..nests import LoopBuilder
from ..pointwise import add_pointwise
from ..rules import Call, Replacement, lowers
from ..scalar import Number, Scalar
from ..scalar_builder import ScalarBuilder

_NAN, _INF = float("nan"), float("inf")


def round_decimals(s: ScalarBuilder, value: Scalar, decimals: int) -> Scalar:
    """Rounded to nearest even at a number of decimals, which may be negative."""
    if not is_float(value.element) or decimals == 0:
        return s.round(value) if is_float(value.element) else value
    power = 10.0 ** abs(decimals)
    return s.round(value / power) * power if decimals < 0 else s.round(value * power) / power


def keep_integers(function: Callable[[ScalarBuilder, Scalar], Scalar]) -> Callable[[ScalarBuilder, Scalar], Scalar]:
    """A rounding function that leaves integers alone."""
    return lambda s, self: function(s, self) if is_float(self.element) else self


def logit(s: ScalarBuilder, value: Scalar, eps: float | None) -> Scalar:
    """log(x / (1 - x)), x first clamped to [eps, 1 - eps], the lower bound first; a negative eps is none."""
    if eps is not None and eps >= 0:
        below_high = s.where(value > 1.0 - eps, s.constant(1.0 - eps, value.element), value)
        value = s.where(value < eps, s.constant(eps, value.element), below_high)
    return s.log(value / (1.0 - value))


def logaddexp(s: ScalarBuilder, left: Scalar, right: Scalar, binary: bool) -> Scalar:
    """log(exp(left) + exp(right)), or in base 2: the larger one and a correction; equal infinities stay."""
    difference = -s.abs(left - right)
    if binary:
        correction = s.log2(s.exp2(difference) + 1.0)
    else:
        correction = s.log1p(s.exp(difference))
    same_infinity = s.isinf(left) & left.eq(right)
    return s.where(same_infinity, left, s.max(left, right) + correction)


def xlogy(s: ScalarBuilder, left: Scalar, right: Scalar, log: Callable[[Scalar], Scalar]) -> Scalar:
    """left * log(right), 0 where left is 0 unless right is NaN."""
    product = s.where(left.eq(0), s.constant(0, left.element), left * log(right))
    return s.where(s.isnan(right), right, product)


def entr(s: ScalarBuilder, value: Scalar) -> Scalar:
    """-x * log(x) for positive x, 0 at 0, -inf below, NaN stays."""
    outside = s.where(value.eq(0), s.constant(0, value.element), s.constant(-_INF, value.element))
    inside = -value * s.log(value)
    return s.where(s.isnan(value), value, s.where(value > 0, inside, outside))


def sinc(s: ScalarBuilder, value: Scalar) -> Scalar:
    """sin(pi x) / (pi x), 1 at 0."""
    product = value * math.pi
    return s.where(value.eq(0), s.constant(1, value.element), s.sin(product) / product)


def polygamma(s: ScalarBuilder, n: int, value: Scalar) -> Scalar:
    """The n-th derivative of digamma: (-1)**(n + 1) * n! * zeta(n + 1, x)."""
    if n == 0:
        return s.function("digamma", value)
    if n == 1:
        return trigamma(s, value)
    factor = math.factorial(n) * (1.0 if n % 2 else -1.0)
    return s.function("zeta", s.constant(n + 1, value.element), value) * factor


def trigamma(s: ScalarBuilder, value: Scalar) -> Scalar:
    """The second derivative of log(gamma), as eager has it: reflected below 0.5, shifted by 6, then asymptotic."""
    reflected = value < 0.5
    sine = s.sin(value * math.pi)
    x = s.where(reflected, 1.0 - value, value)
    total = s.where(reflected, -(math.pi * math.pi) / (sine * sine), s.constant(0, value.element))
    for _ in range(6):
        total = total + 1.0 / (x * x)
        x = x + 1.0
    inverse = 1.0 / (x * x)
    series = 1.0 / (x * 2.0) + 1.0 + inverse * (1.0 / 6.0 - inverse * (1.0 / 30.0 - inverse * (1.0 / 42.0)))
    total = total + series / x
    return s.where(reflected, -total, total)


def angle(s: ScalarBuilder, value: Scalar) -> Scalar:
    """pi for negative numbers, 0 for others, NaN stays."""
    turned = s.where(value < 0, s.constant(math.pi, value.element), s.constant(0, value.element))
    return s.where(s.isnan(value), value, turned)


@lowers("nan_to_num")
def _nan_to_num(b: LoopBuilder, call: Call) -> Replacement:
    element = call.type.element
    s = b.s

    def replaced(value: Scalar) -> Scalar:
        if not is_float(element):
            return value
        limit = finite_limit(element)
        numbers: list[tuple[Callable[[Scalar], Scalar], Number, float]] = [
            (lambda x: x.eq(-_INF), call["neginf"], -limit),
            (lambda x: x.eq(_INF), call["posinf"], limit),
            (s.isnan, call["nan"], 0.0),
        ]
        result = value
        for test, given, default in numbers:
            number = s.number(default if given is None else given, value.element)
            result = s.where(test(value), number, result)
        return result

    return b.pointwise(replaced, call.type, call.tensor("self"))


def _reject_low_precision(call: Call) -> str | None:
    if call.type.element in LOW_PRECISION:
        return "the next number in low precision is not that in float32"
    return None


add_pointwise({
    "ceil": keep_integers(ScalarBuilder.ceil),
    "floor": keep_integers(ScalarBuilder.floor),
    "trunc": keep_integers(ScalarBuilder.trunc),
    "round": keep_integers(ScalarBuilder.round),
    "round.decimals": lambda s, self, decimals: round_decimals(s, self, decimals),
    "frac": lambda s, self: self - s.trunc(self),
    "sqrt": lambda s, self: s.sqrt(self),
    "rsqrt": lambda s, self: s.rsqrt(self),
    "exp": lambda s, self: s.exp(self),
    "exp2": lambda s, self: s.exp2(self),
    "expm1": lambda s, self: s.expm1(self),
    "log": lambda s, self: s.log(self),
    "log2": lambda s, self: s.log2(self),
    "log10": lambda s, self: s.log10(self),
    "log1p": lambda s, self: s.log1p(self),
    "sin": lambda s, self: s.sin(self),
    "cos": lambda s, self: s.cos(self),
    "tan": lambda s, self: s.tan(self),
    "asin": lambda s, self: s.asin(self),
    "acos": lambda s, self: s.acos(self),
    "atan": lambda s, self: s.atan(self),
    "sinh": lambda s, self: s.sinh(self),
    "cosh": lambda s, self: s.cosh(self),
    "tanh": lambda s, self: s.tanh(self),
    "asinh": lambda s, self: s.asinh(self),
    "acosh": lambda s, self: s.acosh(self),
    "atanh": lambda s, self: s.atanh(self),
    "atan2": lambda s, self, other: s.binary("atan2", self, other),
    "hypot": lambda s, self, other: s.hypot(self, other),
    "copysign.Tensor copysign.Scalar": lambda s, self, other: s.binary("copysign", self, other),
    "sinc": lambda s, self: sinc(s, self),
    "deg2rad": lambda s, self: self * (math.pi / 180.0),
    "rad2deg": lambda s, self: self * (180.0 / math.pi),
    "logit": lambda s, self, eps: logit(s, self, eps),
    "logaddexp": lambda s, self, other: logaddexp(s, self, other, binary=False),
    "logaddexp2": lambda s, self, other: logaddexp(s, self, other, binary=True),
    "xlogy.Tensor xlogy.Scalar_Other xlogy.Scalar_Self": lambda s, self, other: xlogy(s, self, other, s.log),
    "special_xlog1py special_xlog1py.other_scalar special_xlog1py.self_scalar":
        lambda s, self, other: xlogy(s, self, other, s.log1p),
    "angle": lambda s, self: angle(s, self),
    "erf": lambda s, self: s.erf(self),
    "erfc": lambda s, self: s.function("erfc", self),
    "erfinv": lambda s, self: s.function("erfinv", self),
    "special_erfcx": lambda s, self: s.function("erfcx", self),
    "lgamma": lambda s, self: s.function("lgamma", self),
    "digamma": lambda s, self: s.function("digamma", self),
    "polygamma": lambda s, n, self: polygamma(s, n, self),
    "igamma": lambda s, self, other: s.function("igamma", self, other),
    "igammac": lambda s, self, other: s.function("igammac", self, other),
    "special_zeta special_zeta.other_scalar special_zeta.self_scalar":
        lambda s, self, other: s.function("zeta", self, other),
    "i0 special_modified_bessel_i0": lambda s, self: s.function("i0", self),
    "special_i0e": lambda s, self: s.function("i0e", self),
    "special_i1 special_modified_bessel_i1": lambda s, self: s.function("i1", self),
    "special_i1e": lambda s, self: s.function("i1e", self),
    "special_bessel_j0": lambda s, self: s.function("bessel_j0", self),
    "special_bessel_j1": lambda s, self: s.function("bessel_j1", self),
    "special_bessel_y0": lambda s, self: s.function("bessel_y0", self),
    "special_bessel_y1": lambda s, self: s.function("bessel_y1", self),
    "special_ndtri": lambda s, self: s.function("ndtri", self),
    "special_log_ndtr": lambda s, self: s.function("log_ndtr", self),
    "special_entr": lambda s, self: entr(s, self),
})  # fmt: skip

add_pointwise({"nextafter": lambda s, self, other: s.nextafter(self, other)}, reject=_reject_low_precision)
