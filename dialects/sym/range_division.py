"""Division with ranges: quotient and remainder split into what is known of them.

For a positive divisor d and a positive common factor g of d, with d = g*h, the laws are

    (d*a + r) floordiv d == a + r floordiv d            (d*a + r) mod d == r mod d
    (g*a + r) floordiv d == a floordiv h                (g*a + r) mod d == g*(a mod h) + r    if 0 <= r < g
    (n + x floordiv a) floordiv b == (a*n + x) floordiv (a*b)                                 if a, b > 0
    (x mod (a*b)) floordiv a == (x floordiv a) mod b                                          if a, b > 0
    (y + c*(x mod m)) mod d == (y + c*x) mod d                                           if d divides c*m
"""

from __future__ import annotations

from . import polynomial as p
from .division import floordiv, mod
from .factors import common_factors, content, divide_by, split_by, split_multiples
from .polynomial import Expr, Monomial
from .proofs import bounds, is_positive, prove_nonneg
from .ranges import Ranges


def divide(dividend: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    """(dividend floordiv divisor, dividend mod divisor), simplified; both arguments must be simplified."""
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
