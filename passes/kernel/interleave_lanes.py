"""Lanes for places that lie side by side, where one iteration stores several of them: each lane stores one.

`torch.stack((a, b), -1)` stores `y[2*i]` and `y[2*i + 1]`. Over `i` a GPU's lanes store every other place, twice. Over
`j = 2*i + k` lane `j` stores `y[j]`, which is of the one or the other kind: both are computed, for arithmetic costs
less than memory that is touched in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import CmpiOp, SelectOp
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, MapAttr, SymAttr, as_expr, symbol
from ..counters import counter
from .axes import is_loop, named_in_bounds, substitute_axes
from .effects import is_plain_store
from .transforms import set_range

#: places that one iteration stores, side by side; two are stored as one word
LEAST, MOST = 3, 4


def interleave_lanes(chain: Sequence[kernel.ForOp]) -> bool:
    """Give an axis of a perfect nest a lane for each place, where all stores are of places side by side; whether so.

    The iterations of the nest must not depend on each other. Its innermost block holds no loops, or nothing is done.
    """
    block = chain[-1].body.block
    stores = [op for op in block.ops if isinstance(op, kernel.StoreOp)]
    if not stores or not all(map(_is_plain, stores)) or any(map(_prevents, block.ops)):
        return False
    bounds = named_in_bounds(chain)
    for loop in (each for each in chain if each.lo.data is ZERO and each.axis.data not in bounds):
        groups = _groups(stores, loop)
        if groups and counter("kernel-tile-interleave-lanes"):
            _interleave(block, loop, groups)
            return True
    return False


def _is_plain(op: kernel.StoreOp) -> bool:
    is_read = any(isinstance(use.operation, kernel.LoadOp) for use in op.buffer.uses)
    return is_plain_store(op) and not is_read


def _prevents(op: Operation) -> bool:
    return is_loop(op) or isinstance(op, kernel.AssertOp | kernel.LocalOp)


def _groups(stores: Sequence[kernel.StoreOp], loop: kernel.ForOp) -> list[list[kernel.StoreOp]]:
    """The stores of each buffer in the order of their places, if those are all `count*axis + 0, 1, ..`; else []."""
    by_buffer: dict[SSAValue, list[kernel.StoreOp]] = {}
    for op in stores:
        by_buffer.setdefault(op.buffer, []).append(op)
    groups = [_in_order(group, loop.axis.data) for group in by_buffer.values()]
    count = len(groups[0])
    return groups if LEAST <= count <= MOST and all(len(group) == count for group in groups) else []


def _in_order(group: Sequence[kernel.StoreOp], axis: str) -> list[kernel.StoreOp]:
    count, places = len(group), {}
    first = group[0].map.data[0]
    for op in group:
        index = op.map.data[0]
        offset, step = (index - first).as_int(), index.coefficient(axis)
        if offset is None or step is None or step.as_int() != count:
            return []
        places[offset] = op
    least = min(places)
    return [places[least + k] for k in range(count)] if set(places) == set(range(least, least + count)) else []


def _interleave(block: Block, loop: kernel.ForOp, groups: Sequence[Sequence[kernel.StoreOp]]) -> None:
    axis, count = loop.axis.data, len(groups[0])
    lane = symbol(axis)
    rests = [group[0].map.data[0].subs({axis: ZERO}) for group in groups]
    substitute_axes(block, {axis: lane // count})
    last = block.last_op
    assert last is not None
    position = _index(block, last, lane % count)
    for group, rest in zip(groups, rests, strict=True):
        value = group[-1].value
        for number, op in enumerate(group[:-1]):
            here = CmpiOp(position, _index(block, last, as_expr(number)), "eq")
            chosen = SelectOp(here.result, op.value, value)
            block.insert_ops_before((here, chosen), last)
            value = chosen.result
        store = kernel.StoreOp.of(value, group[0].buffer, MapAttr.of(rest + lane), location=group[0].location)
        block.insert_op_before(store, last)
        for op in group:
            block.erase_op(op)
    set_range(loop, (axis, ZERO, loop.hi.data * count))


def _index(block: Block, last: Operation, expr: Expr) -> SSAValue:
    op = kernel.IndexOp.create(operands=(), properties={"expr": SymAttr.of(expr)}, result_types=(i64,))
    block.insert_op_before(op, last)
    return op.value
