"""A library's relu that loses NaN, where a program knows when it is called that there is none.

The library rectifies what it has in registers, and makes 0 of NaN. A convolution of finite numbers makes no NaN unless
a sum overflows. How large its sums can be follows from the largest magnitude of an image and from the weights, which
stay: so the program measures an image here and there, compares that with a limit that the weights allow, and hands the
truth to the calls behind, which let the library rectify or do it themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float32Type, Float64Type, f32, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten import CallOp
from ...dialects.aten.types import TensorType, type_of
from ...dialects.loop import GenerateOp, LoadOp, ReduceOp, ViewOp, YieldOp
from ...dialects.scalar import WidenOp
from ...dialects.sym import ONE, ZERO, AxesAttr, MapAttr, symbol
from ...records import dataclass, field
from ..analysis.kept import is_kept_value
from ..analysis.magnitudes import INFINITE, Bound, bound_of, bound_of_convolution, bound_of_sum
from ..analysis.packing import own_call
from ..analysis.sizes import Sizes
from ..counters import counter
from ..remarks import remark
from ._image_layouts import copied_value
from ._packed_calls import CONVOLUTION, is_there, may_be_strided, only_reader, with_post_op
from ._post_ops import NONE, RELU, PostOp, post_op

_MEASURED = 65536.0
"""What is measured has to be no larger than this: activations of trained networks are not."""
_DEEP, _DEEPER = 8, 12
"""Convolutions behind a measured image: from so many on one is measured anew that costs little, and any, for each of
them multiplies the bound by 10 to 200."""
_SMALL = 4096
"""Elements of which a kernel takes no longer than its launch: nothing is measured for their relu."""
_PASS = "loop-pack-weights"


@dataclass
class _Measured:
    """An image that is measured in front of a call, and what has to be finite behind it."""

    image: SSAValue
    call: CallOp
    bounds: list[Bound] = field(default_factory=list)


@dataclass
class _Rectified:
    """A convolution and what the library is to do behind it: perhaps a sum, and relu."""

    call: CallOp
    nests: list[tuple[Operation, PostOp]]
    by: int


def guard_relus(
    calls: Sequence[CallOp], block: Block, sizes: Sizes, fixed: Collection[SSAValue], rounds: bool
) -> list[Operation]:
    """Let packed convolutions rectify where their sums are finite; ops on weights alone, which the kept function does.

    fixed:  frozen arguments that nobody writes
    rounds: whether a sum in 16 bits is rounded before another one is added
    """
    plan = _Plan({call: _wanted(call, block, rounds) for call in calls if call.target == CONVOLUTION}, sizes, fixed)
    if not any(plan.wanted.values()):
        return []
    for op in block.ops:
        plan.see(op)
    if not plan.found or not counter(_PASS):
        return []
    return _build(plan, block)


def _wanted(call: CallOp, block: Block, rounds: bool) -> list[tuple[Operation, PostOp]]:
    """The nests that the library can do behind a convolution, of which the last one is relu."""
    *_, transposed, _, _, activation, other, _ = call.args()
    if activation != NONE or type_of(call.results[0]).element not in (Float32Type(), BFloat16Type()):
        return []
    nests: list[tuple[Operation, PostOp]] = []
    value: SSAValue = call.results[0]
    while (nest := only_reader(value, block)) is not None and (found := post_op(nest, value)) is not None:
        if not may_be_strided(nest.results[0]):
            break
        nests.append((nest, found))
        if found.activation == RELU:
            return nests
        is_sum = found.other is not None and other is None and not transposed and is_there(found.other, call)
        if not is_sum or (rounds and type_of(value).element != Float32Type()):
            break
        other, value = found.other, nest.results[0]
    return []


class _Plan:
    """What is known of how large values are, op by op, and what to measure and to rectify."""

    def __init__(
        self, wanted: Mapping[CallOp, list[tuple[Operation, PostOp]]], sizes: Sizes, fixed: Collection[SSAValue]
    ) -> None:
        self.wanted = wanted
        self.sizes = sizes
        self.fixed = fixed
        self.bounds: dict[SSAValue, Bound] = {}
        self.measured: list[_Measured] = []
        self.found: list[_Rectified] = []

    def see(self, op: Operation) -> None:
        """Bound the result of the next op of the block."""
        bound: Bound | None = None
        if type(op) is CallOp and op in self.wanted:
            bound = self._convolution(op)
        elif type(op) is ViewOp:
            bound = self.bounds.get(op.operands[0])
        elif type(op) is GenerateOp and self.measured:
            bound, others = bound_of(op, self.bounds)
            self.measured[-1].bounds += others
        if bound is not None:
            self.bounds[op.results[0]] = bound

    def _convolution(self, call: CallOp) -> Bound | None:
        image, _, bias, *_, other, _ = call.args()
        assert isinstance(image, SSAValue)
        if isinstance(bias, SSAValue) and bias not in self.fixed and not is_kept_value(bias):
            return None
        nests = self.wanted[call]
        added = [other, *(found.other for _, found in nests)]
        others = [value for value in added if isinstance(value, SSAValue)]
        if nests and all(each in self.bounds for each in others):
            self._measure(image, call, nests[-1][0].results[0])
        if image not in self.bounds:
            return None
        bound = bound_of_convolution(self.bounds[image], call)
        own = self._and(bound, other)
        if nests and all(each in self.bounds for each in others):
            self.found.append(_Rectified(call, nests, len(self.measured) - 1))
            whole = own
            for _, found in nests:
                whole = self._and(whole, found.other) if whole is not None else None
            assert whole is not None
            self.measured[-1].bounds.append(whole)
        return own

    def _and(self, bound: Bound, other: SSAValue | None) -> Bound | None:
        """A bound of the sum with another image, if there is one and it has a bound."""
        if other is None:
            return bound
        found = self.bounds.get(other)
        return None if found is None else bound_of_sum(bound, found)

    def _measure(self, image: SSAValue, call: CallOp, result: SSAValue) -> None:
        """Look how large an image is, where that is needed, or soon will be and costs little beside its relu."""
        type_ = type_of(image)
        if type_.element not in (Float32Type(), BFloat16Type()):
            return
        count, rectified = (self.sizes.product(type_of(value).shape) for value in (image, result))
        known = self.bounds.get(image)
        depth = _DEEPER if known is None else known.depth
        if rectified <= _SMALL:
            return
        pays = count <= 4 * rectified and depth >= _DEEPER
        if pays or (depth >= _DEEP and 2 * count <= rectified):
            self.measured.append(_Measured(image, call))
            self.bounds[image] = Bound("measured", constant=_MEASURED)


def _build(plan: _Plan, block: Block) -> list[Operation]:
    """Measure, and let the library rectify; what is made of weights alone."""
    emitter = _Emitter(block)
    finite: list[SSAValue] = []
    for each in plan.measured:
        limit = emitter.limit(each)
        nests = _looks(each.image, limit, finite[-1] if finite else None, each.call)
        block.insert_ops_before(nests, each.call)
        finite.append(nests[-1].results[0])
    for each in plan.found:
        call = each.call
        for nest, _ in each.nests:
            found = post_op(nest, call.results[0])  # what it adds may be the result of another call by now
            assert found is not None
            remark("passed", _PASS, nest, "the library does it where the image is measured to be finite")
            known = finite[each.by] if found.activation == RELU else None
            call = with_post_op(call, nest, PostOp(found.activation, found.other, known))
    return emitter.ops


class _Emitter:
    """Makes ops that compute bounds, at the end of the block for the time being."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.ops: list[Operation] = []
        self._known: dict[Bound, SSAValue] = {}

    def limit(self, measured: _Measured) -> SSAValue:
        """The largest magnitude of a measured image with which all is finite."""
        bounds = [self._bound(each, measured.call) for each in dict.fromkeys(measured.bounds)]
        return self._call(measured.call, "finite_limit", [bounds, _MEASURED], _NUMBER)

    def _bound(self, bound: Bound, at: Operation) -> SSAValue:
        if bound not in self._known:
            self._known[bound] = self._made(bound, at)
        return self._known[bound]

    def _made(self, bound: Bound, at: Operation) -> SSAValue:
        parts = [self._bound(part, at) for part in bound.parts]
        if bound.call is not None:
            _, packed, bias, _, _, _, transposed, *_ = bound.call.args()
            weight = cast(CallOp, cast(SSAValue, packed).owner).args()[0]
            return self._call(bound.call, "bound_convolution", [*parts, weight, bias, transposed], _WIDE_NUMBER)
        given = parts if parts else [bound.constant]
        return self._call(at, f"bound_{bound.kind if parts else 'constant'}", given, _WIDE_NUMBER)

    def _call(self, at: Operation, name: str, args: Sequence[object], type_: TensorType) -> SSAValue:
        call = own_call(at, name, args, type_)
        last = self.block.last_op
        assert last is not None
        self.block.insert_op_before(call, last)
        self.ops.append(call)
        return call.results[0]


