"""`loop-channels-last`: convolutions work on tensors whose channels lie next to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import cast

from xdsl.dialects.builtin import AnyFloat, Float32Type
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue, Use

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp
from ...dialects.machine import target_at
from ...dialects.sym import ONE
from ...machines import CpuTarget, Library
from ...records import dataclass
from ..analysis.memory import Mutations
from ..analysis.packing import is_packable, objection_to_packing
from ..analysis.sizes import Sizes
from ..common.results import results_of_any_strides
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in
from ._image_layouts import (
    IMAGE_RANKS,
    NESTS,
    channels_last,
    copied_value,
    copy_of,
    has_layouts,
    is_channels_last,
    is_made_by_nest,
    retype,
    view_of,
)
from ._layout_groups import groups
from .assign_layouts import unit_dimension, votes_for

#: widest element that libraries convolve faster with channels side by side, in bits. On an H200, float32, kernels of
#: a model without and with it, ms: ResNet-50 0.94, 0.75, ConvNeXt 2.22, 1.81, MobileNetV3 0.51, 0.47
_BITS = 32
#: channels that a tensor core takes at once, float32
_TENSOR_CHANNELS = 4
_RANK_OF_IMAGES, _RANK_OF_VOLUMES = 4, 5


@dataclass(frozen=True)
class _Roles:
    """Operands and results of an op by what they are: images, whose layout is chosen, and weights of that layout."""

    image_operands: tuple[int, ...]
    source: int
    weight: int
    weight_results: tuple[int, ...] = ()


#: the image that a convolution makes is result 0 in both directions
_ROLES = {
    "convolution": _Roles((0,), source=0, weight=1),
    "convolution_backward": _Roles((0, 1), source=1, weight=2, weight_results=(1,)),
}


@dataclass(frozen=True)
class ChannelsLast(LoopPass):
    """Let convolutions, and their gradients, read and write tensors with their channels side by side.

    level:         loop
    precondition:  `loop-eliminate-views`; no `loop.fusion` yet
    guarantee:     the same values. The images that such a convolution reads and writes have channels-last strides, and
                   so do values between them that only nests read, and results of the function that may have
                   `any_strides`. What must keep its strides (arguments, other values that are returned, values that
                   are viewed or used by other calls) is copied in front of the convolution, or behind it. The
                   libraries, cuDNN and oneDNN, do these copies inside of every call otherwise, so a convolution whose
                   images would all be copied stays as it is; on a CPU a nest that reads channels last and writes what
                   must be contiguous counts as a copy. A copy of an argument that comes with channels last is
                   passed by. On a GPU a weight that a nest makes for convolutions alone is written as they read it,
                   and any other that lies otherwise is copied in front of its convolution, where the copy can be part
                   of another launch; the gradient of a weight comes in the layout of the images, and is copied for
                   readers that need another. On a CPU ATen copies a contiguous weight in every call; a convolution
                   stays as it is where that is more than what is saved. So do those of elements wider than 32 bits,
                   and on a GPU those of float32 for which side by side is less exact: see `_is_rounded`.

    packed_weights:  elements of frozen weights that `loop-pack-weights` lets the library arrange once: none is copied
    training_on_cpu: on a CPU gradients and results of any strides are treated so too; that was not seen to pay there

        %x = loop.generate (...) { ... } : !aten.tensor<4x64x56x56xbf16, device = "cuda:0">
        %y = aten.convolution(%x, %w, ...) : !aten.tensor<4x64x56x56xbf16, device = "cuda:0">
        %z = loop.generate (...) { %v = loop.load %y[i0, i1, i2, i3] ... }
    becomes
        %x = loop.generate (...) { ... } : !aten.tensor<..., strides = [200704, 1, 3584, 64], device = "cuda:0">
        %y = aten.convolution(%x, %w, ...) : !aten.tensor<..., strides = [200704, 1, 3584, 64], device = "cuda:0">
        %z = loop.generate (...) { %v = loop.load %y[i0, i1, i2, i3] ... }
    """

    name = "loop-channels-last"

    training_on_cpu: bool = False
    packed_weights: str = ""

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        found = [o for o in block.ops if isinstance(o, AtenOp) and o.packet in _ROLES and self._may_change(o)]
        if found:
            estimates = Sizes.of_function(function)
            packed = frozenset(o for o in found if self._is_packed(o, estimates))
            convolutions = [o for o in found if _qualifies(o, packed)]
            objections = {o: _objection(o, estimates, packed) for o in convolutions}
            for other, reason in objections.items():
                if reason is not None:
                    remark("missed", self.name, other, f"not channels last: {reason}")
            paying = frozenset(o for o, reason in objections.items() if reason is None)
            free = results_of_any_strides(function) if any(map(self._trains, paying)) else frozenset[int]()
            _Rewriter(block, paying, estimates, free, packed).run()
            function.update_function_type()

    def _is_packed(self, op: AtenOp, estimates: Sizes) -> bool:
        """Whether `loop-pack-weights` lets the library arrange the weight of an op once."""
        is_fixed = op.packet == "convolution" and is_packable(_weight(op), self.packed_weights)
        return is_fixed and objection_to_packing(op, estimates) is None

    def _may_change(self, op: Operation) -> bool:
        return cast(AtenOp, op).packet == "convolution" or self._trains(op)

    def _trains(self, op: Operation) -> bool:
        return self.training_on_cpu or _library(op).trains_channels_last


def _library(op: Operation) -> Library:
    """The library that convolves; the image or the gradient that it reads is on its device."""
    return target_at(op, cast(TensorType, op.operands[0].type).device).family.library


def _roles(op: Operation) -> _Roles:
    return _ROLES[cast(AtenOp, op).packet]


def _weight(op: Operation) -> SSAValue:
    return op.operands[_roles(op).weight]


def _image_results(op: Operation) -> list[SSAValue]:
    """The image that an op makes; a gradient that nobody wants is none."""
    return [op.results[0]] if isinstance(op.results[0].type, TensorType) else []


def _images(op: Operation) -> list[SSAValue]:
    """The images that an op reads and makes."""
    return [*(op.operands[k] for k in _roles(op).image_operands), *_image_results(op)]


def _qualifies(op: AtenOp, packed: Collection[Operation]) -> bool:
    """Whether a library may convolve with channels side by side; images of one and three dimensions, and transposed
    convolutions, where it arranged the weight: ATen's own calls give others than the layout of what they read."""
    types = [cast(TensorType, value.type) for value in _images(op)]
    rank = len(types[0].shape)
    if op not in packed and (op.arg("transposed") or rank != _RANK_OF_IMAGES):
        return False
    known = all(len(each.shape) == rank and each.shape[1] is not ONE for each in types) and rank in IMAGE_RANKS
    return known and isinstance(types[0].element, AnyFloat) and types[0].element.bitwidth <= _BITS


