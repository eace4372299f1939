"""The pass `kernel-elide-casts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...dialects.scalar import NarrowOp, WidenOp
from ..counters import counter
from .simplify_block import remove_dead


@dataclass(frozen=True)
class KernelElideCasts(ModulePass):
    """Keep values of low precision in the type they are computed in, as long as they stay inside a kernel.

    Level: kernel.

    Precondition: `kernel-merge-loops`, which lets values meet, and before tiling.
    Guarantee: no `scalar.widen` of what `scalar.narrow` made from the same type, directly or through a local buffer:
    the buffer holds the wide values. What reaches memory is rounded; casts that the program wrote stay. With
    `emulate_precision_casts` nothing is done, and a kernel rounds wherever eager would.

        %n = scalar.narrow %x : f32 to bf16
        kernel.store %n, %row[i1]
        ...
        %v = kernel.load %row[i1]
        %w = scalar.widen %v : bf16 to f32
    becomes
        kernel.store %x, %row[i1]
        ...
        %w = kernel.load %row[i1]
    """

    name = "kernel-elide-casts"
    level: ClassVar[str] = "kernel"
    emulate_precision_casts: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Elide casts in every kernel."""
        if self.emulate_precision_casts:
            return
        for function in op.body.block.ops:
            if isinstance(function, kernel.FuncOp):
                elide_casts(function)


def elide_casts(function: kernel.FuncOp) -> None:
    """Elide casts in one kernel: locals first, which lets more casts meet."""
    ops = list(function.walk())
    if not any(isinstance(op, WidenOp) for op in ops):
        return
    for op in ops:
        if isinstance(op, kernel.LocalOp):
            _widen_local(op)
    for op in function.walk():
        if isinstance(op, WidenOp):
            _elide(op)
    while remove_dead(function.body.block):
        pass


def _elide(op: WidenOp) -> None:
    narrow = op.operands[0].owner
    if not isinstance(narrow, NarrowOp) or narrow.source_element != op.target_element:
        return
    if counter("kernel-elide-casts"):
        op.results[0].replace_all_uses_with(narrow.operands[0])


def _widen_local(op: kernel.LocalOp) -> None:
    """Let a local buffer hold what its stores narrow, if all of them narrow from one type."""
    users = [use.operation for use in op.buffer.uses]
    loads = [user for user in users if isinstance(user, kernel.LoadOp)]
    stores = [user for user in users if isinstance(user, kernel.StoreOp)]
    wide = _stored_type(stores)
    type_ = op.buffer.type
    if wide is None or not isinstance(type_, kernel.BufferType) or not counter("kernel-elide-casts"):
        return
    if any(load.mask is not None for load in loads) or any(store.kind.data != "set" for store in stores):
        return
    block = op.parent
    assert block is not None
    new = kernel.LocalOp.create(result_types=(kernel.BufferType.get(wide, type_.extent, True),), location=op.location)
    block.insert_op_before(new, op)
    for store in stores:
        narrow = store.value.owner
        assert isinstance(narrow, NarrowOp)
        store.operands[0] = narrow.operands[0]
    op.buffer.replace_all_uses_with(new.buffer)
    for load in loads:
        _reload(load, type_.element)
    block.erase_op(op)


def _stored_type(stores: list[kernel.StoreOp]) -> Attribute | None:
    """The type that everything stored is narrowed from."""
    owners: list[Operation | object] = [store.value.owner for store in stores]
    types = {owner.source_element if isinstance(owner, NarrowOp) else None for owner in owners}
    return types.pop() if len(types) == 1 else None


def _reload(load: kernel.LoadOp, narrow_type: Attribute) -> None:
    """Load the wide value, narrowed again for those that want it so."""
    block = load.parent
    assert block is not None
    new = kernel.LoadOp.of(load.buffer, load.map, tuple(load.dynamic), location=load.location)
    buffer = load.buffer.type
    assert isinstance(buffer, kernel.BufferType)
    narrow = NarrowOp.of(new.value, buffer.element, narrow_type)
    block.insert_ops_before([new, narrow], load)
    load.value.replace_all_uses_with(narrow.results[0])
    block.erase_op(load)