_NUMBER = TensorType.get((), Float32Type())
_WIDE_NUMBER = TensorType.get((), Float64Type())
_TRUTH = TensorType.get((), i1)


def _looks(image: SSAValue, limit: SSAValue, before: SSAValue | None, at: Operation) -> list[Operation]:
    """Nests, of which the last one says whether all magnitudes of an image are within a limit, and it was so before."""
    lines = _largest(image, at)
    type_ = type_of(lines.results[0])
    axes = AxesAttr.of(*((f"r{k}", size) for k, size in enumerate(type_.shape)))
    load = LoadOp.of(lines.results[0], MapAttr.of(*(ZERO if n is ONE else symbol(name) for name, n in axes.data)))
    inner = Region(Block([load, YieldOp.create(operands=[load.results[0]])]))
    largest = ReduceOp.of(axes, ["max"], inner)
    most = LoadOp.of(limit, MapAttr.of())
    body: list[Operation] = [largest, most, arith.CmpfOp(largest.results[0], most.results[0], "ole")]
    if before is not None:
        body.append(LoadOp.of(before, MapAttr.of()))
        body.append(arith.AndIOp(body[-2].results[0], body[-1].results[0]))
    last = YieldOp.create(operands=[body[-1].results[0]])
    return [lines, GenerateOp.of(AxesAttr.of(), Region(Block([*body, last])), [_TRUTH], location=at.location)]