def _objection(op: Operation, estimates: Sizes, packed: Collection[Operation]) -> str | None:
    """Why a convolution stays as it is, whatever is around it."""
    if _is_rounded(op):
        return "its channels are few, and a library would round its elements then"
    return None if _pays(op, estimates, 0, packed) else "its weight is most of what would be copied"


def _is_rounded(op: Operation) -> bool:
    """Whether cuDNN computes a float32 convolution exactly as it is, and in TF32 with channels side by side.

    That is so where the channels are no multiple of `_TENSOR_CHANNELS`, such as those of an image. Relative errors of
    ViT's patches of 16x16 points, three channels, on an H200: 1.4e-6 and 2.3e-4. Other convolutions are computed in
    TF32 in either layout, as `torch.backends.cudnn.allow_tf32` says.
    """
    source = cast(TensorType, op.operands[_roles(op).source].type)
    if cast(AnyFloat, source.element).bitwidth != _BITS or not _library(op).rounds_channels_last:
        return False
    channels = source.shape[1].as_int()
    return channels is not None and channels % _TENSOR_CHANNELS != 0


def _pays(op: Operation, estimates: Sizes, copied: int, packed: Collection[Operation]) -> bool:
    """Whether channels side by side save more elements' copies than they cost; `copied` are those made around the call.

    The library saves a copy of each image; on the CPU ATen may copy the weight instead. Measured
    on two cores, milliseconds from contiguous tensors and with channels side by side: one image of 7x7 points, 512
    channels to 512, windows of 3x3, 8.2 and 26.3; four images of 56x56 points, 64 channels to 64, 5.1 and 4.6.
    """
    saved = sum(_likely_elements(value, estimates) for value in _images(op))
    if op in packed:
        return saved + _unfolded(op, estimates) > copied
    return saved > copied + _weight_copied(op, _weight(op), estimates)


