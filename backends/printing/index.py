"""Index expressions as text: one printer, which is told how a language spells products, quotients and extrema."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...dialects.sym import Expr, Ranges, bounds, prove_nonneg
from ...dialects.sym.expr import Atom
from ...records import dataclass
from .code import ATOM, PRODUCT, SUM, UNARY, Code, binary, call, integer

#: text of a symbol, an axis or a dynamic index operand
Lookup = Callable[[str], Code]


@dataclass(frozen=True)
class IndexSyntax:
    """How a language spells integer expressions.

    times, over, rest: operators, with the spaces around them
    left, right: how tightly their operands have to bind
    """

    times: str
    over: str
    rest: str
    left: int = ATOM
    right: int = ATOM

    def extremum(self, kind: str, arguments: list[Code]) -> Code:
        """The `min` or `max` of expressions."""
        return call(kind, *arguments)

    def plain(self, divides: bool, dividend: Code, divisor: Code) -> Code:
        """A quotient, or its rest, where no operand is negative."""
        operator = self.over if divides else self.rest
        return Code(f"{dividend.at(self.left)}{operator}{divisor.at(self.right)}", PRODUCT)

    def floored(self, divides: bool, dividend: Code, divisor: Code, constant: bool) -> Code:
        """The same, rounded to minus infinity, for any operands; `constant`: the divisor is no expression."""
        return self.plain(divides, dividend, divisor)

    def is_plain(self, atom: Atom, ranges: Ranges) -> bool:
        """Whether it is known that no operand of a quotient or rest is negative, nor the divisor zero."""
        dividend, divisor = atom.args
        least, _ = bounds(divisor, ranges)
        return least is not None and least > 0 and prove_nonneg(dividend, ranges)


class IndexPrinter:
    """Prints expressions for one place in a program, terms in the order in which `sym` prints them.

    lookup: gives the text of a symbol
    ranges: what is known there of symbols and axes
    syntax: how the language spells it
    known:  names of quotients and rests that were computed before
    """

    def __init__(
        self, lookup: Lookup, ranges: Ranges, syntax: IndexSyntax, known: Mapping[Atom, str] | None = None
    ) -> None:
        self.lookup = lookup
        self.ranges = ranges
        self.syntax = syntax
        self.known = known or {}

    def print(self, expr: Expr) -> Code:
        """The expression."""
        value = expr.as_int()
        if value is not None:
            return integer(value)
        total: Code | None = None
        for monomial, coefficient in expr.terms:
            if total is None:
                total = self._term(monomial, coefficient)
            elif coefficient < 0:
                total = binary("-", SUM, total, self._term(monomial, -coefficient))
            else:
                total = binary("+", SUM, total, self._term(monomial, coefficient))
        assert total is not None
        return total

    def _term(self, monomial: tuple[Atom, ...], coefficient: int) -> Code:
        if not monomial:
            return integer(coefficient)
        factors = [self._atom(atom) for atom in monomial]
        if coefficient == -1:
            factors[0] = Code(f"-{factors[0].at(UNARY)}", UNARY)
        elif coefficient != 1:
            factors.insert(0, integer(coefficient))
        first, *rest = factors
        if not rest:
            return first
        text = first.text if first.level <= UNARY else first.at(self.syntax.left)
        return Code(self.syntax.times.join((text, *(factor.at(self.syntax.right) for factor in rest))), PRODUCT)

    def _atom(self, atom: Atom) -> Code:
        if atom.kind == "symbol":
            return self.lookup(atom.name)
        if (name := self.known.get(atom)) is not None:
            return Code(name)
        arguments = [self.print(arg) for arg in atom.args]
        if atom.kind in ("min", "max"):
            return self.syntax.extremum(atom.kind, arguments)
        dividend, divisor = arguments
        divides = atom.kind == "floordiv"
        if self.syntax.is_plain(atom, self.ranges):
            return self.syntax.plain(divides, dividend, divisor)
        return self.syntax.floored(divides, dividend, divisor, atom.args[1].as_int() is not None)
