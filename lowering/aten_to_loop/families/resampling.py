"""Upsampling: nearest and linear, over the last dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ....dialects.parametric import parametric
from ....dialects.sym import Expr
from ..dtypes import F32, I64, computation_type
from ..nests import LoopBuilder, shape_of
from ..rules import Call, Replacement, add_rule
from ..scalar import Scalar
from ..scalar_builder import Index
from .scatter import filled_with


def _scales(call: Call, dims: int) -> list[float | None]:
    """The scale factors that the program gave, by dimension."""
    names = ("scales",) if dims == 1 else ("scales_d", "scales_h", "scales_w")[3 - dims :]
    return [call[name] for name in names]


def _ratio(b: LoopBuilder, size: Expr, result: Expr, given: float | None) -> Scalar | float:
    """How far the source moves for one output element, in float32."""
    if given is not None and given > 0:
        return 1.0 / given
    known, parts = size.as_int(), result.as_int()
    if known is not None and parts:
        return known / parts
    return b.s.index(size).to(F32) / b.s.index(result).to(F32)


def _nearest_place(b: LoopBuilder, axis: Expr, size: Expr, result: Expr, given: float | None, offset: float) -> Index:
    """floor((i + offset) * ratio), at most the last element."""
    s = b.s
    position = s.index(axis).to(F32)
    if offset:
        position = position + offset
    return s.min((position * _ratio(b, size, result, given)).to(I64), s.index(size - 1))


@parametric
def _nearest(b: LoopBuilder, call: Call, dims: int, offset: float) -> Replacement:
    source = call.tensor("self")
    shape, result = shape_of(source), call.type.shape
    first = len(shape) - dims

    def body(index: tuple[Expr, ...]) -> Scalar:
        places = [
            _nearest_place(b, index[first + k], shape[first + k], result[first + k], scale, offset)
            for k, scale in enumerate(_scales(call, dims))
        ]
        return b.s.load(source, (*index[:first], *places))

    return b.generate(body, call.type)


for _dims in (1, 2, 3):
    add_rule(f"upsample_nearest{_dims}d", _nearest(_dims, 0.0))
    add_rule(f"_upsample_nearest_exact{_dims}d", _nearest(_dims, 0.5))


@parametric
def _nearest_backward(b: LoopBuilder, call: Call, dims: int, offset: float) -> Replacement:
    """Each gradient is added at the place that its output element was read from."""
    grad = call.tensor("grad_output")
    shape, result = call.type.shape, shape_of(grad)
    first = len(shape) - dims

    def body(index: tuple[Expr, ...]) -> tuple[Scalar, Sequence[Index]]:
        places = [
            _nearest_place(b, index[first + k], shape[first + k], result[first + k], scale, offset)
            for k, scale in enumerate(_scales(call, dims))
        ]
        return b.s.load(grad, index), (*index[:first], *places)

    return b.scatter(filled_with(b, 0, call.type), result, body, call.type, "add")


for _dims in (1, 2, 3):
    add_rule(f"upsample_nearest{_dims}d_backward", _nearest_backward(_dims, 0.0))
    add_rule(f"_upsample_nearest_exact{_dims}d_backward", _nearest_backward(_dims, 0.5))


def _linear_source(
    b: LoopBuilder, axis: Expr, size: Expr, result: Expr, given: float | None, align: bool
) -> tuple[list[Scalar], list[Scalar]]:
    """The two neighbours of an output element along a dimension, and their weights."""
    s = b.s
    position = s.index(axis).to(F32)
    if align:
        steps = s.max(s.index(result) - 1, 1).to(F32)
        place = position * (s.index(size - 1).to(F32) / steps)
    else:
        place = s.max((position + 0.5) * _ratio(b, size, result, given) - 0.5, 0.0)
    low = s.min(place.to(I64), s.index(size - 1))
    high = s.min(low + 1, s.index(size - 1))
    weight = s.clamp(place - low.to(F32), 0.0, 1.0)
    return [low, high], [1.0 - weight, weight]


@parametric
def _linear(b: LoopBuilder, call: Call, dims: int) -> Replacement:
    """The sum of 2 ** dims neighbours, each with the product of its weights."""
    s = b.s
    source = call.tensor("self")
    shape, result = shape_of(source), call.type.shape
    first = len(shape) - dims
    align = call["align_corners"]

    def body(index: tuple[Expr, ...]) -> Scalar:
        axes = [
            _linear_source(b, index[first + k], shape[first + k], result[first + k], scale, align)
            for k, scale in enumerate(_scales(call, dims))
        ]
        total: Scalar | None = None
        for corner in product((0, 1), repeat=dims):
            places = [places[c] for (places, _), c in zip(axes, corner, strict=True)]
            value = s.widen(s.load(source, (*index[:first], *places)))
            value = _weighted(value, [weights[c] for (_, weights), c in zip(axes, corner, strict=True)])
            total = value if total is None else total + value
        assert total is not None
        return total

    return b.generate(body, call.type)


def _weighted(value: Scalar, weights: Sequence[Scalar]) -> Scalar:
    for weight in weights:
        value = value * weight.to(value.element)
    return value


add_rule("upsample_linear1d", _linear(1))
add_rule("upsample_bilinear2d", _linear(2))
add_rule("upsample_trilinear3d", _linear(3))


@parametric
def _linear_backward(b: LoopBuilder, call: Call, dims: int) -> Replacement:
    """Each gradient is added to the 2 ** dims neighbours that it was mixed from, one after the other."""
    s = b.s
    grad = call.tensor("grad_output")
    shape, result = call.type.shape, shape_of(grad)
    first = len(shape) - dims
    wide = call.type.with_(element=computation_type(call.type.element))
    total = filled_with(b, 0, wide)
    for corner in product((0, 1), repeat=dims):

        def body(index: tuple[Expr, ...], corner: tuple[int, ...] = corner) -> tuple[Scalar, Sequence[Index]]:
            value = s.widen(s.load(grad, index))
            places: list[Index] = []
            for k, (scale, c) in enumerate(zip(_scales(call, dims), corner, strict=True)):
                d = first + k
                both, weights = _linear_source(b, index[d], shape[d], result[d], scale, call["align_corners"])
                places.append(both[c])
                value = value * weights[c].to(value.element)
            return value, (*index[:first], *places)

        total = b.scatter(total, result, body, wide, "add")
    return total if wide == call.type else b.pointwise(lambda x: x, call.type, total)


add_rule("upsample_linear1d_backward", _linear_backward(1))
add_rule("upsample_bilinear2d_backward", _linear_backward(2))
add_rule("upsample_trilinear3d_backward", _linear_backward(3))
