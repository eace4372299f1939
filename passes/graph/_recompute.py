"""What it costs to compute an op a second time, and to keep its result, in bytes of memory traffic.

A byte is what reading or writing one byte of main memory takes; arithmetic is converted at the rates below. They need
only be right to a factor of two: they decide between recomputing and saving, and the two rarely lie close.
"""

from __future__ import annotations

from enum import Enum

from xdsl.dialects.builtin import AnyFloat, Float32Type, IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.effects import is_pure
from ...dialects.machine import TargetsAttr
from ...machines import HOST, GpuTarget
from ..analysis.memory import UNSAFE_VIEWS
from ..analysis.program_costs import flops
from ..analysis.sizes import Sizes


class RecomputeClass(Enum):
    """How an op may be computed again in the backward graph."""

    FREE = 0
    """A view: costs nothing, and is never saved itself, its base is."""
    CHEAP = 1
    """Elementwise, a constant, or an indexed copy: fuses with its readers, costs its arithmetic."""
    REDUCTION = 2
    """Reads its operands once more in a pass of its own."""
    NEST = 3
    """Loops of our own that fuse with what they read, too dear to run again without a memory budget: scans, scatters,
    the pools that look for a place."""
    HEAVY = 4
    """Matrix products, convolutions, attention, sorts, calls: only under a memory budget. They fuse with nothing."""
    SCORES = 6
    """Products of a short depth that become loops of ours, which fuse with what reads them: they cost their arithmetic
    on matrix units."""
    NEVER = 5
    """Draws random numbers, writes, checks, or defines symbols: a second run would not be the same, or show."""


#: ops that move elements, and constants: one read and one write an element
_MOVES = frozenset({
    "_to_copy", "_unsafe_index", "_unsafe_masked_index", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d", "alias_copy", "arange", "cat", "concat", "concatenate", "constant_pad_nd", "copy",
    "detach_copy", "diag_embed", "diagonal_backward", "diagonal_copy", "diagonal_scatter", "embedding", "empty",
    "empty_like", "empty_permuted", "empty_strided", "expand_copy", "eye", "fill", "flip", "full", "full_like",
    "gather", "index", "index_select", "lift", "lift_fresh_copy", "masked_fill", "new_empty", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "nll_loss2d_backward", "nll_loss_backward", "ones", "ones_like",
    "permute_copy", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "repeat", "repeat_interleave",
    "replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "scalar_tensor", "select_backward",
    "select_copy", "select_scatter", "slice_backward", "slice_copy", "slice_scatter", "squeeze_copy", "stack",
    "t_copy", "take", "transpose_copy", "tril", "triu", "unfold_copy", "unsqueeze_copy", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_nearest3d", "view_copy", "zero", "zeros", "zeros_like",
})  # fmt: skip
#: other elementwise ops without the tag
_ELEMENTWISE = frozenset({
    "__and__", "__or__", "_batch_norm_no_update", "_masked_scale", "_native_batch_norm_legit_no_training",
    "_prelu_kernel", "_prelu_kernel_backward", "binary_cross_entropy_backward", "bucketize", "elu_backward",
    "floor_divide", "glu", "glu_backward", "hardshrink_backward", "hardsigmoid_backward", "hardswish",
    "hardswish_backward", "hardtanh_backward", "huber_loss_backward", "isclose", "isin", "isreal",
    "leaky_relu_backward", "log_sigmoid_backward", "log_sigmoid_forward", "mish", "mse_loss_backward", "rsub",
    "smooth_l1_loss_backward", "soft_margin_loss_backward", "softplus_backward", "softshrink_backward", "true_divide",
    "upsample_bilinear2d", "upsample_linear1d", "upsample_trilinear3d", "where",
})  # fmt: skip
#: elementwise without a reduction, which is an argument of theirs
_LOSSES = frozenset({"binary_cross_entropy", "huber_loss", "mse_loss", "smooth_l1_loss", "soft_margin_loss"})
#: reductions without the tag
_REDUCTIONS = frozenset({
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_batch_norm_with_update_functional", "_foreach_norm",
    "_fused_rms_norm", "_fused_rms_norm_backward", "_is_all_true", "_is_any_true", "_log_softmax",
    "_log_softmax_backward_data", "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "_safe_softmax",
    "_softmax", "_softmax_backward_data", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "nansum", "native_batch_norm", "native_batch_norm_backward", "native_group_norm",
    "native_group_norm_backward", "native_layer_norm", "native_layer_norm_backward", "nll_loss2d_forward",
    "nll_loss_forward", "norm", "rms_norm", "std_mean", "sum_to_size",
})  # fmt: skip
#: scans, scatters, pools that look for a place, and gradients that gather or scatter
_NESTS = frozenset({
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "_unsafe_index_put",
    "_unsafe_masked_index_put_accumulate", "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d_backward",
    "_upsample_nearest_exact3d_backward", "adaptive_max_pool2d", "adaptive_max_pool2d_backward", "adaptive_max_pool3d",
    "adaptive_max_pool3d_backward", "avg_pool2d_backward", "avg_pool3d_backward", "cummax", "cummin", "cumprod",
    "cumsum", "embedding_dense_backward", "index_add", "index_copy", "index_fill", "index_put", "index_reduce",
    "logcumsumexp", "masked_scatter", "max_pool2d_with_indices", "max_pool2d_with_indices_backward",
    "max_pool3d_with_indices", "max_pool3d_with_indices_backward", "reflection_pad1d_backward",
    "reflection_pad2d_backward", "reflection_pad3d_backward", "replication_pad1d_backward",
    "replication_pad2d_backward", "replication_pad3d_backward", "scatter", "scatter_add", "scatter_reduce",
    "upsample_bilinear2d_backward", "upsample_linear1d_backward", "upsample_nearest1d_backward",
    "upsample_nearest2d_backward", "upsample_nearest3d_backward", "upsample_trilinear3d_backward",
})  # fmt: skip
#: reductions with an elementwise last step, which fuses with what reads their result
_NORMALISATIONS = frozenset({"_log_softmax", "_safe_softmax", "_softmax"})
#: elementwise ops of one or two instructions; the others evaluate a function
_ARITHMETIC = frozenset({
    "abs", "add", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min",
    "clone", "eq", "fill", "floor", "ge", "gt", "hardtanh", "hardtanh_backward", "isinf", "isnan", "le", "leaky_relu",
    "leaky_relu_backward", "logical_and", "logical_not", "logical_or", "lt", "maximum", "minimum", "mul",
    "native_dropout_backward", "ne", "neg", "relu", "round", "rsub", "sgn", "sign", "square", "sub", "threshold",
    "threshold_backward", "trunc", "where",
})  # fmt: skip
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
    if op.packet in _LOSSES:
        return RecomputeClass.REDUCTION if op.arg("reduction") else RecomputeClass.CHEAP
    if "reduction" in schema.tags or op.packet in _REDUCTIONS:
        return RecomputeClass.REDUCTION
    if schema.is_pointwise or op.packet in _MOVES | _ELEMENTWISE or op.packet.startswith("_foreach_"):
        return RecomputeClass.CHEAP
    if op.packet in _NESTS:
        return RecomputeClass.NEST
    is_number = not any(isinstance(t, TensorType) for t in op.result_types)
    return RecomputeClass.CHEAP if is_number else RecomputeClass.HEAVY


