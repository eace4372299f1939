"""Bounds of expressions and inequalities between them, from ranges. A proof that fails says nothing.

Beyond interval arithmetic, a proof of `e >= 0` replaces one factor at a time by a bound of it: where `e` is
`c*a + r` and c has a known sign, `a` gives way to its lower or upper bound, which may be symbolic (an axis is
at most its size minus one), until intervals decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Literal, TypeAlias

from . import intervals
from . import polynomial as p
from .intervals import Interval
from .polynomial import Atom, Expr, Monomial
from .ranges import Ranges

_MAX_STEPS = 48
"""Replacements tried in one proof."""


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
    product = _atom_bounds(monomial[0], ranges)
    for position in range(1, len(monomial)):
        factor = _atom_bounds(monomial[position], ranges)
        product = intervals.multiply(product, factor)
        # A square is not negative, which the product of two independent factors may be.
        if monomial[position] is monomial[position - 1] and len(monomial) == 2:
            product = intervals.maximum(product, (0, 0))[0], product[1]
    return product


def _atom_bounds(atom: Atom, ranges: Ranges) -> Interval:
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


def is_positive(expr: Expr, ranges: Ranges) -> bool:
    """Whether `expr >= 1` is certain."""
    lo, _ = bounds(expr, ranges)
    return (lo is not None and lo >= 1) or prove_nonneg(expr - 1, ranges)


def prove_nonneg(expr: Expr, ranges: Ranges) -> bool:
    """Whether `expr >= 0` is certain."""
    lo, hi = bounds(expr, ranges)
    if lo is not None and lo >= 0:
        return True
    if hi is not None and hi < 0:
        return False
    found = ranges.nonneg_memo.get(expr)
    if found is None:
        found = ranges.nonneg_memo[expr] = _Proof(ranges).nonneg(expr)
    return found


def prove_le(left: Expr, right: Expr, ranges: Ranges) -> bool:
    """Whether `left <= right` is certain."""
    return prove_nonneg(right - left, ranges)


def prove_lt(left: Expr, right: Expr, ranges: Ranges) -> bool:
    """Whether `left < right` is certain."""
    return prove_nonneg(right - left - 1, ranges)


def prove_eq(left: Expr, right: Expr, ranges: Ranges) -> bool:
    """Whether `left == right` is certain."""
    if left is right:
        return True
    from .simplification import simplify  # simplification builds on proofs

    difference = simplify(expand_mod(simplify(left - right, ranges)), ranges)
    return difference is p.ZERO or (prove_nonneg(difference, ranges) and prove_nonneg(-difference, ranges))


def expand_mod(expr: Expr) -> Expr:
    """Write every remainder as `x - k*(x floordiv k)`, under which equal sums of both meet."""
    terms: dict[Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        product = p.const(coefficient)
        for atom in monomial:
            factor = atom.expr
            if atom.kind == "mod":
                dividend, divisor = atom.args
                factor = expand_mod(dividend) - divisor * (dividend // divisor)
            product = p.multiply(product, factor)
        p.accumulate(terms, product)
    return p.from_terms(terms)


def upper_expr(expr: Expr, ranges: Ranges) -> Expr | None:
    """A symbolic upper bound of `expr` free of axes (names in `ranges.sizes`); None when none was found."""
    lower = lower_expr(-expr, ranges)
    return None if lower is None else -lower


def lower_expr(expr: Expr, ranges: Ranges) -> Expr | None:
    """A symbolic lower bound of `expr` free of axes (names in `ranges.sizes`); None when none was found."""
    for _ in range(_MAX_STEPS):
        if expr.free_symbols.isdisjoint(ranges.sizes):
            return expr
        for atom in _factors(expr, ranges):
            if atom.free_symbols.isdisjoint(ranges.sizes):
                continue
            coefficient, rest = _linear(expr, atom)
            side = _side(coefficient, ranges)
            quantifier, options = _replacements(atom, side, ranges) if side else (any, [])
            if options and quantifier is any:
                expr = rest + coefficient * options[0]
                break
        else:
            return None
    return None


Side: TypeAlias = Literal["lower", "upper"]
Quantifier: TypeAlias = Callable[[Iterable[bool]], bool]


class _Proof:
    """One search for a proof; it counts its steps."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.steps = 0

    def nonneg(self, expr: Expr) -> bool:
        lo, hi = bounds(expr, self.ranges)
        if lo is not None and lo >= 0:
            return True
        if hi is not None and hi < 0:
            return False
        atoms = _factors(expr, self.ranges)
        # A split into cases loses nothing, so it comes before a choice of bounds, which each case makes anew.
        splits = [atom for atom in atoms if atom.kind in ("min", "max")]
        for quantifiers, candidates in (((all,), splits), ((any, all), atoms)):
            for atom in candidates:
                coefficient, rest = _linear(expr, atom)
                side = _side(coefficient, self.ranges)
                if side is None:
                    continue
                quantifier, options = _replacements(atom, side, self.ranges)
                if options and quantifier in quantifiers:
                    return self._try(quantifier, [rest + coefficient * option for option in options])
        return False

    def _try(self, quantifier: Quantifier, cases: list[Expr]) -> bool:
        self.steps += 1
        return self.steps <= _MAX_STEPS and quantifier(map(self.nonneg, cases))


