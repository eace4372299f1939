"""The pass `kernel-interleave-lanes`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import CmpiOp, SelectOp
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, MapAttr, SymAttr, as_expr, symbol
from ..analysis.effects import is_plain_store
from ..analysis.loops import is_loop, named_in_bounds, substitute_axes
from ..counters import counter
from .gpu_legality import flat_nests
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_for_gpu
from .transforms import set_range

#: places that one iteration stores, side by side; two are stored as one word
LEAST, MOST = 3, 4


class KernelInterleaveLanes(KernelPass, kernels=free_for_gpu):
    """Give each place that a GPU kernel stores a lane, where one iteration stores several side by side (vectorisation).

    Level: kernel.

    Precondition: in front of `kernel-map`; kernels that are tiled, or are not for a GPU, stay as they are.
    Guarantee: if each iteration of an axis of a nest that programs share out stores three or four places side by
    side, in every buffer that it stores to, then the axis is three or four times as long, and an iteration stores
    one place of each buffer. Lanes over `i` that store `y[3*i]`, `y[3*i + 1]` and `y[3*i + 2]` touch each line of
    memory three times. Lanes over `j = 3*i + k` store `y[j]` and touch it once. Each lane computes the values of
    all three places and selects one, because arithmetic costs less than memory that is touched in pieces. Two
    places are stored as one word, so such nests stay as they are.

        kernel.for i0 in 0 to 32 { ... kernel.store %a, %y[3*i0] ... %y[3*i0 + 1] ... %y[3*i0 + 2] }
    becomes
        kernel.for i0 in 0 to 96 { ... %k = kernel.index i0 mod 3 ... %v = arith.select ... kernel.store %v, %y[i0] }
    """

    name = "kernel-interleave-lanes"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Interleave lanes of every kernel that will be for a GPU."""
        for chain in flat_nests(function, lambda chain: _interleavable(chain) is not None):
            found = _interleavable(chain)
            if found is not None and counter(self.name):
                _interleave(chain[-1].body.block, *found)


def _interleavable(chain: Sequence[kernel.ForOp]) -> tuple[kernel.ForOp, list[list[kernel.StoreOp]]] | None:
    """The loop of a perfect nest for whose iterations all stores are of places side by side, and these in order."""
    block = chain[-1].body.block
    stores = [op for op in block.ops if isinstance(op, kernel.StoreOp)]
    if not stores or not all(map(_is_plain, stores)) or any(map(_prevents, block.ops)):
        return None
    bounds = named_in_bounds(chain)
    for loop in (each for each in chain if each.lo.data is ZERO and each.axis.data not in bounds):
        groups = _groups(stores, loop)
        if groups:
            return loop, groups
    return None


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
