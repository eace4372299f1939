"""What a program of a GPU does in one step, read from a tiled kernel: elements of a tile, bytes that are read again."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.sym import Ranges
from ..analysis.loops import Loop, loops_around, loops_in, ops_in
from ..analysis.nests import element_bytes
from ..analysis.sizes import Sizes
from .gpu_legality import is_innermost
from .tiles import is_grid, is_persistent, is_tiled, tile_of


def tiles_of_steps(function: kernel.FuncOp) -> list[int]:
    """Elements of the tile of each innermost loop of a kernel."""
    return [prod(map(tile_of, (*loops_around(op), op))) for op in loops_in(function.body.block) if is_innermost(op)]


def programs_of(function: kernel.FuncOp, sizes: Sizes) -> int:
    """Programs of the nest of a kernel that has most."""
    return max(_programs_of_nests(function, sizes), default=1)


def all_programs_of(function: kernel.FuncOp, sizes: Sizes) -> int:
    """Programs of all nests of a kernel, each of which has its own."""
    return max(sum(each for each in _programs_of_nests(function, sizes) if each > 1), 1)


def _programs_of_nests(function: kernel.FuncOp, sizes: Sizes) -> list[int]:
    found: list[int] = []
    for op in function.body.block.ops:
        programs = 1
        while isinstance(op, kernel.ForOp) and is_grid(op):
            programs *= -(-sizes.trips(op) // tile_of(op))
            op = op.body.block.first_op
        found.append(programs)
    return found


def waits_for_rows(function: kernel.FuncOp) -> bool:
    """Whether a program takes rows one after the other and its warps wait for each other at the end of each."""
    reductions = (op for op in loops_in(function.body.block) if isinstance(op, kernel.ReduceOp) and is_tiled(op))
    return any(isinstance(around := op.parent_op(), kernel.ForOp) and not is_grid(around) for op in reductions)


def takes_rows_at_once(function: kernel.FuncOp) -> bool:
    """Whether a program reduces several rows at once, one block of them after the other (`kernel-block-rows`)."""
    reductions = (op for op in loops_in(function.body.block) if isinstance(op, kernel.ReduceOp) and is_tiled(op))
    arounds = (op.parent_op() for op in reductions)
    return any(isinstance(op, kernel.ForOp) and is_tiled(op) and not is_grid(op) for op in arounds)


def loops_over_columns(function: kernel.FuncOp, ranges: Ranges) -> list[Loop]:
    """Loops that run tile by tile, of lanes of which each has a column of its own."""
    return [
        op
        for op in loops_in(function.body.block)
        if is_tiled(op) and not (is_grid(op) or is_persistent(op, ranges))
        if any(is_grid(loop) and is_tiled(loop) for loop in loops_around(op))
    ]


def bytes_read_again(function: kernel.FuncOp, sizes: Sizes, ranges: Ranges) -> int:
    """Bytes of the rows of one program that more than one of its loops reads."""
    if all(is_grid(loop) or is_persistent(loop, ranges) for loop in loops_in(function.body.block)):
        return 0
    readers: dict[SSAValue, set[Loop]] = {}
    bytes_of: dict[SSAValue, int] = {}
    for op in ops_in(function):
        if type(op) is not kernel.LoadOp:
            continue
        around = loops_around(op)
        path, used = [loop for loop in around if not is_grid(loop)], op.map.data[0].free_symbols
        own = any(is_grid(loop) and loop.axis.data in used for loop in around)
        if own and any(not is_persistent(loop, ranges) for loop in path):
            spans = [tile_of(loop) if is_grid(loop) else sizes.trips(loop) for loop in around if loop.axis.data in used]
            readers.setdefault(op.buffer, set()).add(path[0])
            bytes_of[op.buffer] = prod(spans) * element_bytes(op.buffer.type)
    return sum(size for buffer, size in bytes_of.items() if len(readers[buffer]) > 1)
