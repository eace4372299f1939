"""What it costs to compute an op a second time, and to keep its result, in bytes of memory traffic.

A byte is what reading or writing one byte of main memory takes; arithmetic is converted at the rates below. They need
only be right to a factor of two: they decide between recomputing and saving, and the two rarely lie close.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import prod

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.effects import is_pure
from ...dialects.sym import Expr
from ..common.memory import UNSAFE_VIEWS

#: size assumed for a symbol of which no hint is known
UNKNOWN_SIZE = 256


class RecomputeClass(Enum):
    """How an op may be computed again in the backward graph."""

    FREE = 0
    """A view: costs nothing, and is never saved itself, its base is."""
    CHEAP = 1
    """Elementwise, a constant, or an indexed copy: fuses with its readers, costs its arithmetic."""
    REDUCTION = 2
    """Reads its operands once more in a pass of its own."""
    HEAVY = 3
    """Matrix products, convolutions, attention, sorts, scans, calls: only under a memory budget."""
    NEVER = 4
    """Draws random numbers, writes, checks, or defines symbols: a second run would not be the same, or show."""


#: elementwise ops without the tag, and ops that move elements: one read and one write an element
_MOVES = frozenset({
    "_native_batch_norm_legit_no_training", "_to_copy", "_unsafe_index", "arange", "cat", "constant_pad_nd", "copy",
    "diagonal_scatter", "embedding", "empty", "empty_like", "expand_copy", "eye", "fill", "flip", "full", "full_like",
    "gather", "index", "index_select", "lift_fresh_copy", "masked_fill", "new_empty", "new_full", "new_ones",
    "new_zeros", "nll_loss_backward", "ones", "ones_like", "permute_copy", "repeat", "repeat_interleave", "roll",
    "scalar_tensor", "select_scatter", "slice_scatter", "stack", "tril", "triu", "view_copy", "zeros", "zeros_like",
})  # fmt: skip
#: reductions without the tag
_REDUCTIONS = frozenset({
    "_fused_rms_norm", "_log_softmax", "_log_softmax_backward_data", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional", "_safe_softmax", "_softmax", "_softmax_backward_data", "nansum",
    "native_batch_norm", "native_group_norm", "native_layer_norm",
    "nll_loss_forward", "norm", "rms_norm", "std_mean", "sum_to_size",
})  # fmt: skip
#: reductions with an elementwise last step, which fuses with what reads their result
_NORMALISATIONS = frozenset({"_log_softmax", "_safe_softmax", "_softmax"})
#: elementwise ops of one or two instructions; the others evaluate a function
_ARITHMETIC = frozenset({
    "abs", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min",
    "clone", "eq", "fill", "floor", "ge", "gt", "hardtanh", "isinf", "isnan", "le", "leaky_relu", "logical_and",
    "logical_not", "logical_or", "lt", "maximum", "minimum", "mul", "native_dropout_backward", "ne", "neg", "relu",
    "round", "rsub", "sgn", "sign", "square", "sub", "threshold", "threshold_backward", "trunc", "where",
})  # fmt: skip
#: bytes an element of arithmetic costs
_INSTRUCTION, _FUNCTION = 0.25, 1.5
#: calls that are lowered to elementwise arithmetic
_CHEAP_CALLS = frozenset({"inductile::random"})
#: floating-point operations in the time of one byte
_FLOPS_PER_BYTE = 16
#: passes over operands and results that an op of unknown make is taken for
_UNKNOWN_PASSES = 8


def recompute_class(op: Operation) -> RecomputeClass:
    """The class of an op of the aten level."""
    if not isinstance(op, AtenOp):
        if op.name == "sym.int" or (isinstance(op, CallOp) and op.target in _CHEAP_CALLS):
            return RecomputeClass.CHEAP
        return RecomputeClass.HEAVY if is_pure(op) else RecomputeClass.NEVER
    schema = op.schema
    if not is_pure(op):
        # attention is marked random for its dropout
        is_deterministic = schema.is_random and "dropout_p" in schema.by_name and op.arg("dropout_p") == 0.0
        return RecomputeClass.HEAVY if is_deterministic and not op.binds else RecomputeClass.NEVER
    if schema.is_view or op.packet in UNSAFE_VIEWS:
        return RecomputeClass.FREE
    if schema.is_pointwise or op.packet in _MOVES:
        return RecomputeClass.CHEAP
    if "reduction" in schema.tags or op.packet in _REDUCTIONS:
        return RecomputeClass.REDUCTION
    is_number = not any(isinstance(t, TensorType) for t in op.result_types)
    return RecomputeClass.CHEAP if is_number else RecomputeClass.HEAVY


def _before_cast(value: SSAValue) -> SSAValue:
    """What is read where a value is needed: a cast fuses."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, AtenOp) and owner.packet == "_to_copy" else value


