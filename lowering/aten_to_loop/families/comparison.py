"""Comparison, logic, selection and predicates."""

from __future__ import annotations

from ..dtypes import BOOL, F32, is_float
from ..pointwise import Policy, add_pointwise
from ..scalar import Scalar
from ..scalar_builder import ScalarBuilder


def isclose(s: ScalarBuilder, left: Scalar, right: Scalar, rtol: float, atol: float, equal_nan: bool) -> Scalar:
    """|left - right| <= atol + rtol * |right|; equal infinities are close."""
    close = left.eq(right)
    if not is_float(left.element):
        if rtol == 0 and atol == 0:
            return close
        left, right = left.to(F32), right.to(F32)
        return close | (s.abs(left - right) <= s.abs(right * rtol) + atol)
    if equal_nan:
        close = close | (s.isnan(left) & s.isnan(right))
    if rtol == 0 and atol == 0:
        return close
    difference = s.abs(left - right)
    return close | (s.isfinite(difference) & (difference <= s.abs(right * rtol) + atol))


def predicate(s: ScalarBuilder, name: str, value: Scalar) -> Scalar:
    """A predicate on floats, which integers answer as the finite numbers that they are."""
    if is_float(value.element):
        return s.function(name, value)
    if name == "signbit":
        return value < 0
    return s.constant(name == "isfinite", BOOL)


add_pointwise({
    "eq.Tensor eq.Scalar": lambda s, self, other: self.eq(other),
    "ne.Tensor ne.Scalar": lambda s, self, other: self.ne(other),
    "lt.Tensor lt.Scalar": lambda s, self, other: self < other,
    "le.Tensor le.Scalar": lambda s, self, other: self <= other,
    "gt.Tensor gt.Scalar": lambda s, self, other: self > other,
    "ge.Tensor ge.Scalar": lambda s, self, other: self >= other,
    "isclose": lambda s, self, other, rtol, atol, equal_nan: isclose(s, self, other, rtol, atol, equal_nan),
}, Policy.PROMOTED)  # fmt: skip

add_pointwise({
    "logical_and": lambda s, self, other: s.truthy(self) & s.truthy(other),
    "logical_or": lambda s, self, other: s.truthy(self) | s.truthy(other),
    "logical_xor": lambda s, self, other: s.truthy(self) ^ s.truthy(other),
    "logical_not": lambda s, self: ~s.truthy(self),
    "isnan": lambda s, self: predicate(s, "isnan", self),
    "isinf": lambda s, self: predicate(s, "isinf", self),
    "isfinite": lambda s, self: predicate(s, "isfinite", self),
    "isposinf": lambda s, self: self.eq(float("inf")) if is_float(self.element) else s.constant(False, BOOL),
    "isneginf": lambda s, self: self.eq(float("-inf")) if is_float(self.element) else s.constant(False, BOOL),
    "isreal": lambda s, self: s.constant(True, BOOL),
    "signbit": lambda s, self: predicate(s, "signbit", self),
}, Policy.OWN)  # fmt: skip
