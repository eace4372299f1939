"""Bounds of expressions and inequalities between them, from ranges. A proof that fails says nothing.

Beyond interval arithmetic, a proof of `e >= 0` replaces one factor at a time by a bound of it: where `e` is
`c*a + r` and c has a known sign, `a` gives way to its lower or upper bound, which may be symbolic (an axis is
at most its size minus one), until intervals decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from . import polynomial as p
from .bounds import atom_bounds, bounds
from .division import floordiv, mod
from .factors import common_factors, content, divide_by, split_by, split_multiples
from .polynomial import Atom, Expr, Monomial
from .ranges import Ranges

_MAX_STEPS = 48
"""Replacements tried in one proof."""


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
    lo, hi = atom_bounds(atom, ranges)
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
        return [divide(end, divisor, ranges)[0]]
    if side == "lower":
        return [p.ZERO]
    below_divisor = [] if divisor.is_constant else [divisor - 1]
    return [*below_divisor, dividend] if bounds(dividend, ranges)[0] in (0,) else below_divisor


def divide(dividend: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    """(dividend floordiv divisor, dividend mod divisor), simplified; both arguments must be simplified.

    For a positive divisor d and a positive common factor g of d, with d = g*h, the laws are

        (d*a + r) floordiv d == a + r floordiv d            (d*a + r) mod d == r mod d
        (g*a + r) floordiv d == a floordiv h                (g*a + r) mod d == g*(a mod h) + r    if 0 <= r < g
        (n + x floordiv a) floordiv b == (a*n + x) floordiv (a*b)                                 if a, b > 0
        (x mod (a*b)) floordiv a == (x floordiv a) mod b                                          if a, b > 0
        (y + c*(x mod m)) mod d == (y + c*x) mod d                                       if d divides c*m
    """
    key = (dividend, divisor)
    found = ranges.divide_memo.get(key)
    if found is None:
        found = ranges.divide_memo[key] = _divide(dividend, divisor, ranges)
    return found


def _divide(dividend: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    if not is_positive(divisor, ranges):
        if is_positive(-divisor, ranges):
            quotient, remainder = divide(-dividend, -divisor, ranges)
            return quotient, -remainder
        return floordiv(dividend, divisor), mod(dividend, divisor)
    whole, rest = split_multiples(dividend, divisor, ranges)
    quotient, remainder = _divide_rest(rest, divisor, ranges)
    return whole + quotient, remainder


def _divide_rest(rest: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    level = _constant_quotient(rest, divisor, ranges)
    if level is not None:
        return p.const(level), rest - divisor * level
    for factor in common_factors(rest, content(divisor)):
        outer, inner = split_by(rest, factor)
        step = p.intern({factor[1]: factor[0]})
        if factor[1] and not is_positive(step, ranges):
            continue
        level = _constant_quotient(inner, step, ranges)
        if level is None:
            continue
        quotient, remainder = divide(outer + level, divide_by(divisor, factor), ranges)
        return quotient, remainder * step + (inner - step * level)
    return _floordiv_atom(rest, divisor, ranges), _mod_atom(rest, divisor, ranges)


def _floordiv_atom(dividend: Expr, divisor: Expr, ranges: Ranges) -> Expr:
    """floordiv that no range splits, except through an inner operation."""
    for monomial, coefficient in dividend.terms:
        atom = monomial[0] if coefficient == 1 and len(monomial) == 1 else None
        if atom is None or atom.kind not in ("floordiv", "mod"):
            continue
        inner = atom.args[1]
        if atom.kind == "floordiv" and is_positive(inner, ranges):
            return divide((dividend - atom.expr) * inner + atom.args[0], inner * divisor, ranges)[0]
        if atom.kind == "mod" and len(dividend.terms) == 1:
            whole, rest = split_multiples(inner, divisor, ranges)
            if rest is p.ZERO and is_positive(whole, ranges):
                return divide(divide(atom.args[0], divisor, ranges)[0], whole, ranges)[1]
    return floordiv(dividend, divisor)


def _mod_atom(dividend: Expr, divisor: Expr, ranges: Ranges) -> Expr:
    """mod that no range splits, except where an inner mod is redundant."""
    if not dividend.has_mod or divisor.is_constant:
        return mod(dividend, divisor)
    terms: dict[Monomial, int] = {}
    changed = False
    for monomial, coefficient in dividend.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if atom is not None and atom.kind == "mod":
            _, rest = split_multiples(atom.args[1] * coefficient, divisor, ranges)
            if rest is p.ZERO:
                p.accumulate(terms, atom.args[0], coefficient)
                changed = True
                continue
        terms[monomial] = terms.get(monomial, 0) + coefficient
    if not changed:
        return mod(dividend, divisor)
    return divide(p.from_terms(terms), divisor, ranges)[1]


def _constant_quotient(expr: Expr, divisor: Expr, ranges: Ranges) -> int | None:
    """`expr floordiv divisor` where it is the same integer everywhere; None when that is not known."""
    k = divisor.as_int()
    lo, hi = bounds(expr, ranges)
    if k is not None:
        if lo is not None and hi is not None:
            return lo // k if lo // k == hi // k else None
        if lo is None or lo < 0:
            return None
    if prove_nonneg(expr, ranges):
        return 0 if prove_nonneg(divisor - 1 - expr, ranges) else None
    if hi is not None and hi < 0 and prove_nonneg(expr + divisor, ranges):
        return -1
    return None
