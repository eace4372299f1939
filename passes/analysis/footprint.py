"""How often an access of a kernel happens, and how many elements it touches, for given values of the symbols.

Exact for accesses that are linear in axes with independent ranges, and for blocked axes; an upper bound otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import Any

from ...dialects.sym import Expr, SymError
from ...records import dataclass
from .loops import Loop

#: points that are enumerated at most to count what no formula counts
_MOST_POINTS = 1 << 20

Values = Mapping[str, int]


@dataclass(frozen=True)
class Span:
    """The values of an axis over all iterations of the loops around it: `low` to `high` - 1."""

    low: int
    high: int

    @property
    def count(self) -> int:
        """How many there are."""
        return max(self.high - self.low, 0)


def value_of(expr: Expr, values: Mapping[str, Any]) -> Any:
    """The value of an expression; 0 where one divides by zero, as no iteration does."""
    try:
        return expr.evaluate(values)
    except (ZeroDivisionError, SymError):
        return 0


def spans(loops: Sequence[Loop], values: Values) -> dict[str, Span]:
    """The span of each axis, outermost first. Bounds are monotonic in outer axes, as those of blocks are."""
    found: dict[str, Span] = {}
    for loop in loops:
        corners = [dict(values), dict(values)]
        for name, span in found.items():
            corners[0][name], corners[1][name] = span.low, max(span.high - 1, span.low)
        low = min(int(value_of(loop.lo.data, corner)) for corner in corners)
        high = max(int(value_of(loop.hi.data, corner)) for corner in corners)
        found[loop.axis.data] = Span(low, high)
    return found


def iterations(loops: Sequence[Loop], values: Values) -> int:
    """How often the body of a nest runs."""
    needed = {name for loop in loops for e in (loop.lo.data, loop.hi.data) for name in e.free_symbols}
    if not any(loop.axis.data in needed for loop in loops):
        return prod(max(int(value_of(e.hi.data, values) - value_of(e.lo.data, values)), 0) for e in loops)
    return _enumerated_iterations(loops, values, needed)


def _enumerated_iterations(loops: Sequence[Loop], values: Values, needed: set[str]) -> int:
    """Sum over the axes that bounds of inner loops mention."""
    import numpy

    points: dict[str, Any] = {}
    weight: Any = numpy.ones(1, numpy.int64)
    for loop in loops:
        env = {**values, **points}
        low = numpy.broadcast_to(value_of(loop.lo.data, env), weight.shape)
        count = numpy.maximum(numpy.broadcast_to(value_of(loop.hi.data, env), weight.shape) - low, 0)
        if loop.axis.data not in needed or int(count.sum()) > _MOST_POINTS:
            weight = weight * count
            continue
        offsets = numpy.arange(int(count.sum())) - numpy.repeat(numpy.cumsum(count) - count, count)
        points = {name: numpy.repeat(array, count) for name, array in points.items()}
        points[loop.axis.data] = numpy.repeat(low, count) + offsets
        weight = numpy.repeat(weight, count)
    return int(weight.sum())


def elements(index: Expr, loops: Sequence[Loop], values: Values) -> int:
    """How many different values an index takes in a nest."""
    around = spans(loops, values)
    used = {name: around[name] for name in index.free_symbols if name in around}
    if any(span.count == 0 for span in around.values()):
        return 0
    parts = index.split(used)
    if parts is not None and not _depend_on_each_other(loops, set(used)):
        coefficients = [(abs(int(value_of(c, values))), used[name].count) for name, c in parts[0].items()]
        return _distinct_sums(coefficients)
    return _enumerated(index, used, values)


def _depend_on_each_other(loops: Sequence[Loop], used: set[str]) -> bool:
    """Whether the range of one used axis depends on another used one."""
    return any(
        loop.axis.data in used and not used.isdisjoint(loop.lo.data.free_symbols | loop.hi.data.free_symbols)
        for loop in loops
    )


def _distinct_sums(terms: Sequence[tuple[int, int]]) -> int:
    """How many values `sum(c*x)` takes over x in 0..n-1, for pairs (c, n).

    From small to large coefficients: one beyond the reach of the smaller ones multiplies the count; one within it
    makes a gapless stretch longer, as the window of a convolution does.
    """
    count, reach, step = 1, 0, 0
    for coefficient, size in sorted(terms):
        if coefficient == 0 or size <= 1:
            continue
        gapless = step and reach // step + 1 == count
        if coefficient > reach:
            count *= size
        elif gapless and coefficient % step == 0:
            count = (reach + coefficient * (size - 1)) // step + 1
        else:
            count = min(count * size, reach + coefficient * (size - 1) + 1)
        reach += coefficient * (size - 1)
        step = gcd(step, coefficient)
    return count


def _enumerated(index: Expr, used: Mapping[str, Span], values: Values) -> int:
    """Count by evaluating; the number of points where there are too many."""
    import numpy

    total = prod(span.count for span in used.values())
    if total > _MOST_POINTS:
        return total
    axes = [numpy.arange(span.low, span.high) for span in used.values()]
    grid = dict(zip(used, numpy.meshgrid(*axes, indexing="ij"), strict=True))
    found = numpy.broadcast_to(value_of(index, {**values, **grid}), [len(a) for a in axes])
    return len(numpy.unique(found))