def _largest(image: SSAValue, at: Operation) -> GenerateOp:
    """The largest magnitudes of an image along its innermost dimensions, where lanes read what lies side by side."""
    image = copied_value(image) or image  # the same elements, whose innermost dimension may be the longer one
    type_ = type_of(image)
    lanes = _innermost(type_)
    names = [f"i{lanes.index(k)}" if k in lanes else f"r{k}" for k in range(len(type_.shape))]
    outer = tuple((names[k], size) for k, size in enumerate(type_.shape) if k not in lanes)
    place = (ZERO if n is ONE else symbol(name) for name, n in zip(names, type_.shape, strict=True))
    ops: list[Operation] = [LoadOp.of(image, MapAttr.of(*place))]
    if type_.element != Float32Type():
        ops.append(WidenOp.of(ops[-1].results[0], type_.element, f32))
    ops.append(math.AbsFOp(ops[-1].results[0]))
    inner = Region(Block([*ops, YieldOp.create(operands=[ops[-1].results[0]])]))
    largest = ReduceOp.of(AxesAttr.of(*outer), ["max"], inner)
    body = Region(Block([largest, YieldOp.create(operands=[largest.results[0]])]))
    axes = AxesAttr.of(*((names[k], type_.shape[k]) for k in lanes))
    return GenerateOp.of(axes, body, [TensorType.get(axes.sizes, Float32Type())], location=at.location)


_LANES = 64
"""Elements side by side that fill the registers of a core, of which each has a maximum of its own."""


def _innermost(type_: TensorType) -> list[int]:
    """The dimensions of elements side by side, from the outer one, until there are enough."""
    steps = [(INFINITE if (known := step.as_int()) is None else known, -k) for k, step in enumerate(type_.strides)]
    found: list[int] = []
    count = 1
    for _, k in sorted(steps):
        if count >= _LANES:
            break
        found.insert(0, -k)
        count *= type_.shape[-k].as_int() or _LANES
    return found
