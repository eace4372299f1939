"""Walks over expressions: substitution, evaluation, linear decomposition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from . import division, extremum
from . import polynomial as p
from .errors import SymError
from .polynomial import Atom, Expr


def substitute(expr: Expr, mapping: Mapping[str, Expr | int]) -> Expr:
    """Replace symbols simultaneously. The public entry is `Expr.subs`."""
    values = {name: p.as_expr(value) for name, value in mapping.items()}
    return _substitute(expr, values, {})


def _substitute(expr: Expr, values: Mapping[str, Expr], memo: dict[Atom, Expr]) -> Expr:
    if expr.free_symbols.isdisjoint(values):
        return expr
    terms: dict[p.Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        kept: list[Atom] = []
        replaced: Expr | None = None
        for atom in monomial:
            if atom.free_symbols.isdisjoint(values):
                kept.append(atom)
            else:
                new = _substitute_atom(atom, values, memo)
                replaced = new if replaced is None else p.multiply(replaced, new)
        if replaced is None:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        elif kept:
            p.accumulate(terms, p.multiply(replaced, p.intern({tuple(kept): 1})), coefficient)
        else:
            p.accumulate(terms, replaced, coefficient)
    return p.from_terms(terms)


def _substitute_atom(atom: Atom, values: Mapping[str, Expr], memo: dict[Atom, Expr]) -> Expr:
    if atom.kind == "symbol":
        return values[atom.name]
    found = memo.get(atom)
    if found is None:
        found = memo[atom] = rebuild(atom, tuple(_substitute(arg, values, memo) for arg in atom.args))
    return found


def rebuild(atom: Atom, args: tuple[Expr, ...]) -> Expr:
    """The operation of `atom` on other arguments, in normal form."""
    if atom.kind == "floordiv":
        return division.floordiv(*args)
    if atom.kind == "mod":
        return division.mod(*args)
    if atom.kind == "min" or atom.kind == "max":
        return extremum.extremum(atom.kind, args)
    return atom.expr


def evaluate(expr: Expr, env: Mapping[str, Any]) -> Any:
    """The value of `expr`; the public entry is `Expr.evaluate`."""
    return _evaluate(expr, env, {})


def _evaluate(expr: Expr, env: Mapping[str, Any], memo: dict[Atom, Any]) -> Any:
    total: Any = None
    for monomial, coefficient in expr.terms:
        value: Any = coefficient
        for atom in monomial:
            factor = memo.get(atom)
            if factor is None:
                factor = memo[atom] = _evaluate_atom(atom, env, memo)
            value = factor if value is coefficient and coefficient == 1 else value * factor
        total = value if total is None else total + value
    return 0 if total is None else total


def _evaluate_atom(atom: Atom, env: Mapping[str, Any], memo: dict[Atom, Any]) -> Any:
    if atom.kind == "symbol":
        try:
            return env[atom.name]
        except KeyError:
            raise SymError(f"no value for symbol {atom.name!r}") from None
    args = [_evaluate(arg, env, memo) for arg in atom.args]
    if atom.kind == "floordiv":
        return args[0] // args[1]
    if atom.kind == "mod":
        return args[0] % args[1]
    return reduce(minimum if atom.kind == "min" else maximum, args)


def minimum(left: Any, right: Any) -> Any:
    """Elementwise minimum of ints and of torch or numpy arrays; neither library is imported for it."""
    if hasattr(left, "clip"):
        return left.clip(None, right)
    return right.clip(None, left) if hasattr(right, "clip") else min(left, right)


def maximum(left: Any, right: Any) -> Any:
    """Elementwise maximum of ints and of torch or numpy arrays; neither library is imported for it."""
    if hasattr(left, "clip"):
        return left.clip(right, None)
    return right.clip(left, None) if hasattr(right, "clip") else max(left, right)


def split(expr: Expr, names: Iterable[str]) -> tuple[dict[str, Expr], Expr] | None:
    """Linear decomposition; the public entry is `Expr.split`."""
    wanted = frozenset(names)
    if expr.free_symbols.isdisjoint(wanted):
        return {}, expr
    coefficients: dict[str, dict[p.Monomial, int]] = {}
    rest: dict[p.Monomial, int] = {}
    for monomial, coefficient in expr.terms:
        hit: str | None = None
        others: list[Atom] = []
        for atom in monomial:
            if atom.free_symbols.isdisjoint(wanted):
                others.append(atom)
            elif atom.kind != "symbol" or hit is not None:
                return None
            else:
                hit = atom.name
        terms = rest if hit is None else coefficients.setdefault(hit, {})
        terms[tuple(others)] = coefficient
    return {name: p.from_terms(terms) for name, terms in coefficients.items()}, p.from_terms(rest)
