"""Index expressions as Triton text. Triton's `//` and `%` on integers truncate, so they are used only where no
operand is negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...dialects.sym import Expr, Ranges, bounds, prove_nonneg, symbol
from ...dialects.sym.expr import Atom
from .kernel import MAX_INDEX
from .values import Dims, Value, union

_ATOM, _PRODUCT, _SUM = 0, 1, 2


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
class Code:
    """Text of an integer expression, the dimensions along which it varies, and how tightly it binds."""

    text: str
    dims: Dims = ()
    level: int = _ATOM

    def at(self, level: int) -> str:
        """The text as an operand of an operator of that level."""
        return self.text if self.level <= level else f"({self.text})"

    @property
    def closed(self) -> str:
        """The text as an operand of any operator."""
        return self.at(_ATOM)


class IndexPrinter:
    """Prints expressions for one place in a kernel.

    lookup: the value of a symbol, an axis, or a dynamic index operand
    ranges: what is known there of symbols and axes
    """

    def __init__(self, lookup: Callable[[str], Value], ranges: Ranges) -> None:
        self._lookup = lookup
        self._ranges = ranges

    def print(self, expr: Expr) -> Code:
        """The expression, terms in the order in which `sym` prints them."""
        value = expr.as_int()
        if value is not None:
            return Code(str(value), (), _ATOM if value >= 0 else _SUM)
        terms = [(self._term(monomial, abs(c)), c < 0) for monomial, c in expr.terms]
        first, negative = terms[0]
        if len(terms) == 1 and not negative:
            return first
        text = f"-{first.at(_ATOM)}" if negative else first.text
        for term, is_negative in terms[1:]:
            text += f" {'-' if is_negative else '+'} {term.at(_PRODUCT)}"
        return Code(text, union(*(t.dims for t, _ in terms)), _SUM)

    def _term(self, monomial: tuple[Atom, ...], coefficient: int) -> Code:
        factors = [self._atom(atom) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, Code(str(coefficient)))
        if len(factors) == 1:
            return factors[0]
        # left to right, and division inside parentheses: `4 * (i0 // 3)`
        text = " * ".join(f.at(_ATOM) for f in factors)
        return Code(text, union(*(f.dims for f in factors)), _PRODUCT)

    def _atom(self, atom: Atom) -> Code:
        if atom.kind == "symbol":
            value = self._lookup(atom.name)
            return Code(value.text, value.dims, _SUM if value.literal and value.text[0] == "-" else _ATOM)
        args = [self.print(arg) for arg in atom.args]
        dims = union(*(a.dims for a in args))
        if atom.kind in ("min", "max"):
            text = args[0].text
            for arg in args[1:]:
                text = f"tl.{atom.kind}imum({text}, {arg.text})"
            return Code(text, dims)
        dividend, divisor = args
        if self._is_plain(atom):
            operator = "//" if atom.kind == "floordiv" else "%"
            return Code(f"{dividend.at(_ATOM)} {operator} {divisor.at(_ATOM)}", dims, _PRODUCT)
        function = "floor_divide" if atom.kind == "floordiv" else "floor_modulo"
        return Code(f"prelude.{function}({dividend.text}, {divisor.text})", dims)

    def _is_plain(self, atom: Atom) -> bool:
        dividend, divisor = atom.args
        least, _ = bounds(divisor, self._ranges)
        return least is not None and least > 0 and prove_nonneg(dividend, self._ranges)
