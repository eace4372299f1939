"""`loop-channels-last`: convolutions work on tensors whose channels lie next to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.aten import AtenOp
from ...dialects.aten.types import ITEM_SIZES, TensorType, torch_name
from ...dialects.loop import GenerateOp, LoadOp, YieldOp
from ...dialects.sym import ONE, AxesAttr, MapAttr, symbol
from ..common.estimates import Estimates
from ..common.functions import functions
from ..counters import counter
from ..kernel.targets import CpuTarget
from ..remarks import remark
from ._accesses import loads_in
from .assign_layouts import is_dense, unit_dimension, votes_for

#: widest element that libraries convolve faster with channels side by side, in bits. On an H200, float32, kernels of
#: a model without and with it, ms: ResNet-50 0.94, 0.75, ConvNeXt 2.22, 1.81, MobileNetV3 0.51, 0.47
_BITS = 32
#: channels that a tensor core takes at once, float32
_TENSOR_CHANNELS = 4


@dataclass(frozen=True)
class ChannelsLast(ModulePass):
    """Let convolutions read and write tensors with their channels side by side.

    level:         loop
    precondition:  `loop-eliminate-views`; no `loop.fusion` yet
    guarantee:     the same values. The input and the result of such a convolution have channels-last strides, and so do
                   values between them that only nests read. What must keep its strides (arguments, values that are
                   returned, viewed or used by other calls) is copied in front of the convolution, or behind it. The
                   libraries, cuDNN and oneDNN, do both copies inside of every call otherwise, so a convolution whose
                   input and result would both be copied stays as it is. On a CPU ATen then copies a contiguous weight
                   in every call as well; a convolution stays as it is where that is more than what is saved. So do
                   those of elements wider than 32 bits, and on a GPU those of float32 for which side by side is less
                   exact: see `_is_rounded`.

        %x = loop.generate (...) { ... } : !aten.tensor<4x64x56x56xbf16, device = "cuda:0">
        %y = aten.convolution(%x, %w, ...) : !aten.tensor<4x64x56x56xbf16, device = "cuda:0">
        %z = loop.generate (...) { %v = loop.load %y[i0, i1, i2, i3] ... }
    becomes
        %x = loop.generate (...) { ... } : !aten.tensor<..., strides = [200704, 1, 3584, 64], device = "cuda:0">
        %y = aten.convolution(%x, %w, ...) : !aten.tensor<..., strides = [200704, 1, 3584, 64], device = "cuda:0">
        %z = loop.generate (...) { %v = loop.load %y[i0, i1, i2, i3] ... }
    """

    name = "loop-channels-last"
    level: ClassVar[str] = "loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module."""
        for function, block in functions(op):
            convolutions = [o for o in block.ops if _qualifies(o)]
            if convolutions:
                estimates = Estimates(function)
                objections = {o: _objection(o, estimates) for o in convolutions}
                for other, reason in objections.items():
                    if reason is not None:
                        remark("missed", self.name, other, f"not channels last: {reason}")
                paying = frozenset(o for o, reason in objections.items() if reason is None)
                _Rewriter(block, paying, estimates).run()


def _qualifies(op: Operation) -> bool:
    if not isinstance(op, AtenOp) or op.packet != "convolution":
        return False
    out, source = cast(TensorType, op.results[0].type), cast(TensorType, op.operands[0].type)
    known = len(source.shape) == 4 and source.shape[1] is not ONE and out.shape[1] is not ONE
    if not known or not isinstance(out.element, AnyFloat) or op.arg("transposed"):
        return False
    return out.element.bitwidth <= _BITS


def _objection(op: Operation, estimates: Estimates) -> str | None:
    """Why a convolution stays as it is, whatever is around it."""
    if _is_rounded(op):
        return "its channels are few, and a library would round its elements then"
    return None if _pays(op, estimates, 0) else "its weight is most of what would be copied"


def _is_rounded(op: Operation) -> bool:
    """Whether cuDNN computes a float32 convolution exactly as it is, and in TF32 with channels side by side.

    That is so where the channels are no multiple of `_TENSOR_CHANNELS`, such as those of an image. Relative errors of
    ViT's patches of 16x16 points, three channels, on an H200: 1.4e-6 and 2.3e-4. Other convolutions are computed in
    TF32 in either layout, as `torch.backends.cudnn.allow_tf32` says.
    """
    source = cast(TensorType, op.operands[0].type)
    if source.device == "cpu" or cast(AnyFloat, source.element).bitwidth != _BITS:
        return False
    channels = source.shape[1].as_int()
    return channels is not None and channels % _TENSOR_CHANNELS != 0


def _pays(op: Operation, estimates: Estimates, copied: int) -> bool:
    """Whether channels side by side save more elements' copies than they cost; `copied` are those made around the call.

    The library saves a copy of the input and one of the result; on the CPU ATen may copy the weight instead. Measured
    on two cores, milliseconds from contiguous tensors and with channels side by side: one image of 7x7 points, 512
    channels to 512, windows of 3x3, 8.2 and 26.3; four images of 56x56 points, 64 channels to 64, 5.1 and 4.6.
    """
    source, result = cast(TensorType, op.operands[0].type), cast(TensorType, op.results[0].type)
    saved = estimates.product(source.shape) + estimates.product(result.shape)
    return saved > copied + _weight_copied(op.operands[1], estimates)


