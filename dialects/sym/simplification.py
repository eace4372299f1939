"""Simplification with ranges: of floordiv and mod (`proofs.divide`), of min and max, and of sums."""

from __future__ import annotations

from collections.abc import Mapping

from . import polynomial as p
from .extremum import extremum
from .polynomial import Atom, Expr, Monomial
from .proofs import divide, prove_le, prove_nonneg
from .ranges import Ranges
from .recombination import cancel_exact, recombine

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
    changed: dict[Atom, Expr] = {}
    for monomial, _ in expr.terms:
        for atom in monomial:
            if atom.kind != "symbol" or atom.name in ranges.fixed:
                new = _simplify_atom(atom, ranges)
                if new is not atom.expr:
                    changed[atom] = new
    result = _replace(expr, changed) if changed else expr
    result = _recombined(result, ranges)
    # behind it, for with `s0 = 8*(s0 floordiv 8)` the factors of a quotient and of its remainder look different
    return _recombined(cancel_exact(result, ranges), ranges) if ranges.divisors else result


def _recombined(expr: Expr, ranges: Ranges) -> Expr:
    return recombine(expr, ranges) if expr.has_mod and len(expr.terms) > 1 else expr


def _replace(expr: Expr, changed: Mapping[Atom, Expr]) -> Expr:
    terms: dict[Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        kept = tuple(atom for atom in monomial if atom not in changed)
        if len(kept) == len(monomial):
            terms[monomial] = terms.get(monomial, 0) + coefficient
            continue
        product = p.intern({kept: coefficient})
        for atom in monomial:
            if atom in changed:
                product = p.multiply(product, changed[atom])
        p.accumulate(terms, product)
    return p.from_terms(terms)


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


def prove_eq(left: Expr, right: Expr, ranges: Ranges) -> bool:
    """Whether `left == right` is certain."""
    if left is right:
        return True
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
