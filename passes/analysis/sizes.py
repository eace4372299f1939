"""Likely values of sizes, for decisions that must not depend on them for correctness."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp

from ...dialects.sym import Expr, SymbolAttr

TYPICAL_SIZE = 64
"""Stands for a size that nothing is known of."""


class Estimates:
    """Likely values of size expressions, from the hints and bounds of a function's symbols."""

    def __init__(self, function: FuncOp) -> None:
        symbols = cast("ArrayAttr[SymbolAttr]", function.attributes.get("symbols", ArrayAttr([])))
        self.values: dict[str, int] = {}
        for symbol in symbols.data:
            low, high = symbol.data.min or 0, symbol.data.max or TYPICAL_SIZE
            self.values[symbol.data.name] = symbol.data.hint or max(low, min(high, TYPICAL_SIZE))
        self._known: dict[Expr, int] = {}

    def __getitem__(self, size: Expr) -> int:
        """A likely value, at least 1 unless the size is a known constant."""
        constant = size.as_int()
        if constant is not None:
            return constant
        found = self._known.get(size)
        if found is None:
            values = {name: self.values.get(name, TYPICAL_SIZE) for name in size.free_symbols}
            found = self._known[size] = max(int(size.evaluate(values)), 1)
        return found

    def product(self, sizes: Iterable[Expr]) -> int:
        """Likely number of points of a domain."""
        total = 1
        for size in sizes:
            total *= self[size]
        return total
