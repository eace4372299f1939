"""Nests of a kernel for a GPU that programs share out, read from their mapping."""

from __future__ import annotations

from collections.abc import Iterator

from ...dialects import kernel
from .gpu_legality import box_of, is_serial
from .tiles import is_grid


def programs(function: kernel.FuncOp) -> Iterator[list[kernel.ForOp]]:
    """The loops on the grid of each nest that is spread over programs, outermost first."""
    for op in function.body.block.ops:
        if isinstance(op, kernel.ForOp) and is_grid(op):
            yield [loop for loop in box_of(op) if is_grid(loop)]


def has_programs(function: kernel.FuncOp) -> bool:
    """Whether iterations of a kernel may run at once at all: in one that is serial the order of stores decides."""
    return any(map(is_grid, function.body.block.ops)) or not is_serial(function)
