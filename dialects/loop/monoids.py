"""Named monoids that reductions and scans combine with, for the loop and kernel levels."""

from __future__ import annotations

from typing import Literal

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, i1
from xdsl.ir import Attribute

from ...records import dataclass

Kind = Literal["number", "float", "integer", "i1"]


@dataclass(frozen=True)
class Monoid:
    """An associative and commutative combination of one or several values with an identity.

    takes:   the kind of each value that a step yields and that the reduction returns; i1 is an integer
    meaning: what it computes
    """

    name: str
    takes: tuple[Kind, ...]
    meaning: str

    @property
    def arity(self) -> int:
        """How many values a step yields."""
        return len(self.takes)


def is_of_kind(type_: Attribute, kind: Kind) -> bool:
    """Whether a scalar type is of a kind that a monoid takes; no complex number is."""
    if kind == "i1":
        return type_ == i1
    if isinstance(type_, IntegerType | IndexType):
        return kind != "float"
    return isinstance(type_, AnyFloat) and kind != "integer"


_NUMBER: tuple[Kind, ...] = ("number",)
_PLACE: tuple[Kind, ...] = ("number", "integer")
_MOMENTS: tuple[Kind, ...] = ("float", "float", "float")
_SCALED: tuple[Kind, ...] = ("float", "float")

#: Floating-point `sum` and `prod` may be reassociated: eager's order of summation is not specified either.
MONOIDS: dict[str, Monoid] = {
    m.name: m
    for m in (
        Monoid("sum", _NUMBER, "x + y; identity 0 (-0.0 never arises from an empty sum)"),
        Monoid("prod", _NUMBER, "x * y; identity 1"),
        Monoid("max", _NUMBER, "maximum, NaN if either is NaN; identity -inf or the smallest integer"),
        Monoid("min", _NUMBER, "minimum, NaN if either is NaN; identity inf or the largest integer"),
        Monoid("any", ("i1",), "i1 or; identity false"),
        Monoid("all", ("i1",), "i1 and; identity true"),
        Monoid("xor", ("integer",), "i1 or integer exclusive or; identity 0"),
        Monoid("argmax", _PLACE, "(value, i64 index) of the maximum; NaN wins, ties go to the lower index"),
        Monoid("argmin", _PLACE, "(value, i64 index) of the minimum; NaN wins, ties go to the lower index"),
        Monoid("welford", _MOMENTS, "(mean, m2, count): Chan's parallel combination of means and squared deviations"),
        Monoid("logsumexp", _SCALED, "(m, s): running max and sum of exp(x - m), combined by rescaling"),
        Monoid(
            "softmax_sum",
            _MOMENTS,
            "(m, s, t): running max of x and two sums over exp(x - m), combined by rescaling; what is -inf weighs 0",
        ),
    )
}
