"""`graph-fold-affine`: batch norms and other affine maps of channels go into the frozen weights in front of them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, cast

from xdsl.dialects.builtin import BFloat16Type, Float32Type, Float64Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.sym import ONE, Expr
from ...records import dataclass
from ..analysis.kept import frozen_arguments
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._binding_times import BindingTimes, Limits, move_before
from ._channels import Affine, Step, Vectors, step_of
from ._operands import only_nests_read
from ._replacement import Origin, ReplacementBuilder, type_of

_PRODUCERS = ("aten.convolution", "aten.mm", "aten.addmm")
_VIEWS = ("aten.view", "aten._unsafe_view")
_COMPUTED = {Float32Type: Float32Type(), Float64Type: Float64Type(), BFloat16Type: Float32Type()}


class FoldAffine(AtenPass):
    """Let a convolution or a product with a frozen weight do what is done to each channel of its result.

    level:         aten
    precondition:  arguments that are parameters, buffers or constants are marked `frozen`; before
                   `graph-hoist-weights`, which computes the new weights once, and the passes that look for products
                   with what is behind them
    guarantee:     the same values but for rounding: a batch norm in inference, and a product, quotient, sum or
                   difference with a frozen number for each channel, behind a convolution or a matrix product that
                   nothing else reads, is part of its weight and bias. New weights are computed in float32 and
                   rounded once. Float16 stays, whose small weights would lose digits; so do maps that cost nothing,
                   because they are computed in nests that read the result anyway, unless a batch norm is among them,
                   and factors of a weight that takes too much memory to be kept, such as a dequantised one.

        %c = aten.convolution(%x, %w, ...)
        %y, ... = aten._native_batch_norm_legit_no_training(%c, %gamma, %beta, %mean, %var, eps = 1.0e-05)
    becomes, with s = gamma / sqrt(var + eps),
        %y = aten.convolution(%x, w * s, beta - mean * s, ...)
    """

    name = "graph-fold-affine"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function with frozen arguments."""
        if not frozen_arguments(function):
            return
        times = BindingTimes(function, block, Limits())
        times.early_ops()
        for producer in [each for each in block.ops if isinstance(each, AtenOp) and each.target in _PRODUCERS]:
            self._fold(producer, times)

    def _fold(self, op: AtenOp, times: BindingTimes) -> None:
        chain = _chain(op, times.sources)
        if not chain.steps:
            return
        reason = _objection(op, chain, times)
        if reason:
            remark("missed", self.name, chain.steps[0].op, f"it is not folded into {op.target}: {reason}")
        elif reason is None and counter(self.name):
            remark(
                "passed", self.name, op, f"what is done to its channels is in its weight, by ops: {len(chain.steps)}"
            )
            _replace(op, chain)


@dataclass
class _Chain:
    """What happens to the result of a product, step by step; `result` is the last value, of that product or a view."""

    steps: list[Step]
    result: SSAValue


def _channel_of(op: AtenOp) -> int:
    """The dimension of the result of a producer that its channels run along."""
    if op.target != "aten.convolution":
        return 1
    return len(type_of(op.results[0]).shape) - len(type_of(_weight(op)).shape) + 1


def _chain(op: AtenOp, early: Container[SSAValue]) -> _Chain:
    """The affine maps behind a producer, through views that keep the columns of a product."""
    chain = _Chain([], op.results[0])
    value, channel = op.results[0], _channel_of(op)
    while (use := value.get_user_of_unique_use()) is not None:
        step = step_of(use, value, channel)
        if step is not None and all(known in early for known in step.known):
            chain.steps.append(step)
            value = chain.result = step.op.results[0]
        elif op.target != "aten.convolution" and _keeps_columns(use, value):
            value = use.results[0]
            channel = len(type_of(value).shape) - 1
        else:
            break
    return chain


def _keeps_columns(op: Operation, value: SSAValue) -> bool:
    """Whether an op is a view of the rows of a matrix in more dimensions."""
    if not isinstance(op, AtenOp) or op.target not in _VIEWS:
        return False
    shape = type_of(op.results[0]).shape
    return bool(shape) and shape[-1] is type_of(value).shape[-1] and type_of(value).is_contiguous


