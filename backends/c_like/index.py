"""Index expressions over int64_t, with plain `/` and `%` where no operand can be negative."""

from __future__ import annotations

from dataclasses import field

from typing_extensions import override

from ...dialects.sym import Ranges
from ...dialects.sym.expr import Atom
from ...records import dataclass
from ..printing.code import PRODUCT, UNARY, Code, call
from ..printing.index import IndexSyntax
from .language import Needs
from .literals import REPORT


@dataclass(frozen=True)
class CIndices(IndexSyntax):
    """How C spells them.

    need:    notes the sections of the support code that the text uses
    checked: whether products may overflow, so that what ranges say of a divisor may not hold; what divides by zero is
             reported then
    """

    need: Needs = field(kw_only=True)
    checked: bool = False

    @staticmethod
    def of(need: Needs, checked: bool) -> CIndices:
        """The syntax for one kernel."""
        return CIndices("*", " / ", " % ", PRODUCT, UNARY, need=need, checked=checked)

    @override
    def extremum(self, kind: str, arguments: list[Code]) -> Code:
        self.need("int_minmax")
        result, *rest = arguments
        for argument in rest:
            result = call(self.need.language.generic(f"{kind}_int", "int64_t"), result, argument)
        return result

    @override
    def is_plain(self, atom: Atom, ranges: Ranges) -> bool:
        return not self.checked and super().is_plain(atom, ranges)

    @override
    def floored(self, divides: bool, dividend: Code, divisor: Code, constant: bool) -> Code:
        if self.checked and not constant:
            self.need("checked_division")
            return call("div_checked" if divides else "rem_checked", Code(REPORT), dividend, divisor)
        self.need("floor_division")
        function = self.need.language.generic("div_floor" if divides else "rem_floor", "int64_t")
        return call(function, dividend, divisor)
