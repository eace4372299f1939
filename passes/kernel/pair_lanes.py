"""Lanes that compute two neighbours each, where both read the same.

Twice as many pixels, each next to its copy, are `y[i] = x[i floordiv 2]`: lane i of a GPU reads what lane i + 1 reads,
so that no instruction loads neighbours. Over half as many lanes, which store `y[2*i]` and `y[2*i + 1]`, each reads an
element of its own, and what it stores is a pair in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...dialects.sym import ZERO, as_expr, symbol
from ..counters import counter
from .axes import is_loop, named_in_bounds, substitute_axes
from .cost import is_unit
from .effects import is_plain_store, written_buffers
from .simplify_block import BlockSimplifier, remove_dead
from .transforms import append_body, set_range


def pair_lanes(function: kernel.FuncOp, chain: Sequence[kernel.ForOp]) -> bool:
    """Let each iteration of an axis of a perfect nest compute two neighbours, where both read the same; whether so.

    The iterations of the nest must not depend on each other. Its innermost block holds no loops, or nothing is done.
    """
    ops = list(chain[-1].body.block.ops)
    bounds = named_in_bounds(chain)
    for loop in (each for each in chain if each.axis.data not in bounds):
        if _may_pair(loop, ops) and counter("kernel-tile-pair-lanes"):
            _pair(loop, chain[-1].body.block)
            BlockSimplifier(written_buffers(function.body.block)).run(chain[-1].body.block)
            remove_dead(chain[-1].body.block)
            return True
    return False


def _may_pair(loop: kernel.ForOp, ops: Sequence[Operation]) -> bool:
    """Whether all stores are of neighbours along an axis, and reads of neighbours or, one at least, of one place."""
    length, axis = loop.hi.data.as_int(), loop.axis.data
    if loop.lo.data is not ZERO or length is None or length % 2:
        return False
    shared = False
    for op in ops:
        if is_loop(op) or isinstance(op, kernel.AssertOp | kernel.LocalOp):
            return False
        if isinstance(op, kernel.StoreOp) and not (is_plain_store(op) and is_unit(op.map.data[0].coefficient(axis))):
            return False
        if isinstance(op, kernel.LoadOp):
            if op.dynamic or any(not isinstance(use.operation, kernel.LoadOp) for use in op.buffer.uses):
                return False
            index = op.map.data[0]
            if axis in index.free_symbols and not is_unit(index.coefficient(axis)):
                if not _reads_one_place(op, axis):
                    return False
                shared = True
    return shared


def _reads_one_place(op: kernel.LoadOp, axis: str) -> bool:
    index, lane = op.map.data[0], symbol(axis)
    return index.subs({axis: lane * 2}) is index.subs({axis: lane * 2 + 1})


def _pair(loop: kernel.ForOp, body: Block) -> None:
    """Replace each iteration `i` by what `2*i` and `2*i + 1` do."""
    axis = loop.axis.data
    lane = symbol(axis)
    innermost = body.parent_op()
    assert isinstance(innermost, kernel.ForOp)
    second = innermost.clone().body.block
    substitute_axes(body, {axis: lane * 2})
    substitute_axes(second, {axis: lane * 2 + 1})
    append_body(body, second)
    set_range(loop, (axis, ZERO, as_expr(loop.hi.data // 2)))
