"""Local buffers as a GPU's register tiles: which loops are around their accesses, and which fit."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...dialects.sym import Expr, Ranges, symbol
from ..analysis.loops import Loop, loops_around, ops_in
from .tiles import extent_of, is_persistent


def locals_of(function: kernel.FuncOp) -> list[kernel.LocalOp]:
    """The local buffers of a kernel."""
    return [op for op in ops_in(function) if type(op) is kernel.LocalOp]


def fits_registers(op: kernel.LocalOp, ranges: Ranges) -> bool:
    """Whether every element that is read lies in a tile of the program when it is read.

    So it is where all loops between the buffer and its accesses are covered by one tile each, those aside that carry
    the buffer, and where an element is read in the iteration that stored it.
    """
    block = op.parent
    assert block is not None
    stores = users_of(op, kernel.StoreOp)
    for store in stores:
        if store.mask is not None or not (store.kind.data == "set" or adds_lanes(store)):
            return False
    carrying = carrying_loops(op)
    loops = {user: loops_around(user, block) for user in (*stores, *users_of(op, kernel.LoadOp))}
    if all(is_persistent(loop, ranges) or loop in carrying for around in loops.values() for loop in around):
        return all(_aligned(stores, load, carrying) for load in users_of(op, kernel.LoadOp))
    return len(stores) == 1 and all(
        _same_step(stores[0], load) and load.map == stores[0].map for load in users_of(op, kernel.LoadOp)
    )


def adds_lanes(store: kernel.StoreOp) -> bool:
    """Whether lanes add to what they share in registers."""
    return store.kind.data == "add" and store.atomic is not None


def _same_step(store: kernel.StoreOp, load: kernel.LoadOp) -> bool:
    """Whether a load is in the block of a store, or in what a scan does with running values while its body stores."""
    scan = load.parent_op()
    return load.parent is store.parent or (
        isinstance(scan, kernel.ScanOp) and load.parent is scan.then.block and store.parent is scan.body.block
    )


def carrying_loops(op: kernel.LocalOp) -> set[Loop]:
    """The loops that carry a local buffer: an iteration loads what the one before has stored, or what stood before all.

    They run one after the other, not in lanes, and access places that do not depend on their axes.
    """
    block = op.parent
    assert block is not None
    stores, loads = users_of(op, kernel.StoreOp), users_of(op, kernel.LoadOp)
    axes = frozenset[str]().union(*(user.map.data[0].free_symbols for user in (*stores, *loads)))
    readers = (*loads, *filter(adds_lanes, stores))
    read = {loop for reader in readers for loop in loops_around(reader, block)}
    return {
        loop
        for store in stores
        for loop in loops_around(store, block)
        if isinstance(loop, kernel.ForOp)
        and loop in read
        and loop.tile is None
        and loop.mapping.data == "serial"
        and loop.axis.data not in axes
        and any(_lies_before(other, loop, block) for other in stores)
    }


def _lies_before(op: Operation, loop: Loop, block: Block) -> bool:
    """Whether an op is, or lies in, an op of a block in front of the one that a loop is or lies in."""
    first, second = (next(iter(loops_around(each, block)), each) for each in (op, loop))
    return first.is_before_in_block(second)


def users_of(op: kernel.LocalOp, kind: type) -> list:  # pyright: ignore[reportMissingTypeArgument]
    """The loads or the stores of a local buffer."""
    return [use.operation for use in op.buffer.uses if isinstance(use.operation, kind)]


def _aligned(stores: list[kernel.StoreOp], load: kernel.LoadOp, carrying: set[Loop]) -> bool:
    """Whether lanes read what the same lanes stored: equal indices, but for the names of axes over one range.

    Lanes that add to what they share, and axes of one element, tell no elements apart.
    """
    local = load.buffer.owner
    assert isinstance(local, kernel.LocalOp) and local.parent is not None
    block = local.parent
    axes = [loop for loop in _telling_apart(load, block) if loop not in carrying]
    if load.dynamic:
        return False
    for store in stores:
        own = [loop for loop in _telling_apart(store, block) if loop not in carrying]
        if store.dynamic or len(own) != len(axes):
            return False
        if any(bounds_of(a) != bounds_of(b) or a.tile != b.tile for a, b in zip(own, axes, strict=True)):
            return False
        names = {a.axis.data: symbol(b.axis.data) for a, b in zip(own, axes, strict=True)}
        if store.map.data[0].subs(names) is not load.map.data[0]:
            return False
    return True


def _telling_apart(access: kernel.LoadOp | kernel.StoreOp, block: Block) -> list[Loop]:
    """The loops in a block around an access whose iterations may access elements of their own."""
    own = access.map.data[0].free_symbols
    shares = isinstance(access, kernel.StoreOp) and adds_lanes(access)
    return [
        loop
        for loop in loops_around(access, block)
        if loop.axis.data in own or not (shares or extent_of(loop).as_int() == 1)
    ]


def bounds_of(op: Loop) -> tuple[Expr, Expr]:
    """Lower and upper bound of a loop's axis."""
    return op.lo.data, op.hi.data