def _before_cast(value: SSAValue) -> SSAValue:
    """What is read where a value is needed: a cast fuses."""
    owner = value.owner
    return owner.operands[0] if isinstance(owner, AtenOp) and owner.packet == "_to_copy" else value


class ByteCosts:
    """Costs for the sizes that the symbols of a function are expected to have, on the machines of its module."""

    def __init__(self, sizes: Sizes, targets: TargetsAttr) -> None:
        self._sizes = sizes
        self._targets = targets

    def elements(self, type_: Attribute) -> int:
        """Elements of a tensor; 1 for a number, 0 for None."""
        if isinstance(type_, TensorType):
            return self._sizes.elements(type_)
        return 1 if isinstance(type_, (IndexType, IntegerType, AnyFloat)) else 0

    def bytes(self, type_: Attribute) -> int:
        """Bytes that a tensor's elements take; 8 for a number."""
        return self._sizes.bytes(type_) if isinstance(type_, TensorType) else 8

    def recompute(self, op: Operation, class_: RecomputeClass) -> float:
        """Bytes that computing an op again costs, besides reading what is saved for it."""
        if class_ is RecomputeClass.FREE:
            return 0
        if class_ is RecomputeClass.CHEAP:
            packet = op.packet if isinstance(op, AtenOp) else op.name
            target = self._targets.target(_device(op))
            is_plain = packet in _ARITHMETIC or packet in _MOVES
            work = target.instruction_bytes if is_plain else target.function_bytes
            return work * sum(map(self.elements, op.result_types))
        traffic = sum(self.bytes(t) for t in (*op.operand_types, *op.result_types) if isinstance(t, TensorType))
        if class_ is RecomputeClass.REDUCTION:
            normalises = isinstance(op, AtenOp) and op.packet in _NORMALISATIONS
            return sum(self.bytes(_before_cast(value).type) for value in op.operands) if normalises else traffic
        operations = flops(op, self._sizes)
        if class_ is RecomputeClass.SCORES and operations is not None:
            return operations / self._operations_per_byte(op)
        return _UNKNOWN_PASSES * traffic if operations is None else traffic + operations / _FLOPS_PER_BYTE

    def _operations_per_byte(self, op: Operation) -> float:
        """Operations that matrix units do while memory moves a byte; as everything else does where nobody measured."""
        target = self._targets.target(_device(op))
        element = next((t.element for t in op.result_types if isinstance(t, TensorType)), None)
        known = target.products if isinstance(target, GpuTarget) else {}
        rates = known.get(32 if isinstance(element, Float32Type) else 16)
        if rates is None or not target.bandwidth:
            return _FLOPS_PER_BYTE
        return max(rates.by_alignment.values()) / target.bandwidth


def _device(op: Operation) -> str:
    """Where an op computes; on the CPU if it has no tensors."""
    return next((t.device for t in op.result_types if isinstance(t, TensorType)), HOST)
