"""Symbolic integers as Python text over ints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import override

from ...dialects.sym import Expr, Ranges
from ...dialects.sym.expr import Atom
from ..printing.code import ATOM, Code
from ..printing.index import IndexPrinter, IndexSyntax


class PythonIndices(IndexSyntax):
    """How Python spells them: its quotients are rounded to minus infinity. They are closed, for texts around them."""

    @override
    def is_plain(self, atom: Atom, ranges: Ranges) -> bool:
        return True

    @override
    def plain(self, divides: bool, dividend: Code, divisor: Code) -> Code:
        return Code(f"({super().plain(divides, dividend, divisor)})")


_SYNTAX, _NOTHING_KNOWN = PythonIndices("*", " // ", " % "), Ranges()


def expression(expr: Expr, names: Mapping[str, str]) -> str:
    """The expression as Python; `names` gives the variable of each symbol. KeyError for a symbol without one."""
    number = expr.as_int()
    if number is not None:
        return str(number)
    return IndexPrinter(lambda symbol: Code(names[symbol], ATOM), _NOTHING_KNOWN, _SYNTAX).print(expr).text


def expressions(exprs: Sequence[Expr], names: Mapping[str, str]) -> str:
    """A tuple of expressions."""
    inner = ", ".join(expression(e, names) for e in exprs)
    return f"({inner},)" if len(exprs) == 1 else f"({inner})"
