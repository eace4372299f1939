"""Lanes folded where conditions cut their axis into equal parts that read the same: a lane computes an element of each.

`x * cos + cat(-x[.., 64:], x[.., :64]) * sin` over 128 elements reads all of x twice, half of it masked. Over 64 lanes
that compute elements `i` and `64 + i` each, both are read once and nothing is masked or selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.dialects.arith import CmpiOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, as_expr, symbol
from ..counters import counter
from .axes import is_loop, named_in_bounds, substitute_axes
from .effects import written_buffers
from .simplify_block import BlockSimplifier, remove_dead
from .split_lanes import PARTS, condition_on, resolve_conditions
from .transforms import append_body, set_range


def fold_lanes(function: kernel.FuncOp, chain: Sequence[kernel.ForOp], least: int) -> bool:
    """Fold the first axis of a perfect nest that can be, its parts of `least` elements or more; whether one can.

    The iterations of the nest must not depend on each other, and its innermost block holds no loops.
    """
    ops = list(chain[-1].body.block.ops)
    bounds = named_in_bounds(chain)
    for loop in (each for each in chain if each.axis.data not in bounds):
        parts = _parts(loop, ops)
        if parts and parts.step >= least and _shares(loop, ops, parts) and counter("kernel-tile-fold-lanes"):
            _fold(loop, chain[-1], parts)
            BlockSimplifier(written_buffers(function.body.block)).run(chain[-1].body.block)
            remove_dead(chain[-1].body.block)
            return True
    return False


def fold_rows(function: kernel.FuncOp, block: Block, least: int) -> None:
    """Fold loops of a block that work on a row each, if all that they read is only read, and they keep nothing."""
    written = written_buffers(function.body.block)
    for loop in [op for op in block.ops if isinstance(op, kernel.ForOp)]:
        ops = list(loop.body.block.ops)
        reads = (op.buffer for op in ops if isinstance(op, kernel.LoadOp))
        keeps = any(isinstance(op, kernel.StoreOp) and _is_local(op.buffer) for op in ops)
        if not (keeps or any(map(is_loop, ops)) or any(buffer in written for buffer in reads)):
            fold_lanes(function, [loop], least)


def _is_local(buffer: SSAValue) -> bool:
    return isinstance(buffer.type, kernel.BufferType) and buffer.type.local


def _parts(loop: kernel.ForOp, ops: Sequence[Operation]) -> range | None:
    """Where the equal parts of an axis start, and where it ends; None if conditions cut it in others."""
    length = loop.hi.data.as_int()
    if loop.lo.data is not ZERO or length is None:
        return None
    cuts = {found[0] for op in ops if (found := condition_on(op, loop)) is not None and 0 < found[0] < length}
    count = len(cuts) + 1
    if not 1 < count <= PARTS or length % count:
        return None
    parts = range(0, length + 1, length // count)
    return parts if cuts == set(parts[1:-1]) else None


def _shares(loop: kernel.ForOp, ops: Sequence[Operation], parts: range) -> bool:
    """Whether two parts read the same places of a buffer that the kernel only reads, every lane another one."""
    reads = [_reads(loop, ops, start) for start in parts[:-1]]
    return any(not one.isdisjoint(other) for one, other in combinations(reads, 2))


def _reads(loop: kernel.ForOp, ops: Sequence[Operation], start: int) -> set[tuple[SSAValue, Expr]]:
    axis = loop.axis.data
    found: set[tuple[SSAValue, Expr]] = set()
    for op in ops:
        if isinstance(op, kernel.LoadOp) and not op.dynamic and axis in (index := op.map.data[0]).free_symbols:
            only_read = all(isinstance(use.operation, kernel.LoadOp) for use in op.buffer.uses)
            if only_read and _is_read(op, loop, start):
                found.add((op.buffer, index.subs({axis: symbol(axis) + as_expr(start)})))
    return found


def _is_read(op: kernel.LoadOp, loop: kernel.ForOp, start: int) -> bool:
    """Whether a load reads memory in the part that begins at `start`, as far as conditions on the axis tell."""
    if op.mask is None:
        return True
    found = condition_on(op.mask.owner, loop) if isinstance(op.mask.owner, CmpiOp) else None
    return found is None or (start < found[0]) == found[1]


def _fold(loop: kernel.ForOp, innermost: kernel.ForOp, parts: range) -> None:
    axis = loop.axis.data
    copies = [innermost.clone() for _ in parts[1:-1]]
    for start, part in zip(parts, (innermost, *copies), strict=False):
        block = part.body.block
        resolve_conditions(block, loop, start)
        if part is not innermost:
            substitute_axes(block, {axis: symbol(axis) + as_expr(start)})
            append_body(innermost.body.block, block)
    set_range(loop, (axis, ZERO, as_expr(parts.step)))
