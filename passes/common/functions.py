"""Functions of a module, and what their symbols are known to be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from ...dialects.sym import Ranges, SymbolAttr

_NO_SYMBOLS: ArrayAttr[SymbolAttr] = ArrayAttr([])


def functions(module: ModuleOp) -> Iterator[tuple[FuncOp, Block]]:
    """The functions of a module that have a body, each with its one block."""
    for op in module.ops:
        if isinstance(op, FuncOp) and (block := op.body.blocks.first) is not None:
            yield op, block


def symbol_ranges(function: FuncOp) -> Ranges:
    """What the `symbols` attribute of a function says; passes over equal symbols share what was derived."""
    symbols = function.attributes.get("symbols", _NO_SYMBOLS)
    return _ranges(cast("ArrayAttr[SymbolAttr]", symbols))


@lru_cache(maxsize=16)
def _ranges(symbols: ArrayAttr[SymbolAttr]) -> Ranges:
    return Ranges.of_symbols(s.data for s in symbols.data)
