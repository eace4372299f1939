"""Named monoids that reductions and scans combine with, for the loop and kernel levels."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Monoid:
    """An associative and commutative combination of one or several values with an identity.

    arity:   values that each step yields and that the reduction returns
    meaning: what it computes
    """

    name: str
    arity: int
    meaning: str


#: Floating-point `sum` and `prod` may be reassociated: eager's order of summation is not specified either.
MONOIDS: dict[str, Monoid] = {
    m.name: m
    for m in (
        Monoid("sum", 1, "x + y; identity 0 (-0.0 never arises from an empty sum)"),
        Monoid("prod", 1, "x * y; identity 1"),
        Monoid("max", 1, "maximum, NaN if either is NaN; identity -inf or the smallest integer"),
        Monoid("min", 1, "minimum, NaN if either is NaN; identity inf or the largest integer"),
        Monoid("any", 1, "i1 or; identity false"),
        Monoid("all", 1, "i1 and; identity true"),
        Monoid("xor", 1, "i1 or integer exclusive or; identity 0"),
        Monoid("argmax", 2, "(value, i64 index) of the maximum; NaN wins, ties go to the lower index"),
        Monoid("argmin", 2, "(value, i64 index) of the minimum; NaN wins, ties go to the lower index"),
        Monoid("welford", 3, "(mean, m2, count): Chan's parallel combination of means and squared deviations"),
        Monoid("logsumexp", 2, "(m, s): running max and sum of exp(x - m), combined by rescaling"),
    )
}
