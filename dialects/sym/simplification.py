"""Simplification of floordiv, mod, min and max with ranges.

For a positive divisor d and a positive common factor g of d, with d = g*h, the laws are

    (d*a + r) floordiv d == a + r floordiv d            (d*a + r) mod d == r mod d
    (g*a + r) floordiv d == a floordiv h                (g*a + r) mod d == g*(a mod h) + r    if 0 <= r < g
    (x floordiv a) floordiv b == x floordiv (a*b)                                             if a, b > 0
    (x mod (a*b)) floordiv a == (x floordiv a) mod b                                          if a, b > 0
    (y + c*(x mod m)) mod d == (y + c*x) mod d                                           if d divides c*m

    c*d*(x floordiv d) + c*(x mod d) == c*x
    c*d*((x floordiv d) mod b) + c*(x mod d) == c*(x mod (d*b))                                   if d, b > 0
"""

from __future__ import annotations

from math import gcd

from . import polynomial as p
from .division import floordiv, mod
from .extremum import extremum
from .polynomial import Atom, Expr, Monomial
from .proofs import bounds, is_positive, prove_le, prove_nonneg
from .ranges import Ranges

_MAX_ROUNDS = 4
"""One round may enable another; in practice the second finds nothing."""


def simplify(expr: Expr, ranges: Ranges) -> Expr:
    """An expression with the same value at all points that `ranges` allows, with cheaper operations."""
    if expr.depth == 0 and ranges.fixed.keys().isdisjoint(expr.free_symbols):
        return expr
    found = ranges.simplify_memo.get(expr)
    if found is not None:
        return found
    current = expr
    for _ in range(_MAX_ROUNDS):
        following = _simplify_sum(current, ranges)
        if following is current:
            break
        current = following
    ranges.simplify_memo[expr] = current
    ranges.simplify_memo[current] = current
    return current


def _simplify_sum(expr: Expr, ranges: Ranges) -> Expr:
    terms: dict[Monomial, int] = {}
    changed = False
    for monomial, coefficient in expr.terms:
        replaced: Expr | None = None
        kept: list[Atom] = []
        for atom in monomial:
            if atom.kind == "symbol" and atom.name not in ranges.fixed:
                kept.append(atom)
                continue
            new = _simplify_atom(atom, ranges)
            if new is atom.expr:
                kept.append(atom)
            else:
                replaced = new if replaced is None else p.multiply(replaced, new)
        if replaced is None:
            terms[monomial] = terms.get(monomial, 0) + coefficient
            continue
        changed = True
        if kept:
            replaced = p.multiply(replaced, p.intern({tuple(kept): 1}))
        p.accumulate(terms, replaced, coefficient)
    result = p.from_terms(terms) if changed else expr
    if ranges.divisors:
        result = _cancel_exact(result, ranges)
    return _recombine(result, ranges) if result.has_mod and len(result.terms) > 1 else result


def _simplify_atom(atom: Atom, ranges: Ranges) -> Expr:
    if atom.kind == "symbol":
        return p.const(ranges.fixed[atom.name])
    found = ranges.simplify_memo.get(atom)
    if found is None:
        args = tuple(simplify(arg, ranges) for arg in atom.args)
        if atom.kind == "min" or atom.kind == "max":
            found = _extremum(atom, args, ranges)
        else:
            quotient, remainder = divide(args[0], args[1], ranges)
            found = quotient if atom.kind == "floordiv" else remainder
        ranges.simplify_memo[atom] = found
    return found


def _extremum(atom: Atom, args: tuple[Expr, ...], ranges: Ranges) -> Expr:
    """Drop arguments that another one always beats."""
    assert atom.kind == "min" or atom.kind == "max"
    kept: list[Expr] = []
    for arg in args:
        if any(_beats(atom, other, arg, ranges) for other in kept):
            continue
        kept = [other for other in kept if not _beats(atom, arg, other, ranges)]
        kept.append(arg)
    return extremum(atom.kind, tuple(kept))


def _beats(atom: Atom, left: Expr, right: Expr, ranges: Ranges) -> bool:
    return prove_le(left, right, ranges) if atom.kind == "min" else prove_le(right, left, ranges)


