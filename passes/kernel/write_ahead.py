"""The pass `kernel-write-ahead`."""

from __future__ import annotations

from xdsl.ir import BlockArgument, SSAValue

from ...dialects import kernel
from ...dialects.sym import MapAttr
from ...records import dataclass
from ..analysis.aliasing import stands_before
from ..analysis.loops import Bound, axes_around, ops_in
from ..analysis.nests import buffer_bytes
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .read_back import accesses_of, is_plain, is_row_major, same_kind
from .scheduled import untiled_for_cpu


@dataclass(frozen=True)
class KernelWriteAhead(KernelPass, kernels=untiled_for_cpu):
    """Keep rows for later loops of a CPU kernel in the row of a result that those loops overwrite at last.

    Level: kernel.

    Precondition: in front of `kernel-map`; kernels that are tiled, or are not for a CPU, stay as they are.
    Guarantee: a local buffer that takes an eighth of the nearest cache or more, and whose elements are read for the
    last time before their results are stored in the same order, lies where these results will be. A row of its own
    would need half as much of the cache again, and the lines of the result would be fetched in the last loop, which
    has nothing else to do meanwhile. Smaller rows stay apart, so that their loops may run in lanes beside each other.

        kernel.for i1 in 0 to 4096 { ... kernel.store %e, %row[i1] }
        kernel.for i1 in 0 to 4096 { %f = kernel.load %row[i1] ... kernel.store %q, %y[4096*i0 + i1] }
    becomes
        kernel.for i1 in 0 to 4096 { ... kernel.store %e, %y[4096*i0 + i1] }
        kernel.for i1 in 0 to 4096 { %f = kernel.load %y[4096*i0 + i1] ... kernel.store %q, %y[4096*i0 + i1] }
    """

    name = "kernel-write-ahead"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Replace local buffers of at least `least_bytes` by rows of a result."""
        sizes, least_bytes = facts.sizes, facts.target.l1_bytes // 8
        for op in ops_in(function):
            if isinstance(op, kernel.LocalOp) and buffer_bytes(op.buffer, sizes) >= least_bytes:
                _move(op)


def _move(op: kernel.LocalOp) -> None:
    accesses = accesses_of(op)
    if accesses is None:
        return
    store, loads = accesses
    axes = axes_around(store, op.parent)
    index = store.map.data[0]
    if not is_row_major(index, axes) or not axes.keys() <= index.free_symbols:
        return
    if any(load.map != store.map or load.dynamic or load.mask is not None for load in loads):
        return
    if any(axes_around(load, op.parent) != axes for load in loads):
        return
    last = next((found for load in loads if (found := _overwriting(load, store, axes, loads))), None)
    if last is None or not counter(KernelWriteAhead.name):
        return
    for access in (store, *loads):
        access.operands[access.operands.index(op.buffer)] = last.buffer
        access.properties["map"] = MapAttr.of(last.map.data[0])
    block = op.parent
    assert block is not None
    block.erase_op(op)


def _overwriting(
    load: kernel.LoadOp, store: kernel.StoreOp, axes: dict[str, Bound], loads: list[kernel.LoadOp]
) -> kernel.StoreOp | None:
    """A store beside a load whose buffer nothing else uses, with elements in the order of the local buffer's.

    Its elements lie side by side as the local buffer's do: rows far apart could meet in a few sets of the cache.
    """
    block = load.parent
    assert block is not None
    for other in block.ops:
        if not isinstance(other, kernel.StoreOp) or not is_plain(other) or not same_kind(store, other):
            continue
        apart = other.map.data[0] - store.map.data[0]
        if not _is_result(other.buffer) or not apart.free_symbols.isdisjoint(axes):
            continue
        if all(stands_before(each, other) for each in loads):
            return other
    return None


def _is_result(buffer: SSAValue) -> bool:
    return isinstance(buffer, BlockArgument) and buffer.has_one_use()