def _factors(expr: Expr, ranges: Ranges) -> list[Atom]:
    """The atoms that are factors of a term, in the order in which a proof replaces them.

    Axes first, because their bounds are sizes, which have bounds themselves; operations before symbols,
    because what replaces them is made of symbols; then the symbols in the terms of highest degree, which
    outgrow the rest.
    """
    atoms = dict.fromkeys(atom for monomial, _ in expr.terms for atom in monomial)
    return sorted(atoms, key=lambda a: (a.free_symbols.isdisjoint(ranges.sizes), a.kind == "symbol"))


def _linear(expr: Expr, atom: Atom) -> tuple[Expr, Expr]:
    """(c, r) with `expr == c*atom + r`; a monomial gives up one factor `atom`, so c may still contain it."""
    coefficient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, value in expr.terms:
        if atom in monomial:
            position = monomial.index(atom)
            coefficient[monomial[:position] + monomial[position + 1 :]] = value
        else:
            rest[monomial] = value
    return p.from_terms(coefficient), p.from_terms(rest)


def _side(coefficient: Expr, ranges: Ranges) -> Side | None:
    """Which bound of a factor bounds `coefficient * factor` from below."""
    lo, hi = bounds(coefficient, ranges)
    if lo is not None and lo >= 0:
        return "lower"
    return "upper" if hi is not None and hi <= 0 else None


def _replacements(atom: Atom, side: Side, ranges: Ranges) -> tuple[Quantifier, list[Expr]]:
    """What may stand for `atom`, with `any` where each alone is a bound and `all` where only together."""
    options: list[Expr] = []
    quantifier: Quantifier = any
    if atom.kind == "symbol":
        size = ranges.sizes.get(atom.name)
        if side == "upper" and size is not None:
            options.append(size - 1)
    elif atom.kind in ("min", "max"):
        # The value is one of the arguments: each bounds a minimum from above, all together from below.
        quantifier = any if (atom.kind == "min") == (side == "upper") else all
        options.extend(atom.args)
        return quantifier, options
    else:
        options.extend(_quotient_bounds(atom, side, ranges))
    lo, hi = _atom_bounds(atom, ranges)
    end = lo if side == "lower" else hi
    if end is not None:
        options.append(p.const(end))
    return quantifier, options


def _quotient_bounds(atom: Atom, side: Side, ranges: Ranges) -> list[Expr]:
    """Symbolic bounds of a floordiv or mod with a positive divisor."""
    dividend, divisor = atom.args
    if not is_positive(divisor, ranges):
        return []
    if atom.kind == "floordiv":
        end = upper_expr(dividend, ranges) if side == "upper" else lower_expr(dividend, ranges)
        if end is None or end is dividend:
            return []
        from .range_division import divide  # range_division builds on proofs

        return [divide(end, divisor, ranges)[0]]
    if side == "lower":
        return [p.ZERO]
    below_divisor = [] if divisor.is_constant else [divisor - 1]
    return [*below_divisor, dividend] if bounds(dividend, ranges)[0] in (0,) else below_divisor
