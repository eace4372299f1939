"""Symbolic integers as Python text over ints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.sym import Expr
from ...dialects.sym.expr import Atom


def expression(expr: Expr, names: Mapping[str, str]) -> str:
    """The expression as Python; `names` gives the variable of each symbol. KeyError for a symbol without one."""
    if not expr.terms:
        return "0"
    pieces: list[str] = []
    for monomial, coefficient in expr.terms:
        factors = [_atom(atom, names) for atom in monomial]
        if not factors or abs(coefficient) != 1:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+" if pieces else ""
        pieces.append(f"{sign}{' ' if pieces else ''}{'*'.join(factors)}")
    return " ".join(pieces)


def _atom(atom: Atom, names: Mapping[str, str]) -> str:
    if atom.kind == "symbol":
        return names[atom.name]
    arguments = [expression(arg, names) for arg in atom.args]
    if atom.kind in ("min", "max"):
        return f"{atom.kind}({', '.join(arguments)})"
    operator = "//" if atom.kind == "floordiv" else "%"
    left, right = (f"({text})" if " " in text or text[0] == "-" or "*" in text else text for text in arguments)
    return f"({left} {operator} {right})"


def expressions(exprs: Sequence[Expr], names: Mapping[str, str]) -> str:
    """A tuple of expressions."""
    inner = ", ".join(expression(e, names) for e in exprs)
    return f"({inner},)" if len(exprs) == 1 else f"({inner})"
