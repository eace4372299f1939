"""Sums of quotients and remainders joined again, with ranges.

c*d*(x floordiv d) + c*(x mod d) == c*x
c*d*((x floordiv d) mod b) + c*(x mod d) == c*(x mod (d*b))                              if b > 0
c*d*(x floordiv d) == c*x                                                  if d is known to divide x
"""

from __future__ import annotations

from . import polynomial as p
from .division import mod
from .factors import exact_quotient
from .polynomial import Atom, Expr
from .proofs import divide, is_positive
from .ranges import Ranges


def cancel_exact(expr: Expr, ranges: Ranges) -> Expr:
    """`c*k*(x floordiv k) == c*x` where every term of x is known to be a multiple of k."""
    for monomial, coefficient in expr.terms:
        for position, atom in enumerate(monomial):
            k = exact_quotient(atom, ranges)
            if k is not None and coefficient % k == 0:
                others = p.intern({monomial[:position] + monomial[position + 1 :]: coefficient // k})
                return cancel_exact(expr - p.intern({monomial: coefficient}) + others * atom.args[0], ranges)
    return expr


def recombine(expr: Expr, ranges: Ranges) -> Expr:
    """Join remainders with what ranges have made of their quotients; the atoms of `expr` must be simplified."""
    while (joined := _join_one(expr, ranges)) is not None:
        expr = joined
    return expr


def _join_one(expr: Expr, ranges: Ranges) -> Expr | None:
    for monomial, coefficient in expr.terms:
        for position, atom in enumerate(monomial):
            if atom.kind != "mod":
                continue
            others = p.intern({monomial[:position] + monomial[position + 1 :]: coefficient})
            joined = _join_quotient(expr, others, atom, ranges) or _join_digit(expr, others, atom, ranges)
            if joined is not None:
                return joined
    return None


def _join_quotient(expr: Expr, others: Expr, atom: Atom, ranges: Ranges) -> Expr | None:
    """`c*k*q + c*(x mod k) == c*x` where q is what `x floordiv k` simplifies to."""
    dividend, divisor = atom.args
    multiple = others * divisor * divide(dividend, divisor, ranges)[0]
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
            quotient = divide(dividend, divisor, ranges)[0]
            if mod(quotient - digit.args[0], digit.args[1]) is p.ZERO:
                product = divide(dividend, divisor * digit.args[1], ranges)[1]
                return expr - p.intern({monomial: value}) + others * (product - atom.expr)
    return None
