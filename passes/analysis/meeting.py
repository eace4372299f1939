"""Stores whose iterations may meet in one place, and the axes along which they cannot."""

from __future__ import annotations

from collections import Counter
from math import gcd

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.sym import ZERO, Atom, Expr, symbol
from .loops import Loop, ops_in


def meeting_stores(op: Operation) -> list[kernel.StoreOp]:
    """Stores in an op whose iterations may meet, to be combined or to win by their order."""
    stores = [inner for inner in ops_in(op) if type(inner) is kernel.StoreOp]
    return [store for store in stores if store.atomic is not None or store.ordered is not None]


def keeps_apart(store: kernel.StoreOp, loop: Loop) -> bool:
    """Whether a store writes other places for other values of a loop's axis, whatever all else is.

    The index is `c*axis + rest` where every term of the rest, dynamic indices included, is a multiple of some m that
    c times the length of the axis does not exceed: places are told apart modulo m.
    """
    axis, size = loop.axis.data, loop.hi.data
    index = store.map.data[0]
    step = index.coefficient(axis)
    factor = step.as_int() if step is not None else None
    if not factor or loop.lo.data is not ZERO:
        return False
    rest = index - factor * symbol(axis)
    terms = [(Counter(monomial), coefficient) for monomial, coefficient in rest.terms if monomial]
    modulus = gcd(*(coefficient for _, coefficient in terms))
    length = size.as_int()
    if not terms or (length is not None and abs(factor) * (length - 1) < modulus):
        return True
    return factor in (1, -1) and _all_multiples(terms, size)


def _all_multiples(terms: list[tuple[Counter[Atom], int]], size: Expr) -> bool:
    """Whether each term is a multiple of a size that is a product of symbols."""
    if len(size.terms) != 1:
        return False
    monomial, coefficient = size.terms[0]
    return all(term >= Counter(monomial) and value % coefficient == 0 for term, value in terms)