def _unfolded(op: Operation, estimates: Sizes) -> int:
    """Elements that ATen copies on a CPU to lay the windows of volumes of float32 side by side, in front of a product.

    Milliseconds of such a call, and of one with a packed weight and copies of both images around it, one core of an AMD
    EPYC: 16 channels of 16x56x56 points to 32 by 3x3x3 83 and 13, 4 of 8x32x32 to 16 1.1 and 0.4.
    """
    weight, result = (cast(TensorType, value.type) for value in (_weight(op), op.results[0]))
    is_unfolded = isinstance(result.element, Float32Type) and len(result.shape) == _RANK_OF_VOLUMES
    if not is_unfolded or all(size is ONE for size in weight.shape[2:]):
        return 0
    return estimates.product((result.shape[0], *result.shape[2:])) * estimates.product(weight.shape[1:])


def _likely_elements(value: SSAValue, estimates: Sizes) -> int:
    return estimates.product(cast(TensorType, value.type).shape)


def _weight_copied(op: Operation, weight: SSAValue, estimates: Sizes) -> int:
    """Elements of a weight that a convolution with channels side by side moves beyond what another one moves.

    On the CPU ATen gives the weight the input's layout. For windows of one point both layouts are the same, but oneDNN
    arranges such a weight more slowly once it exceeds the second-level cache: at 4x4 points 1.9 ms became 2.8 to 4.5
    for weights of 4 MiB, 0.51 became 0.78 for 1 MiB, while 0.14 became 0.12 for 150 KiB.
    """
    type_ = cast(TensorType, weight.type)
    elements = estimates.product(type_.shape)
    target = target_at(op, type_.device)
    if not target.family.library.copies_weights or (not type_.is_contiguous and is_channels_last(weight)):
        return 0
    fits = isinstance(target, CpuTarget) and estimates.bytes(type_) < target.l2_bytes
    return 0 if fits and all(size is ONE for size in type_.shape[2:]) else elements


def _is_rearranged(op: Operation, weight: SSAValue) -> bool:
    """Whether ATen would copy the weight of an op on a GPU that has channels last.

    The gradient of a weight does not read it.
    """
    type_ = cast(TensorType, weight.type)
    if _library(op).copies_weights or not _image_results(op):
        return False
    return has_layouts(type_) and not is_channels_last(weight)


