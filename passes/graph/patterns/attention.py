"""Attention written out, as one ATen op."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType
from xdsl.ir import SSAValue

from ....dialects.aten import Device, TensorType
from ....dialects.machine import target_of
from ....dialects.sym import ONE, Expr
from .._pattern import Others, Pattern, PatternBuilder, PatternCall, either
from .._replacement import ReplacementBuilder, type_of

_FLOATS = (Float16Type, BFloat16Type, Float32Type, Float64Type)
_HIDING = -1e9
"""What is added to a score, or stands for it, from here on down gives it a weight of 0."""


def _attention(
    aten: PatternBuilder,
    query: Any, key: Any, value: Any,
    factor: Any, divisor: Any,
    mask: Any, hidden: Any, fill: Any, shown: Any, other: Any,
    dim: Any, wide: Any, kept: Any,
    gradient: Any, nothing: Any,
) -> tuple[PatternCall, ...]:  # fmt: skip
    """softmax(query @ key * factor + mask) @ value; `key` is transposed already.

    And, in a joint graph, the gradients of `value`, `query` and `key` from the `gradient` of the product.
    """
    scores = aten.matmul(query, key)
    scaled = either(aten.mul(scores, factor), aten.div(scores, divisor), scores)
    masked = either(
        aten.add(scaled, mask),
        aten.masked_fill(scaled, hidden, fill),
        aten.where(shown, scaled, other),
        scaled,
    )
    widened = either(aten._to_copy(masked, dtype=wide, layout=..., device=...), masked)
    weights = aten._softmax(widened, dim, ...)
    narrowed = either(aten._to_copy(weights, dtype=..., layout=..., device=...), weights)
    # the guard refuses dropout, so that a remark tells of it
    dropped = either(aten.mul(aten.mul(narrowed, kept), ...), aten.native_dropout(narrowed, kept, ...), narrowed)
    output = aten.matmul(dropped, value)

    of_dropped = aten.left_gradient(gradient, output)
    of_narrowed = either(
        aten.native_dropout_backward(of_dropped, kept, ...),
        aten.native_dropout_backward(of_dropped, ..., ...),
        of_dropped,
        like=dropped,
    )
    of_weights = either(aten._to_copy(of_narrowed, dtype=..., layout=..., device=...), of_narrowed, like=narrowed)
    of_widened = aten._softmax_backward_data(of_weights, weights, dim, ...)
    of_masked = either(aten._to_copy(of_widened, dtype=..., layout=..., device=...), of_widened, like=widened)
    of_scaled = either(
        of_masked,
        aten.masked_fill(of_masked, hidden, nothing),
        aten.where(shown, of_masked, nothing),
        of_masked,
        like=masked,
    )
    of_scores = either(aten.mul(of_scaled, factor), aten.div(of_scaled, divisor), of_scaled, like=scaled)
    return (
        output,
        aten.right_gradient(gradient, output),
        aten.left_gradient(of_scores, scores),
        aten.right_gradient(of_scores, scores),
    )


def _number(value: Any) -> float | None:
    """A Python number, also one that is a 0-d constant."""
    if isinstance(value, SSAValue):
        op = value.owner
        is_constant = getattr(op, "target", "") == "aten.full" and not type_of(value).shape
        value = op.arg("fill_value") if is_constant else None  # pyright: ignore[reportAttributeAccessIssue]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _scale(factor: Any, divisor: Any) -> float | None:
    """What the scores are multiplied by; None when it is no number."""
    if factor is None and divisor is None:
        return 1.0
    number = _number(factor if divisor is None else divisor)
    if number is None or number == 0 or not math.isfinite(number):
        return None
    return number if divisor is None else 1 / number


def _guard(
    query: SSAValue, key: SSAValue, value: SSAValue, factor: Any, divisor: Any,
    mask: Any, hidden: Any, fill: Any, shown: Any, other: Any, dim: int, wide: Any, kept: Any,
    gradient: Any, nothing: Any, root: SSAValue, others: Others,
) -> str | None:  # fmt: skip
    types = [type_of(each) for each in (query, key, value)]
    result = type_of(root)
    rank = len(result.shape)
    if kept is not None:
        return "its weights are dropped at random"
    if not target_of(root).family.library.fuses_attention:
        return f"the attention of {result.device} is not called yet"
    if rank not in (3, 4) or any(len(t.shape) != rank for t in types):
        return "it has no three or four dimensions"
    if not isinstance(result.element, _FLOATS) or any(t.element != result.element for t in types):
        return "the dtypes differ or are no floats"
    if dim % rank != rank - 1:
        return "the softmax is not over keys"
    if types[0].shape[-1] is not types[2].shape[-1]:
        return "queries and values have different widths"
    if any(size.as_int() == 0 for t in types for size in t.shape):
        return "it is empty"
    if _scale(factor, divisor) is None:
        return "the scale is no number"
    if not result.is_contiguous or not all(other is None or type_of(other).is_contiguous for other in others):
        return "a result is not row-major"
    if types[0].shape[:-2] != types[2].shape[:-2]:
        return "the mask has more dimensions of a batch than the scores"
    if nothing is not None and _number(nothing) != 0:
        return "the gradient of hidden scores is not zero"
    return _mask_problem(mask, hidden if hidden is not None else shown, fill if shown is None else other, types[0])


def _mask_problem(mask: Any, choice: Any, fill: Any, query: TensorType) -> str | None:
    if mask is not None:
        if not isinstance(mask, SSAValue) or not isinstance(mask.type, TensorType):
            return "a number is added to the scores"
        return None if mask.type.element == query.element else "the mask has another dtype"
    if choice is None:
        return None
    number = _number(fill)
    if number is None or not number <= _HIDING:
        return "hidden scores do not become very small"
    is_bool = isinstance(choice, SSAValue) and type_of(choice).element == IntegerType(1)
    return None if is_bool else "the mask is no bool"


def _replace(
    aten: ReplacementBuilder,
    query: SSAValue, key: SSAValue, value: SSAValue, factor: Any, divisor: Any,
    mask: Any, hidden: Any, fill: Any, shown: Any, other: Any, dim: int, wide: Any, kept: Any,
    gradient: Any, nothing: Any, root: SSAValue, others: Others,
) -> Others:  # fmt: skip
    result = type_of(root)
    if hidden is not None or shown is not None:
        mask = _additive(aten, result, hidden, fill, shown, other)
    scores = (*type_of(query).shape[:-1], type_of(key).shape[-1])
    keys = aten.transpose.int(key, dim0=-2, dim1=-1)
    query, keys, value = (_four_dimensional(aten, _dense(aten, each)) for each in (query, keys, value))
    if mask is not None:
        mask = _four_dimensional(aten, aten.expand(mask, size=scores))
    shape = type_of(query).shape
    heads = (shape[0], shape[2], shape[1])
    wide_element = Float64Type() if result.element == Float64Type() else Float32Type()
    sums = TensorType.get((shape[0], shape[1], shape[2]), wide_element, (heads[1] * heads[2], ONE, heads[2]))
    options = {"attn_mask": mask, "scale": _scale(factor, divisor)}
    forward = aten._scaled_dot_product_flash_attention_for_cpu(query, keys, value, **options, types=[query.type, sums])
    copy = aten.clone(forward[0])
    output = copy if copy.type == result else aten.view(copy, size=result.shape)
    if all(other is None for other in others):
        return output, *others
    return output, *_gradients(aten.behind(copy, gradient), gradient, (query, keys, value), forward, options, others)


def _gradients(
    aten: ReplacementBuilder, gradient: SSAValue, inputs: Sequence[SSAValue],
    forward: tuple[SSAValue, SSAValue], options: dict[str, Any], others: Others,
) -> Others:  # fmt: skip
    """The gradients of value, query and transposed key, row-major as products give them; None for those not wanted."""
    shape = type_of(forward[0]).shape
    gradient = _dense(aten, gradient if type_of(gradient).shape == shape else aten.view(gradient, size=shape))
    found = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        gradient, *inputs, *forward, 0.0, False, **options, types=[_by_position(each) for each in inputs]
    )
    of_query, of_key, of_value = found
    if others[2] is not None:
        of_key = aten.transpose.int(of_key, dim0=-2, dim1=-1)
    return tuple(
        None if other is None else aten.view(aten.clone(value), size=type_of(other).shape)
        for other, value in zip(others, (of_value, of_query, of_key), strict=True)
    )


def _by_position(value: SSAValue) -> TensorType:
    """The type of a gradient: the heads of one position lie next to each other."""
    type_ = type_of(value)
    _, heads, positions, width = type_.shape
    strides = (positions * heads * width, width, heads * width, ONE)
    return TensorType.get(type_.shape, type_.element, strides, type_.device)


def _additive(aten: ReplacementBuilder, result: TensorType, hidden: Any, fill: Any, shown: Any, other: Any) -> SSAValue:
    """A mask to be added: 0 for what is seen, very little for what is hidden."""
    numbers = {"dtype": result.element, "device": Device(result.device)}
    zero = aten.full(size=(), fill_value=0.0, **numbers)
    low = aten.full(size=(), fill_value=_number(fill if shown is None else other), **numbers)
    return aten.where.self(hidden, low, zero) if shown is None else aten.where.self(shown, zero, low)


def _dense(aten: ReplacementBuilder, value: SSAValue) -> SSAValue:
    """The value itself where its elements fill memory, innermost dimension last; else a copy.

    The result of the op has the strides of the query, if those are of this kind.
    """
    type_ = type_of(value)
    by_stride = sorted(zip(type_.strides, type_.shape, strict=True), key=_weight)
    expected: Expr = ONE
    for stride, size in by_stride:
        if stride is not expected:
            return aten.clone(value)
        expected = expected * size
    return value if type_.strides[-1] is ONE else aten.clone(value)


def _weight(dimension: tuple[Expr, Expr]) -> tuple[int, int]:
    stride = dimension[0].as_int()
    return (len(dimension[0].terms), 2**62) if stride is None else (0, stride)


def _four_dimensional(aten: ReplacementBuilder, value: SSAValue) -> SSAValue:
    return value if len(type_of(value).shape) == 4 else aten.unsqueeze(value, dim=0)


ATTENTION = Pattern(
    "attention",
    _attention,
    _replace,
    guard=_guard,
    differs="rows of which every key is hidden give 0 where eager gives NaN, or other weights where it gives equal"
    " ones; a NaN in queries or keys may be lost; sums are added up in blocks; inner values of low precision are not"
    " rounded, and the gradient computes them anew",
)
