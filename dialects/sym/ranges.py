"""What is known of symbols: intervals, divisibility, and which size an axis stays below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from . import intervals
from .bounds import bounds
from .intervals import UNBOUNDED, Interval
from .polynomial import Atom, Expr

if TYPE_CHECKING:
    from .attributes import SymbolDeclaration

_MAX_AXES_MEMO = 1024
"""Iteration domains remembered over one base; `NOTHING` lives as long as the process."""


class Ranges:
    """Facts about symbols. Immutable; it keeps what was derived from it, so reuse one object where you can.

    `intervals[name]` are inclusive bounds (None: unbounded), `divisors[name]` a positive integer that divides
    the symbol, and `sizes[name]` an expression that the symbol, an axis, stays below. `positive` are operations,
    as `s0 floordiv 8`, that are at least 1. `fixed` are the symbols with one possible value.
    """

    def __init__(
        self,
        intervals: Mapping[str, Interval] | None = None,
        divisors: Mapping[str, int] | None = None,
        sizes: Mapping[str, Expr] | None = None,
        positive: frozenset[Atom] = frozenset(),
    ) -> None:
        self.positive = positive
        self.divisors: Mapping[str, int] = dict(divisors or {})
        self.sizes: Mapping[str, Expr] = dict(sizes or {})
        self.intervals: Mapping[str, Interval] = {
            name: _to_multiples(interval, self.divisors.get(name, 1)) for name, interval in (intervals or {}).items()
        }
        self.fixed: Mapping[str, int] = {
            name: lo for name, (lo, hi) in self.intervals.items() if lo is not None and lo == hi
        }
        self.bounds_memo: dict[Expr | Atom, Interval] = {}
        self.nonneg_memo: dict[Expr, bool] = {}
        self.simplify_memo: dict[Expr | Atom, Expr] = {}
        self.divide_memo: dict[tuple[Expr, Expr], tuple[Expr, Expr]] = {}
        self._axes_memo: dict[tuple[tuple[str, Expr], ...], Ranges] = {}

    def __getitem__(self, name: str) -> Interval:
        """The interval of a symbol; (None, None) for one that nothing is known of."""
        return self.intervals.get(name, UNBOUNDED)

    @staticmethod
    def of_axes(axes: Iterable[tuple[str, Expr]], base: Ranges | None = None) -> Ranges:
        """`base` and, for each (axis, size), `0 <= axis < size`.

        The result speaks of points of the iteration domain, so it also knows that a factor of a size which is a
        product of factors that are not negative is at least 1: an empty domain has no points. The same axes over
        the same base give the same object.
        """
        base = NOTHING if base is None else base
        key = tuple(axes)
        found = base._axes_memo.get(key)
        if found is None:
            if len(base._axes_memo) >= _MAX_AXES_MEMO:
                base._axes_memo.clear()
            found = base._axes_memo[key] = _with_axes(key, base)
        return found

    @staticmethod
    def of_symbols(declarations: Iterable[SymbolDeclaration]) -> Ranges:
        """What the declarations of a function's symbols say."""
        declared = tuple(declarations)
        return Ranges(
            {d.name: (d.min, d.max) for d in declared},
            {d.name: d.divisor for d in declared if d.divisor > 1},
        )


def _to_multiples(interval: Interval, divisor: int) -> Interval:
    lo, hi = interval
    return None if lo is None else -(-lo // divisor) * divisor, None if hi is None else hi // divisor * divisor


def _with_axes(axes: tuple[tuple[str, Expr], ...], base: Ranges) -> Ranges:
    known = dict(base.intervals)
    positive = base.positive
    for _, size in axes:
        for atom in _factors_at_least_one(size, base):
            if atom.kind == "symbol":
                known[atom.name] = intervals.maximum(known[atom.name], (1, 1))[0], known[atom.name][1]
            else:
                positive |= {atom}
    sized = Ranges(known, base.divisors, base.sizes, positive)
    for name, size in axes:
        _, most = bounds(size, sized)
        known[name] = 0, None if most is None else max(0, most - 1)
    return Ranges(known, base.divisors, {**base.sizes, **dict(axes)}, positive)


def _factors_at_least_one(size: Expr, base: Ranges) -> tuple[Atom, ...]:
    """Factors that must be positive for the product `size` to be; none where a factor may be negative."""
    if len(size.terms) != 1 or size.terms[0][1] < 0:
        return ()
    monomial = size.terms[0][0]
    least = (bounds(atom.expr, base)[0] for atom in monomial)
    return monomial if all(lo is not None and lo >= 0 for lo in least) else ()


NOTHING = Ranges()
"""No facts at all."""
