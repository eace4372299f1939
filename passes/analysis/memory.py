"""Which values of a function share memory, who may write it, and who may keep it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.effects import has_side_effect
from ...dialects.loop import AssertOp, FusionOp, GenerateOp, ScanOp, ScatterOp, ViewOp, yielded
from ...dialects.raw import ops_of
from ..common.functional_calls import functional_call, is_wrapper

NESTS = frozenset((GenerateOp, ScanOp, ScatterOp))
"""Ops that a kernel computes; a `loop.fusion` groups them."""

UNSAFE_VIEWS = frozenset(("_unsafe_view", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"))
"""ATen ops that return views although their schemas say nothing of it: autograd takes their results for new tensors."""


def has_assert(op: Operation) -> bool:
    """Whether an op of the loop level may report an error of the program."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if type(inner) is AssertOp or (inner.regions and has_assert(inner)):
                    return True
    return False


def written_value(op: Operation) -> SSAValue | None:
    """The tensor that `aten.copy_` writes; None for any other op."""
    return op.operands[0] if op.name == "aten.copy_" else None


def written_values(op: Operation) -> tuple[SSAValue, ...]:
    """The tensors that an op writes: `aten.copy_` its target, and what an operator writes that is in a wrapper.

    A wrapper writes copies, and `host-reinplace` what it is given, where nothing reads that later. So reads in front of
    one stay there.
    """
    written = written_value(op)
    if written is not None:
        return (written,)
    call = functional_call(op) if is_wrapper(op) else None
    return () if call is None else tuple(call.bases)


def roots(value: SSAValue) -> tuple[SSAValue, ...]:
    """The values whose memory `value` may be a view of; itself when it has its own."""
    owner = value.owner
    if isinstance(owner, Block):
        return (value,)
    if type(owner) is ViewOp:
        return roots(owner.operands[0])
    if type(owner) is ScatterOp and owner.in_place is not None:
        return roots(owner.operands[0])
    if type(owner) is FusionOp:
        return roots_in_fusion(value, owner)
    if owner.name.startswith("aten.") and may_return_alias(owner):
        return tuple(dict.fromkeys(root for operand in owner.operands for root in roots(operand)))
    return (value,)


def roots_in_fusion(value: SSAValue, fusion: FusionOp) -> tuple[SSAValue, ...]:
    """Roots of a fusion's result: memory from outside where a member writes it in place, else the result itself."""
    inner = yielded(fusion.body)[fusion.results.index(value)]
    while type(inner.owner) is ScatterOp and inner.owner.in_place is not None:
        inner = inner.owner.operands[0]
    outside = isinstance(inner.owner, Block) or inner.owner.parent is not fusion.body.blocks.first
    return roots(inner) if outside else (value,)


_MAY_ALIAS: dict[type[Operation], bool] = {}


def may_return_alias(op: Operation) -> bool:
    """Whether a result of an ATen call may share memory with an operand."""
    found = _MAY_ALIAS.get(type(op))
    if found is None:
        found = _MAY_ALIAS[type(op)] = _class_may_alias(type(op))
    return found


def _class_may_alias(cls: type[Operation]) -> bool:
    # a custom op must not return its inputs, torch says
    return issubclass(cls, AtenOp) and (cls.schema.is_view or cls.schema.is_mutable or cls.packet in UNSAFE_VIEWS)


def escaping(block: Block) -> set[SSAValue]:
    """Values that a function returns, and those whose memory it returns a view of."""
    last = block.last_op
    if last is None or not last.has_trait(IsTerminator):
        return set()
    found = set(last.operands)
    found.update(root for operand in last.operands for root in roots(operand))
    return found


def possibly_written(block: Block) -> set[SSAValue]:
    """Values, and those whose memory they view, that some op of a block writes or may write.

    A call that is not pure may write every tensor that it gets.
    """
    written: set[SSAValue] = set()
    for op in ops_of(block):
        if isinstance(op, AtenOp) and op.schema.is_mutable:
            written.update(op.written)
        elif type(op) is CallOp and has_side_effect(op):
            written.update(value for value in op.operands if isinstance(value.type, TensorType))
    return written | {root for value in written for root in roots(value)}


def escapes(value: SSAValue) -> bool:
    """Whether the function returns `value` or a view of it, so that the caller gets its memory."""
    for use in value.uses:
        user = use.operation
        if user.has_trait(IsTerminator):
            return True
        if may_return_alias(user) and any(escapes(result) for result in user.results):
            return True
    return False


def is_returned(value: SSAValue) -> bool:
    """Whether the function returns `value` itself."""
    return any(use.operation.has_trait(IsTerminator) for use in value.uses)


class Mutations:
    """Where ops write the memory of values: reads before see the old elements, and stay before; see `written_values`.

    False when nothing is written. Positions are those of ops in the block when this was built; they stay valid
    while ops are erased, and while those that are left keep their order.
    """

    def __init__(self, block: Block) -> None:
        self.writes: dict[SSAValue, list[int]] = {}
        self._position: dict[Operation, int] = {}
        ops = ops_of(block)
        if not any(op.name == "aten.copy_" or (type(op) is CallOp and is_wrapper(op)) for op in ops):
            return
        for position, op in enumerate(ops):
            self._position[op] = position
            for root in {root for written in written_values(op) for root in roots(written)}:
                self.writes.setdefault(root, []).append(position)

    def __bool__(self) -> bool:
        return bool(self.writes)

    def writes_to(self, value: SSAValue) -> bool:
        """Whether the memory of a value is ever written."""
        return bool(self.writes) and any(root in self.writes for root in roots(value))

    def epoch(self, value: SSAValue, op: Operation) -> int:
        """How many writes to the memory of `value` precede `op`."""
        if not self.writes:
            return 0
        position = self._position[op]
        return sum(write < position for root in roots(value) for write in self.writes.get(root, ()))

    def epochs(self, values: Iterable[SSAValue], op: Operation) -> Sequence[int]:
        """`epoch` of each value that is ever written; equal for two ops that see the same memory."""
        return [self.epoch(v, op) for v in values if self.writes_to(v)]

    def moves_past_write(self, values: Iterable[SSAValue], source: Operation, target: Operation) -> bool:
        """Whether reads of `values` by `source` would see other elements at the place of `target`."""
        if not self.writes:
            return False
        return any(self.epoch(v, source) != self.epoch(v, target) for v in values)

    def replace(self, old: Operation, new: Operation) -> None:
        """Let an op stand at the position of another."""
        if self.writes:
            self._position[new] = self._position[old]

    def crosses_any(self, source: Operation, target: Operation) -> bool:
        """Whether some write lies between two ops."""
        if not self.writes:
            return False
        low, high = sorted((self._position[source], self._position[target]))
        return any(low < write < high for writes in self.writes.values() for write in writes)
