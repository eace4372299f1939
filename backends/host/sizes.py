"""What a program computes of the sizes of its arguments alone: once for the same sizes, not in each call.

    def sizes(s0):                              # of the same s0 the same tuple, which is kept
        return (s0, 64), (64*s0, 64, 1), 3*((s0 + 1) // 2)

    def run(args):
        ...
        s0 = a0
        c0, c1, c2, = sizes(s0)

Layouts, grids, lengths and offsets of a model are few, for its layers are alike, and most calls are of sizes that an
earlier one had.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

from .constants import Constants

#: values that are computed in the program: the look-up costs as much
_FEW = 3
#: sets of sizes that a program keeps what it computed for
_KEPT = 256


def kept_for_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of integers that keeps its results for the sizes it was called with last."""
    return lru_cache(_KEPT)(function)


class SharedSizes:
    """The texts of one program that only symbols of its arguments decide, and the variables that hold their values."""

    def __init__(self) -> None:
        self._known: list[str] = []
        self._variables: dict[str, str] = {}
        self._place = 0

    def begin(self, symbols: list[str], place: int) -> None:
        """From line `place` on these variables of symbols are known."""
        self._known, self._place = symbols, place

    def share(self, text: str, symbols: Collection[str]) -> str:
        """The variable for an expression that mentions no variables but those of some `symbols`.

        Names and numbers stay as they are, and so does a text where one of the symbols is not known from the start.
        """
        if text.isidentifier() or text.isdecimal() or not symbols or not set(symbols).issubset(self._known):
            return text
        return self._variables.setdefault(text, f"c{len(self._variables)}")

    def insert(self, lines: list[str], constants: Constants) -> list[str]:
        """The lines of a program with those that give the variables their values."""
        if not self._variables:
            return lines
        own = [f"{variable} = {text}" for text, variable in self._variables.items()]
        if len(own) > _FEW:
            constants.fixed("kept_for_sizes", kept_for_sizes)
            own = [f"{', '.join(self._variables.values())}, = sizes({', '.join(self._known)})"]
        return [*lines[: self._place], *own, *lines[self._place :]]

    def function(self) -> str:
        """The function that computes them, where the program calls one."""
        if len(self._variables) <= _FEW:
            return ""
        values = "".join(f"        {text},\n" for text in self._variables)
        return f"@kept_for_sizes\ndef sizes({', '.join(self._known)}):\n    return (\n{values}    )\n\n\n"
