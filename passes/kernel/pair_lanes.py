"""The pass `kernel-pair-lanes`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...dialects.sym import ZERO, as_expr, symbol
from ..analysis.effects import is_plain_store, written_buffers
from ..analysis.loops import is_loop, named_in_bounds, substitute_axes
from ..analysis.nests import is_unit
from ..counters import counter
from .conditions import resolve_numbers
from .gpu_legality import flat_nests
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_for_gpu
from .simplify_block import BlockSimplifier, remove_dead
from .transforms import append_body, set_range


class KernelPairLanes(KernelPass, kernels=free_for_gpu):
    """Let a lane of a GPU compute two neighbours, where both read the same (thread coarsening).

    Level: kernel.

    Precondition: in front of `kernel-map`; kernels that are tiled, or are not for a GPU, stay as they are.
    Guarantee: an axis of a nest that programs share out is half as long, and an iteration does what two did, if all
    stores are of neighbours along the axis, if loads are of neighbours or of one place for both, and if one load at
    least is of one place for both. An image of twice the width, `y[i] = x[i floordiv 2]`, is such a nest. There
    lanes 2i and 2i + 1 read one element, so that no instruction loads neighbours. With half as many lanes each lane
    reads an element of its own and stores two neighbours.

        kernel.for i0 in 0 to 128 { %v = kernel.load %x[i0 floordiv 2]  kernel.store %v, %y[i0] }
    becomes
        kernel.for i0 in 0 to 64 { %v = kernel.load %x[i0]  kernel.store %v, %y[2*i0]  kernel.store %v, %y[2*i0 + 1] }
    """

    name = "kernel-pair-lanes"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Pair lanes of every kernel that will be for a GPU."""
        for chain in flat_nests(function, lambda chain: _pairable(chain) is not None):
            loop, body = _pairable(chain), chain[-1].body.block
            if loop is not None and counter(self.name):
                _pair(loop, body)
                resolve_numbers(body)
                BlockSimplifier(written_buffers(function.body.block)).run(body)
                remove_dead(body)


def _pairable(chain: Sequence[kernel.ForOp]) -> kernel.ForOp | None:
    """The first loop of a perfect nest each iteration of which may compute two neighbours."""
    ops, bounds = list(chain[-1].body.block.ops), named_in_bounds(chain)
    return next((each for each in chain if each.axis.data not in bounds and _may_pair(each, ops)), None)


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