def divide(dividend: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    """(dividend floordiv divisor, dividend mod divisor), simplified; both arguments must be simplified."""
    if not is_positive(divisor, ranges):
        if is_positive(-divisor, ranges):
            quotient, remainder = divide(-dividend, -divisor, ranges)
            return quotient, -remainder
        return floordiv(dividend, divisor), mod(dividend, divisor)
    whole, rest = _split_multiples(dividend, divisor, ranges)
    quotient, remainder = _divide_rest(rest, divisor, ranges)
    return whole + quotient, remainder


def _divide_rest(rest: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    level = _constant_quotient(rest, divisor, ranges)
    if level is not None:
        return p.const(level), rest - divisor * level
    content = _content(divisor)
    for factor in _factor_candidates(rest, content):
        outer, inner = _split_by(rest, factor)
        step = p.intern({factor[1]: factor[0]})
        if factor[1] and not is_positive(step, ranges):
            continue
        level = _constant_quotient(inner, step, ranges)
        if level is None:
            continue
        quotient, remainder = divide(outer + level, _divide_by(divisor, factor), ranges)
        return quotient, remainder * step + (inner - step * level)
    return _floordiv_atom(rest, divisor, ranges), _mod_atom(rest, divisor, ranges)


def _floordiv_atom(dividend: Expr, divisor: Expr, ranges: Ranges) -> Expr:
    """floordiv that no range splits, except through an inner operation."""
    for monomial, coefficient in dividend.terms:
        atom = monomial[0] if coefficient == 1 and len(monomial) == 1 else None
        if atom is None or atom.kind not in ("floordiv", "mod"):
            continue
        inner = atom.args[1]
        if divisor.is_constant and inner.is_constant:
            continue  # the normal form has merged these
        if atom.kind == "floordiv" and is_positive(inner, ranges):
            return divide((dividend - atom.expr) * inner + atom.args[0], inner * divisor, ranges)[0]
        if atom.kind == "mod" and len(dividend.terms) == 1:
            whole, rest = _split_multiples(inner, divisor, ranges)
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
            _, rest = _split_multiples(atom.args[1] * coefficient, divisor, ranges)
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


Factor = tuple[int, Monomial]
"""A positive integer times a product of atoms."""


def _split_multiples(dividend: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    """(a, r) with `dividend == divisor*a + r`, by division of polynomials; a is 0 where nothing divides.

    Terms whose symbols are known to be divisible leave as quotients of their own.
    """
    k = divisor.as_int()
    if k is not None:
        return _split_constant_multiples(dividend, k, ranges)
    lead = _leading(divisor)
    whole, before = p.ZERO, dividend
    for _ in range(p.MAX_DEGREE):
        for monomial, coefficient in dividend.terms:
            rest = _monomial_quotient(monomial, lead[1])
            if rest is not None and coefficient % lead[0] == 0:
                part = p.intern({rest: coefficient // lead[0]})
                whole = whole + part
                dividend = dividend - part * divisor
                break
        else:
            break
    # A sum as divisor may leave more than it takes: s0*i0 == (s0 + 1)*i0 - i0.
    return (whole, dividend) if len(dividend.terms) < len(before.terms) else (p.ZERO, before)


def _split_constant_multiples(dividend: Expr, k: int, ranges: Ranges) -> tuple[Expr, Expr]:
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in dividend.terms:
        if coefficient % k == 0:
            whole[monomial] = whole.get(monomial, 0) + coefficient // k
        elif monomial and ranges.divisors and _known_divisor(monomial, coefficient, ranges) % k == 0:
            p.accumulate(whole, floordiv(p.intern({monomial: coefficient}), p.const(k)))
        else:
            rest[monomial] = coefficient
    return p.from_terms(whole), p.from_terms(rest)


def _known_divisor(monomial: Monomial, coefficient: int, ranges: Ranges) -> int:
    divisor = abs(coefficient)
    for atom in monomial:
        if atom.kind == "symbol":
            divisor *= ranges.divisors.get(atom.name, 1)
    return divisor


def _cancel_exact(expr: Expr, ranges: Ranges) -> Expr:
    """`c*k*(x floordiv k) == c*x` where every term of x is known to be a multiple of k."""
    for monomial, coefficient in expr.terms:
        for position, atom in enumerate(monomial):
            k = atom.args[1].as_int() if atom.kind == "floordiv" else None
            if k is None or coefficient % k:
                continue
            dividend = atom.args[0]
            if all(_known_divisor(m, c, ranges) % k == 0 for m, c in dividend.terms):
                others = p.intern({monomial[:position] + monomial[position + 1 :]: coefficient // k})
                return _cancel_exact(expr - p.intern({monomial: coefficient}) + others * dividend, ranges)
    return expr


def _recombine(expr: Expr, ranges: Ranges) -> Expr:
    """Join remainders with what ranges have made of their quotients."""
    for monomial, coefficient in expr.terms:
        for position, atom in enumerate(monomial):
            if atom.kind != "mod":
                continue
            others = p.intern({monomial[:position] + monomial[position + 1 :]: coefficient})
            joined = _join_quotient(expr, others, atom, ranges) or _join_digit(expr, others, atom, ranges)
            if joined is not None:
                return _simplify_sum(joined, ranges)
    return expr


def _join_quotient(expr: Expr, others: Expr, atom: Atom, ranges: Ranges) -> Expr | None:
    """`c*k*q + c*(x mod k) == c*x` where q is what `x floordiv k` simplifies to."""
    dividend, divisor = atom.args
    multiple = others * divisor * simplify(floordiv(dividend, divisor), ranges)
    operations = [(m, c) for m, c in multiple.terms if any(factor.kind != "symbol" for factor in m)]
    if not operations or any(expr.table.get(m) != c for m, c in operations):
        return None
    return expr - multiple + others * (dividend - atom.expr)


def _join_digit(expr: Expr, others: Expr, atom: Atom, ranges: Ranges) -> Expr | None:
    """`c*k*(y mod b) + c*(x mod k) == c*(x mod (k*b))` where y is `x floordiv k`, up to multiples of b."""
    dividend, divisor = atom.args
    scale = others * divisor
    if len(scale.terms) != 1:
        return None
    ((wanted, coefficient),) = scale.terms
    for monomial, value in expr.terms:
        if value != coefficient or len(monomial) != len(wanted) + 1:
            continue
        for position, digit in enumerate(monomial):
            if digit.kind != "mod" or monomial[:position] + monomial[position + 1 :] != wanted:
                continue
            if not is_positive(digit.args[1], ranges):
                continue
            quotient = simplify(floordiv(dividend, divisor), ranges)
            if mod(quotient - digit.args[0], digit.args[1]) is p.ZERO:
                product = divide(dividend, divisor * digit.args[1], ranges)[1]
                return expr - p.intern({monomial: value}) + others * (product - atom.expr)
    return None


def _leading(expr: Expr) -> Factor:
    """The term that polynomial division eliminates: first of those with the most factors."""
    monomial, coefficient = expr.terms[0]
    return (coefficient, monomial)


def _content(expr: Expr) -> Factor:
    """The largest integer and product that divide every term."""
    (monomial, coefficient), *others = expr.terms
    for other, value in others:
        coefficient = gcd(coefficient, value)
        monomial = _monomial_gcd(monomial, other)
    return abs(coefficient), monomial


def _factor_candidates(dividend: Expr, content: Factor) -> list[Factor]:
    """Common factors of the divisor and some terms of the dividend, most promising (largest) first."""
    candidates: dict[Factor, None] = {}
    common = content
    for monomial, coefficient in dividend.terms:
        if not monomial:
            continue
        candidates[gcd(coefficient, content[0]), _monomial_gcd(monomial, content[1])] = None
        common = gcd(coefficient, common[0]), _monomial_gcd(monomial, common[1])
        candidates[common] = None
    candidates.pop((1, ()), None)
    return sorted(candidates, key=lambda factor: (-len(factor[1]), -factor[0]))


def _split_by(expr: Expr, factor: Factor) -> tuple[Expr, Expr]:
    """(a, r) with `expr == factor*a + r`; the constant goes to r."""
    outer: dict[Monomial, int] = {}
    inner: dict[Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        rest = _monomial_quotient(monomial, factor[1])
        if monomial and rest is not None and coefficient % factor[0] == 0:
            outer[rest] = coefficient // factor[0]
        else:
            inner[monomial] = coefficient
    return p.from_terms(outer), p.from_terms(inner)


def _divide_by(expr: Expr, factor: Factor) -> Expr:
    """expr / factor, which must be exact."""
    quotient, rest = _split_by(expr, factor)
    constant = rest.as_int()
    assert constant is not None and constant % factor[0] == 0
    return quotient + constant // factor[0]


def _monomial_quotient(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """monomial / divisor; None when a factor is missing."""
    if not divisor:
        return monomial
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _monomial_gcd(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return ()
    remaining = list(right)
    common: list[Atom] = []
    for atom in left:
        if atom in remaining:
            remaining.remove(atom)
            common.append(atom)
    return tuple(common)
