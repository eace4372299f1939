"""Clean-up of straight-line code in a kernel's blocks: equal loads and pure ops once, stored values read directly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.effects import is_pure
from ...dialects.raw import ops_in, ops_of
from ..analysis.effects import written_buffers
from ..counters import counter

#: debug counter of every single simplification, whichever pass asks for them
COUNTER = "kernel-cse"

Key = tuple[Any, ...]
#: buffer -> place -> value that was stored there last
Stored = dict[SSAValue, dict[Key, SSAValue]]


def value_key(op: Operation) -> Key:
    """What tells two ops without regions apart: name, operands, properties and result types."""
    types = tuple(r.type for r in op.results)
    return op.name, tuple(op.operands), tuple(op.properties.items()), types


class BlockSimplifier:
    """Merges equal computations within a block and with those of enclosing blocks.

    `written` are the buffers that the kernel writes anywhere. A load from any other buffer is as good as a pure op;
    from a written one it can only be forwarded from a store in the same block, or one around it, with nothing in
    between.
    """

    def __init__(self, written: set[SSAValue]) -> None:
        self.written = written
        self.changed = False

    def run(self, block: Block, outer: dict[Key, Operation] | None = None, before: Stored | None = None) -> None:
        """Simplify a block and the blocks nested in it, knowing ops and stores that surround it."""
        known = dict(outer) if outer else {}
        stored: Stored = dict(before) if before else {}
        for op in ops_of(block):
            if op.regions:
                _forget(stored, op)
                for region in op.regions:
                    self.run(region.block, known, stored)
            elif isinstance(op, kernel.StoreOp):
                _note_store(stored, op)
            elif isinstance(op, kernel.LoadOp):
                self._load(block, op, known, stored)
            elif op.results and is_pure(op):
                self._merge(block, op, known)

    def _load(self, block: Block, op: kernel.LoadOp, known: dict[Key, Operation], stored: Stored) -> None:
        if op.buffer not in self.written:
            self._merge(block, op, known)
            return
        value = stored.get(op.buffer, {}).get(_place(op)) if op.mask is None else None
        if value is not None and counter(COUNTER):
            self._replace(block, op, (value,))

    def _merge(self, block: Block, op: Operation, known: dict[Key, Operation]) -> None:
        first = known.setdefault(value_key(op), op)
        if first is not op and counter(COUNTER):
            self._replace(block, op, first.results)

    def _replace(self, block: Block, op: Operation, values: Iterable[SSAValue]) -> None:
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)
        block.erase_op(op)
        self.changed = True


def _place(op: kernel.LoadOp | kernel.StoreOp) -> Key:
    return op.map, tuple(op.dynamic)


def _note_store(stored: Stored, op: kernel.StoreOp) -> None:
    """Remember what a plain store leaves; another place of the buffer may be the same one."""
    plain = op.mask is None and op.kind.data == "set" and op.atomic is None
    stored[op.buffer] = {_place(op): op.value} if plain else {}


def _forget(stored: Stored, op: Operation) -> None:
    """A nested loop may write what was remembered, in this iteration or the one before."""
    for inner in ops_in(op):
        if type(inner) is kernel.StoreOp:
            stored.pop(inner.buffer, None)


def simplify(block: Block) -> None:
    """Merge equal computations of a kernel's block, forward what was stored, and remove what is dead."""
    BlockSimplifier(written_buffers(block)).run(block)
    remove_dead(block)


def remove_dead(block: Block) -> bool:
    """Remove unused pure ops and loads, loops without effect, and local buffers that nothing reads; whether any."""
    removed = False
    while _sweep(block):
        removed = True
    return removed


def _sweep(block: Block) -> bool:
    removed = False
    for op in reversed(ops_of(block)):
        for region in op.regions:
            removed |= _sweep(region.block)
        if isinstance(op, kernel.LocalOp):
            removed |= _remove_unread_local(block, op)
        elif _is_dead(op) and counter(COUNTER):
            block.erase_op(op)
            removed = True
    return removed


def _is_dead(op: Operation) -> bool:
    if any(result.first_use is not None for result in op.results):
        return False
    if op.regions:
        last = op.regions[0].block.last_op
        return isinstance(op, kernel.ForOp | kernel.ReduceOp) and _is_effect_free(op) and last is not None
    return bool(op.results) and (isinstance(op, kernel.LoadOp) or is_pure(op))


def _is_effect_free(op: Operation) -> bool:
    return not any(isinstance(inner, kernel.StoreOp | kernel.AssertOp) for inner in ops_in(op))


def _remove_unread_local(block: Block, op: kernel.LocalOp) -> bool:
    users = [use.operation for use in op.buffer.uses]
    if not all(isinstance(user, kernel.StoreOp) for user in users) or not counter(COUNTER):
        return False
    for user in users:
        parent = user.parent
        assert parent is not None
        parent.erase_op(user)
    block.erase_op(op)
    return True
