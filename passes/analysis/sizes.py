"""Likely values of sizes, and of bytes, for decisions that must not depend on them for correctness."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp

from ...dialects import host
from ...dialects.aten.types import ITEM_SIZES, TensorType, torch_name
from ...dialects.sym import Expr, SymbolAttr

if TYPE_CHECKING:
    from .loops import Loop

#: stands for a size that nothing is known of
TYPICAL = 256
#: bytes of an element of a type that only ATen knows
UNKNOWN_ITEM = 8


def likely_values(symbols: Iterable[SymbolAttr], given: Mapping[str, int] | None = None) -> dict[str, int]:
    """A value for each declared symbol: the given one, its hint, or a typical one that its declaration allows."""
    found: dict[str, int] = {}
    for symbol in symbols:
        d = symbol.data
        typical = max(d.min or 0, min(d.max if d.max is not None else TYPICAL, TYPICAL)) // d.divisor * d.divisor
        found[d.name] = (given or {}).get(d.name, d.hint if d.hint is not None else typical)
    return found


class Sizes:
    """Estimates of expressions: constants are exact, symbols have likely values.

    guesses: symbols whose value is an estimate of which nobody has seen a value
    """

    def __init__(self, values: Mapping[str, int] | None = None, guesses: Collection[str] = ()) -> None:
        self.values = values or {}
        self.guesses = guesses
        self._known: dict[Expr, int] = {}

    @staticmethod
    def of_function(function: FuncOp | host.FuncOp, given: Mapping[str, int] | None = None) -> Sizes:
        """By the values that are given, and the hints and bounds of a function's symbols."""
        declared = function.symbols if isinstance(function, host.FuncOp) else function.attributes.get("symbols")
        symbols = cast("ArrayAttr[SymbolAttr]", declared).data if declared is not None else ()
        guesses = {s.data.name for s in symbols if s.data.hint is None and s.data.name not in (given or {})}
        return Sizes(likely_values(symbols, given), guesses)

    def is_guess(self, expr: Expr) -> bool:
        """Whether an estimate rests on a symbol without a hint."""
        return any(name in self.guesses or name not in self.values for name in expr.free_symbols)

    @property
    def seen(self) -> dict[str, int]:
        """The symbols that had a value when the program was captured."""
        return {name: value for name, value in self.values.items() if name not in self.guesses}

    def of(self, expr: Expr) -> int:
        """An estimate of a size, at least 0."""
        constant = expr.as_int()
        if constant is not None:
            return max(constant, 0)
        found = self._known.get(expr)
        if found is None:
            values = {name: self.values.get(name, TYPICAL) for name in expr.free_symbols}
            try:
                found = max(int(expr.evaluate(values)), 0)
            except ZeroDivisionError:
                found = TYPICAL
            self._known[expr] = found
        return found

    def product(self, sizes: Iterable[Expr]) -> int:
        """An estimate of the number of points of a domain."""
        total = 1
        for size in sizes:
            total *= self.of(size)
        return total

    def trips(self, op: Loop) -> int:
        """An estimate of how often a loop runs.

        Where an outer axis decides, it is that axis's first iteration or a typical one, whichever has more: blocks of a
        short axis end before a typical one.
        """
        trips = op.hi.data - op.lo.data
        typical, unknown = self.of(trips), [name for name in trips.free_symbols if name not in self.values]
        return max(typical, self._in_first(trips, unknown)) if unknown else typical

    def _in_first(self, trips: Expr, axes: Iterable[str]) -> int:
        """The estimate in the first iteration of axes; 0 where something is divided by one."""
        try:
            return max(int(trips.evaluate({**self.values, **dict.fromkeys(axes, 0)})), 0)
        except ZeroDivisionError:
            return 0

    def elements(self, tensor: TensorType) -> int:
        """Elements of a tensor."""
        return self.product(tensor.shape)

    def bytes(self, tensor: TensorType) -> int:
        """Bytes of the elements of a tensor."""
        return self.elements(tensor) * item_bytes(tensor)


def item_bytes(tensor: TensorType) -> int:
    """Bytes of one element."""
    return ITEM_SIZES.get(torch_name(tensor.element), UNKNOWN_ITEM)
