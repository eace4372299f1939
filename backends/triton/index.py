"""Index expressions as Triton text. Triton's `//` and `%` on integers truncate, so they are used only where no
operand is negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typing_extensions import override

from ...dialects.sym import Expr, Ranges, bounds, prove_nonneg, symbol
from ...records import dataclass
from ..printing import code as printing
from ..printing.code import ATOM, UNARY, call
from ..printing.index import IndexPrinter, IndexSyntax
from .kernel import MAX_INDEX
from .values import Dims, Value


def may_overflow(expr: Expr, ranges: Ranges, extents: Sequence[Expr]) -> bool:
    """Whether a value, or what it divides or compares, may need more bits than offsets into buffers of such extents.

    Sums and products wrap, so that what they are made of need not fit.
    """
    if any(expr is symbol(name) for name in expr.free_symbols):
        return False
    least, most = bounds(expr, ranges)
    for limit, value in ((most, expr), (None if least is None else -least, -expr)):
        fits = limit is not None and limit <= MAX_INDEX
        if not fits and not any(prove_nonneg(extent - value, ranges) for extent in extents):
            return True
    return any(may_overflow(arg, ranges, extents) for arg in _arguments(expr))


def surely_overflows(expr: Expr, ranges: Ranges) -> bool:
    """Whether what an offset divides or compares needs more than 32 bits by constant bounds; the offset itself fits."""
    for arg in _arguments(expr):
        least, most = bounds(arg, ranges)
        if (least is not None and least < -MAX_INDEX) or (most is not None and most > MAX_INDEX):
            return True
        if surely_overflows(arg, ranges):
            return True
    return False


def _arguments(expr: Expr) -> list[Expr]:
    return [arg for monomial, _ in expr.terms for atom in monomial if atom.kind != "symbol" for arg in atom.args]


@dataclass(frozen=True)
class Code(printing.Code):
    """Text of an integer expression, and the dimensions along which it varies."""

    dims: Dims = ()

    @property
    def closed(self) -> str:
        """The text as an operand of any operator."""
        return self.at(ATOM)


class TritonIndices(IndexSyntax):
    """How Triton spells them: all operands are closed."""

    @override
    def extremum(self, kind: str, arguments: list[printing.Code]) -> printing.Code:
        result, *rest = arguments
        for argument in rest:
            result = call(f"tl.{kind}imum", result, argument)
        return result

    @override
    def floored(self, divides: bool, dividend: printing.Code, divisor: printing.Code, constant: bool) -> printing.Code:
        return call(f"prelude.{'floor_divide' if divides else 'floor_modulo'}", dividend, divisor)


_SYNTAX = TritonIndices(" * ", " // ", " % ")


def print_index(expr: Expr, lookup: Callable[[str], Value], ranges: Ranges) -> Code:
    """Print an expression for one place in a kernel.

    lookup: the value of a symbol, an axis, or a dynamic index operand
    ranges: what is known there of symbols and axes
    """
    dims: set[int] = set()

    def code(symbol: str) -> printing.Code:
        value = lookup(symbol)
        dims.update(value.dims)
        return printing.Code(value.text, UNARY if value.literal and value.text[0] == "-" else ATOM)

    found = IndexPrinter(code, ranges, _SYNTAX).print(expr)
    return Code(found.text, found.level, tuple(sorted(dims)))
