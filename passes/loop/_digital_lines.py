"""The straight line that whole numbers are the floors of: `(a*i + b) floordiv c`, with small a and c.

A slope s = a/c fits when one b has `c*x[i] <= a*i + b <= c*x[i] + c - 1` at every i. Where none has, two points i, j
contradict s: `s * (i - j) > x[i] - x[j] - 1` does not hold. That bounds s from one side, so the search takes the
simplest fraction between the bounds, and narrows them by the two points that contradict it most, until one fits or
no fraction is left. The values of clamped lines are open to one side where they are clamped.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from ...dialects.sym import Expr, smax, smin

_MAX_STEPS, _MAX_VALUE = 64, 1 << 31


class _Bounds(NamedTuple):
    """Points at which a line is bounded from one side, and the bounds there."""

    at: Any
    value: Any


def line_through(table: Any, axis: Expr) -> Expr | None:
    """The line, clamped by its first or last value if need be, that has the values of a table at 0, 1, ...

    None where there is none. The expression is checked at every point.
    """
    import numpy as np

    if np.abs(table).max() >= _MAX_VALUE:
        return None
    steps = np.diff(table)
    rises = bool((steps >= 0).all())
    if not rises and not (steps <= 0).all():
        return None
    best: _Line | None = None
    for first, last in ((False, False), (True, False), (False, True), (True, True)):
        line = _clamped_line(table, rises, first, last)
        if line is not None and (best is None or line.cost < best.cost):
            best = line
        if best is not None and (abs(best.a) <= 1 or best.c == 1):
            break
    if best is None:
        return None
    found = best.expr(axis)
    (name,) = axis.free_symbols
    values = np.broadcast_to(found.evaluate({name: np.arange(len(table))}), table.shape)
    return found if np.array_equal(values, table) else None


class _Line(NamedTuple):
    """`(a*i + b) floordiv c`, at least `low` and at most `high`."""

    a: int
    b: int
    c: int
    low: int | None = None
    high: int | None = None

    @property
    def cost(self) -> int:
        """A small divisor is cheaper and aligns with more; a clamp costs about as much as a factor of two."""
        return self.c << (self.low is not None) << (self.high is not None)

    def expr(self, axis: Expr) -> Expr:
        """The expression; a floor is monotonic, so that a clamp from below keeps the dividend from being negative."""
        dividend = axis * self.a + self.b
        if self.low is not None:
            dividend = smax(dividend, self.low * self.c)
        found = dividend // self.c
        return found if self.high is None else smin(found, self.high)


def _clamped_line(table: Any, rises: bool, first: bool, last: bool) -> _Line | None:
    """A line that is clamped where the table has its first value, its last, or both."""
    import numpy as np

    start, end = int(table[0]), int(table[-1])
    points = np.arange(len(table))
    # where a rising line is clamped to its first value it may be below, to its last above; a falling one otherwise
    to_first, to_last = first & (table == start), last & (table == end)
    free_below, free_above = (to_first, to_last) if rises else (to_last, to_first)
    line = _line(*(_Bounds(points[~free], table[~free]) for free in (free_below, free_above)))
    if line is None:
        return None
    low, high = (start if first else None, end if last else None)
    return _Line(*line, *((low, high) if rises else (high, low)))


def _line(lower: _Bounds, upper: _Bounds) -> tuple[int, int, int] | None:
    """(a, b, c) with `lower <= (a*i + b) floordiv c <= upper` at the points of each."""
    if not len(lower.at) or not len(upper.at):
        return None
    steepest = Fraction(max(int(upper.value.max() - lower.value.min()), int(lower.value.max() - upper.value.min())) + 2)
    least, most = -steepest, steepest
    for _ in range(_MAX_STEPS):
        if least >= most:
            return None
        slope = _simplest_between(least, most)
        a, c = slope.numerator, slope.denominator
        needed, allowed = c * lower.value - a * lower.at, c * upper.value + (c - 1) - a * upper.at
        k, m = int(needed.argmax()), int(allowed.argmin())
        if needed[k] <= allowed[m]:
            return a, min(max(0, int(needed[k])), int(allowed[m])), c
        i, j = int(lower.at[k]), int(upper.at[m])
        bound = Fraction(int(lower.value[k] - upper.value[m]) - 1, i - j)
        least, most = (max(least, bound), most) if i > j else (least, min(most, bound))
    return None


def _simplest_between(least: Fraction, most: Fraction) -> Fraction:
    """The fraction of least denominator strictly between two others."""
    if least < 0 < most:
        return Fraction(0)
    return _simplest_positive(least, most) if least >= 0 else -_simplest_positive(-most, -least)


def _simplest_positive(least: Fraction, most: Fraction | None) -> Fraction:
    """The same for `0 <= least < most`, where None is infinity."""
    whole = least.numerator // least.denominator
    if most is None or whole + 1 < most:
        return Fraction(whole + 1)
    rest = least - whole
    return whole + 1 / _simplest_positive(1 / (most - whole), 1 / rest if rest else None)
