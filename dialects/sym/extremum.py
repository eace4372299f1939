"""Minimum and maximum in normal form: flat, without duplicates, at most one constant, which comes last."""

from __future__ import annotations

from typing import Any, Literal

from . import polynomial as p
from .errors import SymError
from .polynomial import Expr


def smin(*values: Expr | int) -> Expr:
    """The smallest of one or more values."""
    return extremum("min", values)


def smax(*values: Expr | int) -> Expr:
    """The largest of one or more values."""
    return extremum("max", values)


def extremum(kind: Literal["min", "max"], values: tuple[Expr | int, ...]) -> Expr:
    """`kind` of the values, folded where two differ by a known constant. Raises SymError without values."""
    if not values:
        raise SymError(f"{kind} of nothing")
    kept: list[Expr] = []
    for value in values:
        expr = p.as_expr(value)
        atom = expr.as_atom
        for part in atom.args if atom is not None and atom.kind == kind else (expr,):
            _insert(kind, kept, part)
    if len(kept) == 1:
        return kept[0]
    return p.make_atom(kind, "", tuple(sorted(kept, key=_order))).expr


def _order(expr: Expr) -> tuple[Any, ...]:
    """Simple arguments first, the constant last."""
    text = str(expr)
    return expr.is_constant, expr.depth, p.natural(text), text


def _insert(kind: Literal["min", "max"], kept: list[Expr], value: Expr) -> None:
    """Add `value` to the arguments unless one of them decides the comparison."""
    for index, other in enumerate(kept):
        difference = (value - other).as_int()
        if difference is not None:
            if (difference < 0) == (kind == "min"):
                kept[index] = value
            return
    kept.append(value)
