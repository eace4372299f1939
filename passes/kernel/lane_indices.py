"""Indices that an axis of lanes changes: finding what is not linear in them, and replacing them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import lcm

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.sym import Atom, Expr, MapAttr, SymAttr


def expr_of(op: Operation) -> Expr | None:
    """The index of an access, or the expression of an index op; None for other ops."""
    if isinstance(op, kernel.LoadOp | kernel.StoreOp):
        return op.map.data[0]
    return op.expr.data if isinstance(op, kernel.IndexOp) else None


def set_expr(op: Operation, expr: Expr) -> None:
    """Give an access or an index op another expression."""
    if isinstance(op, kernel.IndexOp):
        op.properties["expr"] = SymAttr.of(expr)
    else:
        op.properties["map"] = MapAttr.of(expr)


def atoms_on(expr: Expr, axis: str, kinds: Collection[str]) -> Iterator[Atom]:
    """The factors of some kinds in an expression, nested ones included, that an axis changes."""
    for monomial, _ in expr.terms:
        for atom in monomial:
            if axis in atom.free_symbols:
                if atom.kind in kinds:
                    yield atom
                for each in atom.args:
                    yield from atoms_on(each, axis, kinds)


def has_atom(expr: Expr, axis: str, kinds: Collection[str]) -> bool:
    """Whether there is such a factor."""
    return any(True for _ in atoms_on(expr, axis, kinds))


#: what an expression has of the digits of an axis
DIGITS = ("floordiv", "mod")
#: most points of the axis that one lane computes, one for each remainder
MOST_POINTS = 4


def common_divisor(exprs: Iterable[Expr], axis: str) -> int | None:
    """The least number that all constants divide by which expressions divide an axis; None if there are none, or one
    is no small constant."""
    divisors = [atom.args[1].as_int() for expr in exprs for atom in atoms_on(expr, axis, DIGITS)]
    known = [each for each in divisors if each is not None and each > 0]
    if not known or len(known) < len(divisors):
        return None
    count = lcm(*known)
    return count if count <= MOST_POINTS else None


def divides_small(expr: Expr, axis: str) -> bool:
    """Whether an expression is linear in an axis for each of a few remainders, clamps aside."""
    return common_divisor((expr,), axis) is not None
