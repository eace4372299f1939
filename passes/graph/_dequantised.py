"""Values that take more memory than what they are made of by casts and arithmetic: dequantised weights."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.sym import Expr
from ...records import dataclass
from ..analysis.memory import UNSAFE_VIEWS
from ..analysis.nests import element_bytes

#: arithmetic of one instruction or two that scales, shifts and unpacks
ARITHMETIC = frozenset({
    "__and__", "__rshift__", "add", "bitwise_and", "bitwise_right_shift", "bitwise_xor", "mul", "neg", "rsub", "sub",
})  # fmt: skip
_CAST = "_to_copy"
#: what puts numbers together that were packed in one
_JOINS = frozenset({"cat", "stack"})
_MOST_OPS = 24
"""A chain of more is no dequantisation."""
SMALL_GROUP = 48
"""Groups of fewer elements are small."""
_SHARE = 0.75
"""What is read instead of a value takes at most so much of its memory."""


@dataclass(frozen=True)
class Dequantised:
    """How a value is made of less.

    is_cast:   by casts alone, so that it costs one instruction to make an element again
    is_packed: of numbers that lie several in one
    read:      bytes of what it is made of, `made` its own; of tensors of known sizes
    scales:    elements of what it is made of, but for the largest, in all
    elements:  its own
    """

    is_cast: bool
    is_packed: bool
    read: int
    made: int
    scales: int
    elements: int

    @property
    def has_small_groups(self) -> bool:
        """Whether few elements share a scale: a step of matrix units is a group, and copies 16 bytes of a row then."""
        return SMALL_GROUP * self.scales > self.elements


def dequantised(value: SSAValue) -> Dequantised | None:
    """How a value that one op reads is made of less memory, by ops that nothing else reads; None for other values."""
    ops, leaves = _made_of(value)
    arithmetic = {op for op in ops if not is_view(op)}
    made, read = _bytes(value), [_bytes(leaf) for leaf in leaves]
    if not arithmetic or len(ops) > _MOST_OPS or made is None:
        return None
    known = [each for each in read if each is not None]
    if len(known) < len(read) or sum(known) > _SHARE * made:
        return None
    is_cast = all(op.packet == _CAST for op in arithmetic)
    is_packed = any(op.packet in _JOINS for op in arithmetic)
    counts = sorted(_count(leaf) or 0 for leaf in leaves)
    return Dequantised(is_cast, is_packed, sum(known), made, sum(counts[:-1]), _count(value) or 0)


def dequantised_ops(value: SSAValue) -> set[AtenOp]:
    """The casts, arithmetic and views that make a value and that nothing else reads, or that are views."""
    return _made_of(value)[0]


def _made_of(value: SSAValue) -> tuple[set[AtenOp], set[SSAValue]]:
    """The ops that make a value, and what they read."""
    leaves: set[SSAValue] = set()
    ops: set[AtenOp] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        op = each.owner
        if isinstance(op, AtenOp) and _computes(op) and (is_view(op) or each.has_one_use()):
            ops.add(op)
            pending += [v for v in op.operands if v not in leaves]
        else:
            leaves.add(each)
    return ops, leaves


def _computes(op: AtenOp) -> bool:
    if len(op.results) != 1 or not isinstance(op.results[0].type, TensorType):
        return False
    if op.packet == _CAST and op.arg("device") is not None:
        source = op.operands[0].type
        return isinstance(source, TensorType) and source.device == op.results[0].type.device
    return is_view(op) or op.packet == _CAST or op.packet in ARITHMETIC or op.packet in _JOINS


def is_view(op: AtenOp) -> bool:
    """Whether an op moves nothing."""
    return op.schema.is_view or op.packet in UNSAFE_VIEWS


def _bytes(value: SSAValue) -> int | None:
    type_ = value.type
    if not isinstance(type_, TensorType):
        return 0
    count = _count(value)
    return None if count is None else count * element_bytes(type_.element)


def _count(value: SSAValue) -> int | None:
    """Elements of a tensor of known sizes."""
    type_ = value.type
    count = 1
    for size in type_.shape if isinstance(type_, TensorType) else ():
        known = size.as_int() if isinstance(size, Expr) else size
        if known is None:
            return None
        count *= known
    return count