class _Rewriter:
    """The state for one function. `free` are the numbers of its results that may have any strides."""

    def __init__(
        self, block: Block, convolutions: frozenset[Operation], estimates: Sizes, free: frozenset[int],
        packed: frozenset[Operation],
    ) -> None:  # fmt: skip
        self.block = block
        self.convolutions = set(convolutions)
        """Those that are converted or may still be."""
        self.estimates = estimates
        self.free = free
        self.packed = packed
        """Those whose weights the library arranges once."""
        self.mutations = Mutations(block)
        self.ranks = {len(cast(TensorType, _weight(op).type).shape) for op in convolutions}
        """Dimensions of what they read and make."""
        self.converted: list[Operation] = []
        self.copies: dict[SSAValue, SSAValue] = {}
        """Channels-last copies of values that keep their strides, the latest of each."""

    def run(self) -> None:
        """Sweep over the function, over values whose readers have changed since, and over the weights."""
        nests: list[Operation] = []
        for op in list(self.block.ops):
            if op in self.convolutions:
                self._consider(op)
            elif type(op) in NESTS:
                nests.append(op)
                self._follow(op)
        self._decide_together(nests)
        for op in self.converted:
            self._arrange_weight(op)

    def _follow(self, nest: Operation) -> None:
        """Give results of a nest channels last where that is better as things stand."""
        for value in list(nest.results):
            if self._should_follow(value):
                retype(value)

    def _decide_together(self, nests: Sequence[Operation]) -> None:
        """Give what is still open channels last where that is better for values that are computed from one another.

        Each of them alone may be better off as it is, because of the others.
        """
        undecided = [value for nest in nests for value in nest.results if self._is_open(value)]
        for group in groups(undecided):
            votes: Counter[int | None] = Counter()
            for value in group:
                votes += votes_for(value, group, lambda accessed: self.estimates.product(accessed.shape))
            others = {unit_dimension(cast(TensorType, value.type)) for value in group}
            if votes[1] > sum(votes[dimension] for dimension in others):
                for value in group:
                    if not is_channels_last(value):  # a scatter takes what it fills along
                        retype(value)

    def _is_open(self, value: SSAValue) -> bool:
        """Whether an image between nests is contiguous and need not be.

        One of a single point lies in either way alike; what a convolution returns would get other strides by its own.
        """
        type_ = cast(TensorType, value.type)
        is_image = len(type_.shape) in self.ranks and type_.shape[1] is not ONE
        is_image = is_image and any(size is not ONE for size in type_.shape[2:])
        return is_image and type_.is_contiguous and self._is_free(value)

    def _is_free(self, value: SSAValue) -> bool:
        """Whether a nest makes a value, or a convolution that was converted, and no reader cares for its strides."""
        owner = value.owner
        made = is_made_by_nest(value) or (owner in self.convolutions and is_channels_last(value))
        return made and all(self._is_indifferent(use) for use in value.uses)

    def _is_indifferent(self, use: Use) -> bool:
        op = use.operation
        if type(op) is LoadOp or (type(op) is ReturnOp and use.index in self.free):
            return True
        return op in self.convolutions and use.index in _roles(op).image_operands

    def _arrange_weight(self, op: Operation) -> None:
        """Let a convolution on a GPU read its weight as ATen would rearrange it in every call, by a kernel of its own.

        The copy stands in front of the convolution: those of ResNet-50 together are 43 MiB, what else is alive 28.
        """
        position = _roles(op).weight
        weight = op.operands[position]
        if not _library(op).copies_weights and self._is_free_weight(weight):
            retype(weight)
        elif _is_rearranged(op, weight) and counter("loop-channels-last"):
            op.operands[position] = self._copied(weight, op)

    def _is_free_weight(self, weight: SSAValue) -> bool:
        """Whether a nest makes a contiguous weight for nobody but convolutions with channels last, and backward."""
        type_ = cast(TensorType, weight.type)
        if not isinstance(weight.owner, GenerateOp):
            return False
        return (
            type_.is_contiguous
            and has_layouts(type_)
            and all(
                (use.operation in self.converted and use.index == _roles(use.operation).weight)
                or (type(use.operation) is ReturnOp and use.index in self.free)
                for use in weight.uses
            )
        )

    def _consider(self, op: Operation) -> None:
        """Convert a convolution where fewer copies are made than those that the library saves.

        So is one that reads channels last already: ATen would give its result, and its weight, that layout as well.
        One that is not converted needs the strides that it reads.
        """
        follows = any(is_channels_last(op.operands[k]) for k in _roles(op).image_operands)
        sources = {k: self._origin(op.operands[k], op) for k in _roles(op).image_operands}
        copied = {k: v for k, v in sources.items() if not (is_channels_last(v) or self._is_free(v))}
        fixed = {v: uses for v in _image_results(op) if not is_channels_last(v) and (uses := self._fixed_uses(v))}
        crossed = [v for v in _image_results(op) if v not in fixed and self._is_read_across(v)]
        moved = (*dict.fromkeys(copied.values()), *fixed, *crossed)
        elements = sum(_likely_elements(value, self.estimates) for value in moved)
        if not follows and not _pays(op, self.estimates, elements, self.packed):
            self.convolutions.discard(op)
            why = "its input and its result would both be copied"
            if len(copied) + len(fixed) + len(crossed) < len(_images(op)):
                why = "its weight and what is copied around it are more than the copies that are saved"
            remark("missed", "loop-channels-last", op, f"not channels last: {why}")
        elif counter("loop-channels-last"):
            self._convert(op, sources, copied)

    def _is_read_across(self, value: SSAValue) -> bool:
        """Whether nests of the CPU alone read a contiguous value, and what they make must stay contiguous: they would
        move each element as a copy does. Ms of a core for 2 x 672 channels of 14 x 14 points in groups of one, and
        relu: 3.0 where it read channels last, and 1.3 in eager."""
        type_ = cast(TensorType, value.type)
        if not type_.is_contiguous or not isinstance(target_at(cast(Operation, value.owner), type_.device), CpuTarget):
            return False
        made = [result for use in value.uses for result in self._nest_around(use.operation).results]
        return bool(made) and all(
            isinstance(each.type, TensorType)
            and each.type.shape == type_.shape
            and each.type.is_contiguous
            and not self._is_open(each)
            for each in made
        )

    def _nest_around(self, op: Operation) -> Operation:
        """The op of the function that an op is in."""
        parent = op.parent_op()
        while op.parent is not self.block and parent is not None:
            op, parent = parent, parent.parent_op()
        return op

    def _fixed_uses(self, value: SSAValue) -> list[Use]:
        """The uses that need the strides which a value has; backward gets what is returned for others as well."""
        fixed = [use for use in value.uses if not self._is_indifferent(use)]
        if any(type(use.operation) is ReturnOp for use in fixed):
            fixed = [use for use in value.uses if use in fixed or type(use.operation) is ReturnOp]
        return fixed

    def _origin(self, value: SSAValue, reader: Operation) -> SSAValue:
        """What has channels last already, where `value` is a copy of it that reads the same elements."""
        source = copied_value(value)
        if source is None or not is_channels_last(source):
            return value
        moved = self.mutations.moves_past_write([source], cast(Operation, value.owner), reader)
        return value if moved else source

    def _should_follow(self, value: SSAValue) -> bool:
        """Whether a value between nests is better off with the strides of what its producer reads."""
        if not self._is_open(value):
            return False
        reads = any(is_channels_last(load.operands[0]) for load in loads_in(cast(Operation, value.owner)))
        if not reads or any(type(use.operation) is not LoadOp for use in value.uses):
            return reads
        votes = votes_for(value)
        return votes[1] > votes[unit_dimension(cast(TensorType, value.type))]

    def _convert(self, op: Operation, sources: dict[int, SSAValue], copied: Collection[int]) -> None:
        """Give all images of an op channels last; `copied` are positions of `sources` that keep their strides."""
        roles = _roles(op)
        for position, source in sources.items():
            if position in copied:
                source = self._copied(source, op)
            elif not is_channels_last(source):
                source = retype(source)
            op.operands[position] = source
        op.operands[roles.weight] = self._origin(op.operands[roles.weight], op)
        found = [self._relay(value, op, copy_of) for value in _image_results(op) if not is_channels_last(value)]
        for number in roles.weight_results:
            weight = op.results[number]
            if isinstance(weight.type, TensorType) and weight.type.is_contiguous:
                self._relay(weight, op, copy_of if has_layouts(weight.type) else view_of)
        self.converted.append(op)
        remark("passed", "loop-channels-last", op, "channels last", copied_result=any(found))

    def _relay(self, value: SSAValue, op: Operation, make: Callable[..., Operation]) -> bool:
        """Give a result channels last, and readers of its old strides what `make` makes; whether there are such."""
        plain, fixed = cast(TensorType, value.type), self._fixed_uses(value)
        result = retype(value)
        if fixed:
            made = make(result, plain, op)
            self.block.insert_op_after(made, op)
            for use in fixed:
                use.operation.operands[use.index] = made.results[0]
        return bool(fixed)

    def _copied(self, source: SSAValue, op: Operation) -> SSAValue:
        copy = self.copies.get(source)
        if copy is None or self.mutations.moves_past_write([source], cast(Operation, copy.owner), op):
            made = copy_of(source, channels_last(cast(TensorType, source.type)), op)
            self.block.insert_op_before(made, op)
            self.mutations.replace(op, made)
            copy = self.copies[source] = made.results[0]
        return copy
