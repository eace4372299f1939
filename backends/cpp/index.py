"""Index expressions as C++ text over int64_t, with plain `/` and `%` where no operand can be negative."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...dialects.sym import Expr, Ranges, bounds, prove_nonneg
from ...dialects.sym.expr import Atom
from .code import PRODUCT, REPORT, SUM, UNARY, Code, binary, call

#: text of a symbol, an axis or a dynamic index operand
Lookup = Callable[[str], Code]


class IndexPrinter:
    """Prints expressions for one place in a kernel.

    lookup: gives the C++ expression of a symbol
    ranges: what is known there of symbols and axes
    need:   called with the prelude section that the text uses
    checked: whether products may overflow, so that what ranges say of a divisor may not hold; what divides by zero is
             reported then
    """

    def __init__(self, lookup: Lookup, ranges: Ranges, need: Callable[[str], None], checked: bool = False) -> None:
        self.checked = checked
        self.lookup = lookup
        self.ranges = ranges
        self.need = need

    def print(self, expr: Expr) -> Code:
        """The expression as C++."""
        value = expr.as_int()
        if value is not None:
            return Code(str(value), UNARY if value < 0 else 0)
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
            return Code(str(coefficient), UNARY if coefficient < 0 else 0)
        factors = [self._atom(atom) for atom in monomial]
        if coefficient == -1:
            factors[0] = Code(f"-{factors[0].at(UNARY)}", UNARY)
        elif coefficient != 1:
            factors.insert(0, Code(str(coefficient), UNARY if coefficient < 0 else 0))
        product = factors[0]
        for factor in factors[1:]:
            product = Code(f"{product.at(PRODUCT)}*{factor.at(UNARY)}", PRODUCT)
        return product

    def _atom(self, atom: Atom) -> Code:
        if atom.kind == "symbol":
            return self.lookup(atom.name)
        if atom.kind in ("min", "max"):
            return self._extremum(atom)
        left, right = atom.args
        dividend, divisor = self.print(left), self.print(right)
        positive, _ = bounds(right, self.ranges)
        divides = atom.kind == "floordiv"
        if self.checked and right.as_int() is None:
            self.need("checked_division")
            return call("div_checked" if divides else "rem_checked", Code(REPORT), dividend, divisor)
        if not self.checked and positive is not None and positive > 0 and prove_nonneg(left, self.ranges):
            return Code(f"{dividend.at(PRODUCT)} {'/' if divides else '%'} {divisor.at(UNARY)}", PRODUCT)
        self.need("floor_division")
        return call(f"{'div_floor' if divides else 'rem_floor'}<int64_t>", dividend, divisor)

    def _extremum(self, atom: Atom) -> Code:
        self.need("int_minmax")
        result = self.print(atom.args[0])
        for arg in atom.args[1:]:
            result = call(f"{atom.kind}_int<int64_t>", result, self.print(arg))
        return result


def plain_lookup(names: Mapping[str, Code]) -> Lookup:
    """A lookup in a mapping that holds every symbol."""
    return names.__getitem__
