"""The pass `kernel-read-back`."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.sym import ONE, ZERO, Expr
from ..analysis.loops import Bound, axes_around, ops_in
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import untiled_for_cpu


class KernelReadBack(KernelPass, kernels=untiled_for_cpu):
    """Drop local buffers whose values also go to memory: a CPU reads them back from there, where its cache has them.

    Level: kernel.

    Precondition: in front of `kernel-map`; kernels that are tiled, or are not for a CPU, stay as they are.
    Guarantee: no local buffer holds, element by element, what the only store beside its own puts into a buffer of the
    kernel; its loads are from that buffer.

        kernel.for i1 in 0 to 4096 { ... kernel.store %e, %row[i1]  kernel.store %e, %y[4096*i0 + i1] }
        kernel.for i1 in 0 to 4096 { %f = kernel.load %row[i1] ... }
    becomes
        kernel.for i1 in 0 to 4096 { ... kernel.store %e, %y[4096*i0 + i1] }
        kernel.for i1 in 0 to 4096 { %f = kernel.load %y[4096*i0 + i1] ... }
    """

    name = "kernel-read-back"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Drop local buffers that hold what a buffer of the kernel holds as well, element by element."""
        for op in ops_in(function):
            if isinstance(op, kernel.LocalOp):
                _share(op)


def _share(op: kernel.LocalOp) -> None:
    accesses = accesses_of(op)
    if accesses is None:
        return
    store, loads = accesses
    twin = _twin(store)
    if twin is None or not all(_same_element(store, twin, load, op) for load in loads):
        return
    if not counter(KernelReadBack.name):
        return
    for load in loads:
        load.operands[0] = twin.buffer
        load.properties["map"] = twin.map
    for dead in (store, op):
        block = dead.parent
        assert block is not None
        block.erase_op(dead)


def accesses_of(op: kernel.LocalOp) -> tuple[kernel.StoreOp, list[kernel.LoadOp]] | None:
    """The store that fills a local buffer and the loads from it; None unless it is one plain store."""
    users = [use.operation for use in op.buffer.uses]
    stores = [user for user in users if isinstance(user, kernel.StoreOp)]
    loads = [user for user in users if isinstance(user, kernel.LoadOp)]
    return (stores[0], loads) if len(stores) == 1 and is_plain(stores[0]) else None


def is_plain(store: kernel.StoreOp) -> bool:
    """Whether a store always writes one value to the place that its index names."""
    return store.mask is None and not store.dynamic and store.kind.data == "set" and store.ordered is None


def _twin(store: kernel.StoreOp) -> kernel.StoreOp | None:
    """The only store to some buffer of the kernel, if it stores the same value at the same point."""
    block = store.parent
    assert block is not None
    for other in block.ops:
        if not isinstance(other, kernel.StoreOp) or other.value is not store.value or not is_plain(other):
            continue
        if isinstance(other.buffer.owner, Operation) or not same_kind(store, other):
            continue
        if sum(isinstance(use.operation, kernel.StoreOp) for use in other.buffer.uses) == 1:
            return other
    return None


def same_kind(store: kernel.StoreOp, other: kernel.StoreOp) -> bool:
    """Whether two stores write elements of one type."""
    left, right = store.buffer.type, other.buffer.type
    assert isinstance(left, kernel.BufferType) and isinstance(right, kernel.BufferType)
    return left.element == right.element


def _same_element(store: kernel.StoreOp, twin: kernel.StoreOp, load: kernel.LoadOp, op: kernel.LocalOp) -> bool:
    """Whether a load reads at the store's index, along loops that run the same axes, so that the twin's index fits."""
    if load.map != store.map or load.dynamic or load.mask is not None:
        return False
    written, read = axes_around(store, op.parent), axes_around(load, op.parent)
    index = store.map.data[0]
    if not is_row_major(index, written):
        return False
    used = twin.map.data[0].free_symbols & written.keys()
    return all(axis in index.free_symbols and read.get(axis) == written[axis] for axis in used)


def is_row_major(index: Expr, axes: dict[str, Bound]) -> bool:
    """Whether an index enumerates the axes it uses in some order, so that each point has a place of its own."""
    parts = index.split(axes)
    if parts is None or parts[1] is not ZERO:
        return False
    rest = dict(parts[0])
    step = ONE
    while rest:
        axis = next((name for name, coefficient in rest.items() if coefficient is step), None)
        if axis is None or axes[axis][0] is not ZERO:
            return False
        del rest[axis]
        step = step * axes[axis][1]
    return True
