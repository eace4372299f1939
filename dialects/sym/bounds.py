"""Intervals that hold every value of an expression."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from . import intervals
from .intervals import Interval
from .polynomial import Atom, Expr, Monomial

if TYPE_CHECKING:
    from .ranges import Ranges


def bounds(expr: Expr, ranges: Ranges) -> Interval:
    """An inclusive interval that holds every value of `expr`; None where it is unbounded."""
    value = expr.as_int()
    if value is not None:
        return value, value
    found = ranges.bounds_memo.get(expr)
    if found is None:
        total: Interval = (0, 0)
        for monomial, coefficient in expr.terms:
            total = intervals.add(total, intervals.scale(_monomial_bounds(monomial, ranges), coefficient))
        found = ranges.bounds_memo[expr] = total
    return found


def _monomial_bounds(monomial: Monomial, ranges: Ranges) -> Interval:
    if not monomial:
        return 1, 1
    product = atom_bounds(monomial[0], ranges)
    for position in range(1, len(monomial)):
        factor = atom_bounds(monomial[position], ranges)
        product = intervals.multiply(product, factor)
        # A square is not negative, which the product of two independent factors may be.
        if monomial[position] is monomial[position - 1] and len(monomial) == 2:
            product = intervals.maximum(product, (0, 0))[0], product[1]
    return product


def atom_bounds(atom: Atom, ranges: Ranges) -> Interval:
    """The same for one factor of a term."""
    if atom.kind == "symbol":
        return ranges[atom.name]
    found = ranges.bounds_memo.get(atom)
    if found is None:
        found = reduce(_INTERVAL_OF[atom.kind], [bounds(arg, ranges) for arg in atom.args])
        if atom in ranges.positive:
            found = intervals.intersect(found, (1, None))
        ranges.bounds_memo[atom] = found
    return found


_INTERVAL_OF = {
    "floordiv": intervals.floordiv,
    "mod": intervals.mod,
    "min": intervals.minimum,
    "max": intervals.maximum,
}
