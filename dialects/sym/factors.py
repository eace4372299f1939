"""Factors of polynomials: common ones, exact quotients, division with rest."""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

from . import polynomial as p
from .division import floordiv
from .polynomial import Atom, Expr, Monomial
from .ranges import Ranges

Factor: TypeAlias = tuple[int, Monomial]
"""A positive integer times a product of atoms."""


def split_multiples(dividend: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
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
    if len(dividend.terms) < len(before.terms):
        return whole, dividend
    return _split_exact_multiples(before, divisor, ranges)


def _split_exact_multiples(dividend: Expr, divisor: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    """The same for a divisor `c*(x floordiv k)` where k is known to divide x: multiples of `c*x` in `k*dividend`."""
    if len(divisor.terms) == 1 and ranges.divisors:
        ((monomial, coefficient),) = divisor.terms
        for position, atom in enumerate(monomial):
            k = exact_quotient(atom, ranges)
            if k is None or len(atom.args[0].terms) != 1:
                continue
            others = p.intern({monomial[:position] + monomial[position + 1 :]: coefficient})
            whole, rest = split_multiples(dividend * k, others * atom.args[0], ranges)
            if whole is not p.ZERO:  # each term of the rest is k times one of the dividend
                return whole, p.intern({m: c // k for m, c in rest.terms})
    return p.ZERO, dividend


def exact_quotient(atom: Atom, ranges: Ranges) -> int | None:
    """k where an atom is `x floordiv k` and k is known to divide every term of x."""
    k = atom.args[1].as_int() if atom.kind == "floordiv" else None
    if k is None or k <= 0:
        return None
    return k if all(known_divisor(m, c, ranges) % k == 0 for m, c in atom.args[0].terms) else None


def _split_constant_multiples(dividend: Expr, k: int, ranges: Ranges) -> tuple[Expr, Expr]:
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in dividend.terms:
        if coefficient % k == 0:
            whole[monomial] = whole.get(monomial, 0) + coefficient // k
        elif monomial and ranges.divisors and known_divisor(monomial, coefficient, ranges) % k == 0:
            p.accumulate(whole, floordiv(p.intern({monomial: coefficient}), p.const(k)))
        else:
            rest[monomial] = coefficient
    return p.from_terms(whole), p.from_terms(rest)


def known_divisor(monomial: Monomial, coefficient: int, ranges: Ranges) -> int:
    """A positive integer that divides `coefficient * monomial` everywhere."""
    divisor = abs(coefficient)
    for atom in monomial:
        if atom.kind == "symbol":
            divisor *= ranges.divisors.get(atom.name, 1)
    return divisor


def is_multiple(expr: Expr, k: int, ranges: Ranges) -> bool:
    """Whether a number is known to divide an expression: each of its terms, or all that a minimum or maximum is of."""
    return all(c % k == 0 or _divides(k, m, c, ranges) for m, c in expr.terms)


def _divides(k: int, monomial: Monomial, coefficient: int, ranges: Ranges) -> bool:
    left = k // gcd(k, known_divisor(monomial, coefficient, ranges))
    extrema = (atom for atom in monomial if atom.kind in ("min", "max"))
    return left == 1 or any(all(is_multiple(arg, left, ranges) for arg in atom.args) for atom in extrema)


def _leading(expr: Expr) -> Factor:
    """The term that polynomial division eliminates: first of those with the most factors."""
    monomial, coefficient = expr.terms[0]
    return (coefficient, monomial)


def content(expr: Expr) -> Factor:
    """The largest integer and product that divide every term."""
    (monomial, coefficient), *others = expr.terms
    for other, value in others:
        coefficient = gcd(coefficient, value)
        monomial = _monomial_gcd(monomial, other)
    return abs(coefficient), monomial


def common_factors(dividend: Expr, content: Factor) -> list[Factor]:
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


def split_by(expr: Expr, factor: Factor) -> tuple[Expr, Expr]:
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


def divide_by(expr: Expr, factor: Factor) -> Expr:
    """expr / factor, which must be exact."""
    quotient, rest = split_by(expr, factor)
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
