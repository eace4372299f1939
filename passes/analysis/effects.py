"""What ops of a kernel read and write, and which of their accesses are to one buffer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.effects import is_pure
from ...dialects.raw import operands_of, ops_of
from ...records import dataclass
from .loops import is_loop, ops_in
from .slices import backward_slice, inputs_of

#: what touches an element of a buffer
Access = kernel.LoadOp | kernel.StoreOp


@dataclass
class Effects:
    """Summary of an op with all that is nested in it."""

    uses: set[SSAValue] = field(default_factory=set)
    """Values used, own inner ones included."""
    reads: dict[SSAValue, list[kernel.LoadOp]] = field(default_factory=dict)
    writes: dict[SSAValue, list[kernel.StoreOp]] = field(default_factory=dict)

    @property
    def buffers(self) -> set[SSAValue]:
        """All buffers touched."""
        return self.reads.keys() | self.writes.keys()


def effects_of(op: Operation) -> Effects:
    """The effects of an op."""
    effects = Effects()
    _collect(op, effects)
    return effects


def _collect(op: Operation, effects: Effects) -> None:
    operands = operands_of(op)
    effects.uses.update(operands)
    if type(op) is kernel.LoadOp:
        effects.reads.setdefault(operands[0], []).append(op)
    elif type(op) is kernel.StoreOp:
        effects.writes.setdefault(operands[1], []).append(op)
    for region in op.regions:
        for inner in ops_of(region.block):
            _collect(inner, effects)


def is_local(buffer: SSAValue) -> bool:
    """Whether a buffer belongs to one iteration."""
    return isinstance(buffer.type, kernel.BufferType) and buffer.type.local


def is_plain_store(op: kernel.StoreOp) -> bool:
    """Whether a store sets a place that no other iteration stores to, under no mask and at no dynamic index."""
    may_meet = op.atomic is not None or op.ordered is not None
    return op.mask is None and not op.dynamic and op.kind.data == "set" and not may_meet


def written_buffers(block: Block) -> set[SSAValue]:
    """Buffers that some store in a block, or nested in it, writes."""
    return {operands_of(op)[1] for outer in ops_of(block) for op in ops_in(outer) if type(op) is kernel.StoreOp}


def is_invariant(op: Operation, axes: Collection[str], written: Collection[SSAValue]) -> bool:
    """Whether an op gives one value for all values of some axes, if its operands do; `written` buffers change."""
    if isinstance(op, kernel.LoadOp):
        return op.buffer not in written and op.map.data[0].free_symbols.isdisjoint(axes)
    if isinstance(op, kernel.IndexOp):
        return op.expr.data.free_symbols.isdisjoint(axes)
    return not op.regions and len(op.results) > 0 and is_pure(op)


def conflicts(first: Effects, second: Effects) -> list[tuple[Access, Access]]:
    """Pairs of accesses to one buffer of which at least one writes."""
    pairs: list[tuple[Access, Access]] = []
    for buffer, stores in first.writes.items():
        others = [*second.reads.get(buffer, ()), *second.writes.get(buffer, ())]
        pairs.extend((store, other) for store in stores for other in others)
    for buffer, stores in second.writes.items():
        pairs.extend((load, store) for load in first.reads.get(buffer, ()) for store in stores)
    return pairs


def meeting_stores(op: Operation) -> list[kernel.StoreOp]:
    """Stores in an op whose iterations may meet, to be combined or to win by their order."""
    stores = [inner for inner in ops_in(op) if type(inner) is kernel.StoreOp]
    return [store for store in stores if store.atomic is not None or store.ordered is not None]


def independent_nests(block: Block) -> set[Operation]:
    """The `for` nests of a block that may have programs of their own.

    A nest must need no loop's result, and share no written buffer with anything beside it; nor must what it needs from
    its block, loads included: each program runs that again, at any time.
    """
    ops = [op for op in ops_of(block) if not isinstance(op, kernel.YieldOp)]
    effects = {op: effects_of(op) for op in ops}
    found: set[Operation] = set()
    for op in ops:
        if isinstance(op, kernel.ForOp):
            own = {op, *needed_by(op, block)}
            others = [other for other in ops if other not in own]
            apart = not any(conflicts(effects[each], effects[other]) for each in own for other in others)
            alone = not any(conflicts(effects[op], effects[each]) for each in own if each is not op)
            if apart and alone and not any(each is not op and is_loop(each) for each in own):
                found.add(op)
    return found


def needed_by(nest: Operation, block: Block) -> set[Operation]:
    """The ops of a block whose results a nest in it uses, and those that they use in turn."""
    return set(backward_slice(inputs_of(nest), lambda op: op.parent is block))