class ByteCosts:
    """Costs for the sizes that the symbols of a function are expected to have."""

    def __init__(self, hints: Mapping[str, int]) -> None:
        self._hints = hints

    def size(self, expr: Expr) -> int:
        """An estimate of a size, at least 0."""
        value = expr.as_int()
        if value is None:
            env = {name: self._hints.get(name, UNKNOWN_SIZE) for name in expr.free_symbols}
            try:
                value = int(expr.evaluate(env))
            except ZeroDivisionError:
                value = UNKNOWN_SIZE
        return max(value, 0)

    def elements(self, type_: Attribute) -> int:
        """Elements of a tensor; 1 for a number, 0 for None."""
        if isinstance(type_, TensorType):
            return prod(map(self.size, type_.shape))
        return 1 if isinstance(type_, (IndexType, IntegerType, AnyFloat)) else 0

    def bytes(self, type_: Attribute) -> int:
        """Bytes that a tensor's elements take; 8 for a number."""
        return self.elements(type_) * element_bytes(type_.element) if isinstance(type_, TensorType) else 8

    def recompute(self, op: Operation, class_: RecomputeClass) -> float:
        """Bytes that computing an op again costs, besides reading what is saved for it."""
        if class_ is RecomputeClass.FREE:
            return 0
        if class_ is RecomputeClass.CHEAP:
            packet = op.packet if isinstance(op, AtenOp) else op.name
            work = _INSTRUCTION if packet in _ARITHMETIC or packet in _MOVES else _FUNCTION
            return work * sum(map(self.elements, op.result_types))
        traffic = sum(self.bytes(t) for t in (*op.operand_types, *op.result_types) if isinstance(t, TensorType))
        if class_ is RecomputeClass.REDUCTION:
            normalises = isinstance(op, AtenOp) and op.packet in _NORMALISATIONS
            return sum(self.bytes(_before_cast(value).type) for value in op.operands) if normalises else traffic
        flops = self._flops(op)
        return _UNKNOWN_PASSES * traffic if flops is None else traffic + flops / _FLOPS_PER_BYTE

    def _flops(self, op: Operation) -> float | None:
        """Multiplications and additions of a matrix product, convolution or attention; None for other ops."""
        if not isinstance(op, AtenOp):
            return None
        result = self.elements(op.result_types[0]) if op.results else 0
        if op.packet in ("mm", "bmm", "addmm", "baddbmm"):
            return 2 * result * self._sizes(op.operand_types[-2])[-1]
        if op.packet == "convolution":
            return 2 * result * prod(self._sizes(op.arg("weight").type)[1:])
        if "attention" in op.packet and len(op.operands) > 1:
            return 4 * result * self._sizes(op.operand_types[1])[-2]
        return None

    def _sizes(self, type_: Attribute) -> list[int]:
        assert isinstance(type_, TensorType)
        return [self.size(n) for n in type_.shape]


def element_bytes(element: Attribute) -> int:
    """Bytes of an element in memory; 8 for what is not known here."""
    if isinstance(element, AnyFloat):
        return element.bitwidth // 8
    return max(element.width.data // 8, 1) if isinstance(element, IntegerType) else 8
