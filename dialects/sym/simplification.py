"""Simplification with ranges: of floordiv and mod (`range_division`), of min and max, and of sums."""

from __future__ import annotations

from . import polynomial as p
from .extremum import extremum
from .polynomial import Atom, Expr, Monomial
from .proofs import prove_le
from .range_division import divide
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
        result = cancel_exact(result, ranges)
    return recombine(result, ranges) if result.has_mod and len(result.terms) > 1 else result


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