def _weight_copied(weight: SSAValue, estimates: Estimates) -> int:
    """Elements of a weight that a convolution with channels side by side moves beyond what another one moves.

    On the CPU ATen gives the weight the input's layout. For windows of one point both layouts are the same, but oneDNN
    arranges such a weight more slowly once it exceeds the second-level cache: at 4x4 points 1.9 ms became 2.8 to 4.5
    for weights of 4 MiB, 0.51 became 0.78 for 1 MiB, while 0.14 became 0.12 for 150 KiB.
    """
    type_ = cast(TensorType, weight.type)
    elements = estimates.product(type_.shape)
    if type_.device != "cpu" or (not type_.is_contiguous and _is_channels_last(weight)):
        return 0
    one_point = all(size is ONE for size in type_.shape[2:])
    return 0 if one_point and elements * ITEM_SIZES[torch_name(type_.element)] < CpuTarget.l2_bytes else elements


def channels_last(type_: TensorType) -> TensorType:
    """The type with dimension 1 along memory."""
    n, c, h, w = type_.shape
    return TensorType.get((n, c, h, w), type_.element, (c * w * h, ONE, c * w, c), type_.device)


class _Rewriter:
    """The state for one function."""

    def __init__(self, block: Block, convolutions: frozenset[Operation], estimates: Estimates) -> None:
        self.block = block
        self.convolutions = convolutions
        self.estimates = estimates
        self.copies: dict[SSAValue, SSAValue] = {}
        """Channels-last copies of values that keep their strides."""

    def run(self) -> None:
        """Sweep over the function once."""
        for op in list(self.block.ops):
            if op in self.convolutions:
                self._consider(op)
            elif isinstance(op, GenerateOp):
                for value in list(op.results):
                    if self._should_follow(value):
                        _retype(value)

    def _is_free(self, value: SSAValue) -> bool:
        """Whether a nest makes a value, or a convolution that was converted, and no reader cares for its strides."""
        owner = value.owner
        made = isinstance(owner, GenerateOp) or (owner in self.convolutions and _is_channels_last(value))
        return made and all(self._is_indifferent(use) for use in value.uses)

    def _is_indifferent(self, use: Use) -> bool:
        return type(use.operation) is LoadOp or (use.operation in self.convolutions and use.index == 0)

    def _consider(self, op: Operation) -> None:
        """Convert a convolution where fewer copies are made than the two that the library saves."""
        source, result = op.operands[0], op.results[0]
        copied_input = not (_is_channels_last(source) or self._is_free(source))
        fixed = [] if _is_channels_last(result) else [u for u in result.uses if not self._is_indifferent(u)]
        copied = [source] * copied_input + [result] * bool(fixed)
        elements = sum(self.estimates.product(cast(TensorType, value.type).shape) for value in copied)
        if not _pays(op, self.estimates, elements):
            why = "its input and its result would both be copied"
            if len(copied) < 2:
                why = "its weight and what is copied around it are more than the copies that are saved"
            remark("missed", "loop-channels-last", op, f"not channels last: {why}")
        elif counter("loop-channels-last"):
            self._convert(op, copied_input, fixed)

    def _should_follow(self, value: SSAValue) -> bool:
        """Whether a value between nests is better off with the strides of what its producer reads."""
        type_ = cast(TensorType, value.type)
        if len(type_.shape) != 4 or type_.shape[1] is ONE or not type_.is_contiguous or not self._is_free(value):
            return False
        reads = any(_is_channels_last(load.operands[0]) for load in loads_in(cast(Operation, value.owner)))
        if not reads or any(type(use.operation) is not LoadOp for use in value.uses):
            return reads
        votes = votes_for(value)
        return votes[1] > votes[unit_dimension(type_)]

    def _convert(self, op: Operation, copied_input: bool, fixed: Sequence[Use]) -> None:
        """`fixed` are the uses that need the strides which the result has had."""
        source, result = op.operands[0], op.results[0]
        if copied_input:
            op.operands[0] = self._copied(source, op)
        elif not _is_channels_last(source):
            _retype(source)
        plain = cast(TensorType, result.type)
        if not _is_channels_last(result):
            result = _retype(result)
        if fixed:
            copy = copy_of(result, plain, op)
            self.block.insert_op_after(copy, op)
            for use in fixed:
                use.operation.operands[use.index] = copy.results[0]
        remark("passed", "loop-channels-last", op, "channels last", copied_result=bool(fixed))

    def _copied(self, source: SSAValue, op: Operation) -> SSAValue:
        copy = self.copies.get(source)
        if copy is None:
            made = copy_of(source, channels_last(cast(TensorType, source.type)), op)
            self.block.insert_op_before(made, op)
            copy = self.copies[source] = made.results[0]
        return copy


def _is_channels_last(value: SSAValue) -> bool:
    type_ = cast(TensorType, value.type)
    return len(type_.shape) == 4 and unit_dimension(type_) == 1 and is_dense(type_)


def _retype(value: SSAValue) -> SSAValue:
    return Rewriter.replace_value_with_new_type(value, channels_last(cast(TensorType, value.type)))


def copy_of(source: SSAValue, type_: TensorType, op: Operation) -> GenerateOp:
    """A nest that copies a value into another layout."""
    names = [f"i{k}" for k in range(len(type_.shape))]
    load = LoadOp.of(source, MapAttr.of(*map(symbol, names)), location=op.location)
    body = Region(Block([load, YieldOp.create(operands=[load.results[0]])]))
    return GenerateOp.of(AxesAttr.of(*zip(names, type_.shape, strict=True)), body, [type_], location=op.location)
