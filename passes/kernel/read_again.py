"""Rows that do not fit into the registers of a GPU's program, which it reads once in each of several loops."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.sym import Ranges
from .axes import Loop
from .cost import Sizes, element_bytes
from .tiles import is_grid, is_persistent


def bytes_read_again(function: kernel.FuncOp, sizes: Sizes, ranges: Ranges) -> int:
    """Bytes of the rows of one program that more than one of its loops reads, of a tiled kernel."""
    readers: dict[SSAValue, set[Loop]] = {}
    bytes_of: dict[SSAValue, int] = {}
    for op in function.walk():
        if not isinstance(op, kernel.LoadOp):
            continue
        around = _loops_around(op)
        path, used = [loop for loop in around if not is_grid(loop)], op.map.data[0].free_symbols
        own = any(is_grid(loop) and loop.axis.data in used for loop in around)
        if own and any(not is_persistent(loop, ranges) for loop in path):
            elements = prod(sizes.trips(loop) for loop in path if loop.axis.data in used)
            readers.setdefault(op.buffer, set()).add(path[0])
            bytes_of[op.buffer] = elements * element_bytes(op.buffer.type)
    return sum(size for buffer, size in bytes_of.items() if len(readers[buffer]) > 1)


def _loops_around(op: kernel.LoadOp) -> list[Loop]:
    """The loops around an access, outermost first."""
    path: list[Loop] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, Loop):
            path.insert(0, parent)
        parent = parent.parent_op()
    return path