def _objection(op: AtenOp, chain: _Chain, times: BindingTimes) -> str | None:
    """Why a chain stays; empty where nobody misses it."""
    parts = (
        [op.arg("weight"), op.arg("bias")] if op.target == "aten.convolution" else [*op.operands[:-2], op.operands[-1]]
    )
    if not all(part in times.sources for part in parts if isinstance(part, SSAValue)):
        return "its weight is no frozen one"
    if not any(step.is_norm for step in chain.steps) and only_nests_read(chain.result):
        return ""
    type_ = type_of(op.results[0])
    if type(type_.element) not in _COMPUTED or type_of(op.operands[-1]).element != type_.element:
        return f"weights of {type_.element} would lose digits"
    if any(step.scales for step in chain.steps) and (growth := times.growth(_weight(op))) is not None:
        return f"its weight is made in each call, for {growth}"
    if op.target == "aten.addmm":
        bias = type_of(op.operands[0])
        if op.arg("beta") != 1 or op.arg("alpha") != 1 or [n for n in bias.shape if n is not ONE] != [type_.shape[1]]:
            return "what it adds is no bias"
    if op.target == "aten.convolution" and op.arg("transposed") and op.arg("groups") != 1:
        return "the channels of a transposed convolution in groups do not lie in one dimension"
    return None


def _replace(op: AtenOp, chain: _Chain) -> None:
    """Make the weights, and the producer with them, in the place of the old one; views stay behind it."""
    result = type_of(op.results[0])
    element = _COMPUTED[type(result.element)]
    aten = ReplacementBuilder(op, Origin(op.location, {}))
    vectors = Vectors(aten, result.shape[_channel_of(op)], element, result.device)
    affine = Affine(vectors)
    move_before([known for step in chain.steps for known in step.known], op)
    old_bias = (
        op.arg("bias") if op.target == "aten.convolution" else op.operands[0] if op.target == "aten.addmm" else None
    )
    if isinstance(old_bias, SSAValue):
        affine.plus(vectors.of(old_bias))
    for step in chain.steps:
        step.add(affine)
    is_convolution = op.target == "aten.convolution"
    weight = _weight(op)
    if affine.scale is not None:
        weight = _scaled(aten, weight, affine.scale, 0 if is_convolution and not op.arg("transposed") else 1, vectors)
    bias = _narrowed(aten, affine.shift, result)
    if is_convolution:
        arguments = {argument.name: op.arg(argument.name) for argument in op.schema.arguments}
        value = aten.convolution(**(arguments | {"weight": weight, "bias": bias}), types=[result])
    elif bias is None:
        value = aten.mm(op.operands[-2], weight, types=[result])
    else:
        value = aten.addmm(bias, op.operands[-2], weight, types=[result])
    value.owner.attributes.update(op.attributes)
    value.name_hint = chain.result.name_hint
    block = op.parent
    assert block is not None
    numbers = [step.op.operands.index(step.value) for step in chain.steps]
    op.results[0].replace_all_uses_with(value)
    for step, number in zip(chain.steps, numbers, strict=True):
        step.op.results[0].replace_all_uses_with(step.op.operands[number])
        block.erase_op(step.op)
    block.erase_op(op)


def _weight(op: AtenOp) -> SSAValue:
    return cast(SSAValue, op.arg("weight")) if op.target == "aten.convolution" else op.operands[-1]


def _scaled(aten: ReplacementBuilder, weight: SSAValue, scale: SSAValue, dim: int, vectors: Vectors) -> SSAValue:
    """A weight, each of whose channels, along `dim`, is multiplied by a number; its strides stay."""
    old = type_of(weight)
    rank = len(old.shape)
    if dim < rank - 1:
        shape: tuple[Expr, ...] = (vectors.channels, *[ONE] * (rank - 1 - dim))
        scale = aten.view(scale, size=shape)
    wide = TensorType.get(old.shape, vectors.type.element, old.strides, old.device)
    if old.element != vectors.type.element:
        weight = aten._to_copy(weight, dtype=vectors.type.element, types=[wide])
    return _narrowed(aten, aten.mul.Tensor(weight, scale, types=[wide]), old)


def _narrowed(aten: ReplacementBuilder, value: SSAValue | None, like: TensorType) -> Any:
    if value is None or type_of(value).element == like.element:
        return value
    type_ = type_of(value)
    narrow = TensorType.get(type_.shape, like.element, type_.strides, type_.device)
    return aten._to_copy(value, dtype=like.element, types=[narrow])
