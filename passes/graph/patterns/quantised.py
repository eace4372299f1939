"""Products of quantised numbers: those that a library computes with integers.

    x   = (cast(qx) - zero_point) * scale                  per tensor; numbers, or tensors of one element
    w   = (qw - zero_points) * scales                      per output channel
    y   = addmm(bias, x, t(w)), mm(x, t(w)), convolution(x, w, bias, ...), bmm(x, expand(t(w))), bmm(...) + bias

and of float numbers of 16 bits with a weight of 8 bits, mm(x, cast(t(qw))) * scales.

`graph-multiply-quantised` applies them; they are no part of what the option `patterns` chooses from. Sums of integers
are exact, so that the results differ from eager's by the roundings of eager's sums of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerType, Signedness
from xdsl.ir import Block, SSAValue

from ....dialects.aten import AtenOp, MemoryFormat, TensorType
from ....dialects.sym import ONE, Expr, as_expr
from ....machines import HOST
from .._pattern import Either, Pattern, PatternBuilder, PatternCall, either
from .._replacement import ReplacementBuilder, type_of

_DIFFERS = "sums of integers are exact and scaled once, where eager adds up products of dequantised floats"
_EXACT_WITHOUT_VNNI = 127
"""Without instructions for integers oneDNN adds pairs of products in 16 bits, and saturates: 2 * 127 * 128 < 2^15."""


def numbers(aten: PatternBuilder, x: Any, scale: Any, zero_point: Any) -> PatternCall:
    """Dequantised numbers."""
    return aten.mul(aten.sub(aten._to_copy(x, dtype=...), zero_point), scale)


def _matrix(aten: PatternBuilder, x: Any, scale: Any, zero_point: Any) -> Either:
    found = numbers(aten, x, scale, zero_point)
    return either(found, aten.view(found, ...))


def _weight(aten: PatternBuilder, weight: Any, scales: Any, zero_points: Any) -> PatternCall:
    return aten.mul(aten.sub(weight, aten.view(zero_points, ...)), aten.view(scales, ...))


def addmm(
    aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any, bias: Any
) -> PatternCall:
    """A linear layer with a bias."""
    matrix = _matrix(aten, x, scale, zero_point)
    return aten.addmm(bias, matrix, aten.t(_weight(aten, weight, scales, zero_points)))


def mm(
    aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any
) -> PatternCall:
    """A linear layer without one."""
    return aten.mm(_matrix(aten, x, scale, zero_point), aten.t(_weight(aten, weight, scales, zero_points)))


def bmm(
    aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any
) -> PatternCall:
    """A linear layer of several matrices that do not lie side by side, such as what a recurrent layer gives."""
    matrix = aten.expand(aten.t(_weight(aten, weight, scales, zero_points)), ...)
    return aten.bmm(numbers(aten, x, scale, zero_point), matrix)


def biased_bmm(
    aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any, bias: Any
) -> PatternCall:
    """The same with a bias."""
    return aten.add(bmm(aten, x, scale, zero_point, weight, scales, zero_points), bias)


def convolution(
    aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any, bias: Any,
    stride: Any, padding: Any, dilation: Any, groups: Any,
) -> PatternCall:  # fmt: skip
    """A convolution of images."""
    image, window = numbers(aten, x, scale, zero_point), _weight(aten, weight, scales, zero_points)
    return aten.convolution(image, window, bias, stride, padding, dilation, False, ..., groups)


def _call(aten: ReplacementBuilder, name: str, args: Sequence[Any], type_: TensorType) -> SSAValue:
    is_tensor = isinstance(args[1], SSAValue)
    return aten.call(f"inductile::{name}{'.tensor' if is_tensor else ''}", args, [type_])


def _quantised_linear(
    aten: ReplacementBuilder, x: SSAValue, scale: Any, zero_point: Any, weight: SSAValue, scales: SSAValue,
    zero_points: SSAValue, root: SSAValue, bias: SSAValue | None = None,
) -> SSAValue:  # fmt: skip
    shape = (type_of(root).shape[0], type_of(weight).shape[1])
    rows = x if type_of(x).shape == shape else aten.view(x, list(shape))
    args = (rows, _number(scale, float), _number(zero_point, int), weight, scales, zero_points, bias)
    return _call(aten, "quantised_linear", args, type_of(root))


def _quantised_batch(
    aten: ReplacementBuilder, x: SSAValue, scale: Any, zero_point: Any, weight: SSAValue, scales: SSAValue,
    zero_points: SSAValue, root: SSAValue, bias: SSAValue | None = None,
) -> SSAValue:  # fmt: skip
    source = type_of(x)
    dense = TensorType.get(source.shape, source.element, None, source.device)
    rows = x if source.is_contiguous else aten.clone(x, memory_format=_CONTIGUOUS, types=[dense])
    args = (rows, _number(scale, float), _number(zero_point, int), weight, scales, zero_points, bias)
    return _call(aten, "quantised_linear", args, type_of(root))


_CONTIGUOUS = MemoryFormat("contiguous_format")


def convolved(
    aten: ReplacementBuilder, x: SSAValue, scale: Any, zero_point: Any, weight: SSAValue, scales: SSAValue,
    zero_points: SSAValue, bias: SSAValue | None, stride: Any, padding: Any, dilation: Any, groups: Any, root: SSAValue,
    activation: str | None = None,
) -> SSAValue:  # fmt: skip
    """The floats of a convolution, behind an activation of the library if any.

    The library's integer kernels want channels last; copies in front and behind fuse with their neighbours.
    """
    quantised = (_number(scale, float), _number(zero_point, int))
    source, result = type_of(x), type_of(root)
    last = channels_last(source)
    image = x if source == last else aten.clone(x, memory_format=MemoryFormat("channels_last"), types=[last])
    args = (image, *quantised, weight, scales, zero_points, bias, stride, padding, dilation, groups)
    name = "activated_convolution" if activation else "quantised_convolution"
    found = _call(aten, name, (*args, activation) if activation else args, channels_last(result))
    if found.type == result:
        return found
    return aten.clone(found, memory_format=_CONTIGUOUS, types=[result])


def channels_last(type_: TensorType) -> TensorType:
    """The type of images with their channels side by side."""
    _, channels, height, width = type_.shape
    row = width * channels
    return TensorType.get(type_.shape, type_.element, (height * row, ONE, row, channels), type_.device)


def _number(value: Any, kind: type) -> Any:
    return value if isinstance(value, SSAValue) else kind(value)


def objection(
    x: SSAValue, scale: Any, zero_point: Any, weight: SSAValue, scales: SSAValue, zero_points: SSAValue, root: SSAValue,
    bias: Any = None, **window: Any,
) -> str | None:  # fmt: skip
    """Why a product stays one of floats, whatever the processor; None where it does not."""
    result, quantised = type_of(root), type_of(weight)
    if result.device != HOST:
        return "no library does that on its device"
    if type_of(x).element != UNSIGNED or not _is_signed(quantised):
        return "the numbers are not unsigned ones of 8 bits, and signed ones of the weight"
    channels = (quantised.shape[0],)
    if any(type_of(each).shape != channels for each in (scales, zero_points)):
        return "the weight has no scale and zero point for each output channel"
    if not all(isinstance(each, Float32Type) for each in (type_of(scales).element, result.element)):
        return "the scales and the result are not of float32"
    if isinstance(scale, SSAValue) != isinstance(zero_point, SSAValue):
        return "scale and zero point are not both numbers"
    if bias is not None and (not isinstance(bias, SSAValue) or type_of(bias).shape != channels):
        return "what is added is no bias of the channels"
    if not isinstance(weight.owner, Block):
        return "the weight is computed in each call"
    if not quantised.is_contiguous:
        return "its weight is not row-major"
    is_image = bool(window)
    if not is_image and not result.is_contiguous:
        return "its result is not row-major"
    if is_image and len(result.shape) != 4:
        return "its images are not of two dimensions"
    if is_image and not (result.is_contiguous or result == channels_last(result)):
        return "its result is neither row-major nor channels last"
    return None


UNSIGNED = IntegerType(8, Signedness.UNSIGNED)


def _is_signed(type_: TensorType) -> bool:
    element = type_.element
    return isinstance(element, IntegerType) and element.width.data == 8 and element != UNSIGNED


def of_seven_bits(**found: Any) -> str | None:
    """For a processor without instructions for integers: whether the library's sums are exact there, too."""
    reason = objection(**found)
    greatest = _greatest(found["x"])
    if reason is None and (greatest is None or greatest > _EXACT_WITHOUT_VNNI):
        most = "255" if greatest is None else greatest
        return (
            f"numbers go up to {most}: this processor has no instructions for them (VNNI), and the library's sums "
            f"would saturate above {_EXACT_WITHOUT_VNNI}, the quantizer's reduce_range"
        )
    return reason


def _greatest(x: SSAValue) -> int | None:
    """What quantised numbers are clamped to, from 0 on, through views; None where nothing does that."""
    op = x.owner
    while isinstance(op, AtenOp) and (op.schema.is_view or op.target == "aten._to_copy"):
        op = op.operands[0].owner
    if not isinstance(op, AtenOp) or op.target != "aten.clamp":
        return None
    low, high = (as_expr(limit).as_int() if isinstance(limit, int | Expr) else limit for limit in map(op.arg, _LIMITS))
    return int(high) if high is not None and low is not None and low >= 0 else None


_LIMITS = ("min", "max")


def _scaled(aten: PatternBuilder, x: Any, weight: Any, scale: Any) -> PatternCall:
    return aten.mul(aten.mm(x, aten._to_copy(aten.t(weight), dtype=...)), scale)


def _packed(aten: ReplacementBuilder, x: SSAValue, weight: SSAValue, scale: SSAValue, root: SSAValue) -> SSAValue:
    return aten._weight_int8pack_mm(x, weight, scale, types=[type_of(root)])


MOST_ROWS = 32
"""Milliseconds of bfloat16 on two cores of an EPYC with AVX2, the library behind a cast, and `_weight_int8pack_mm`, for
weights of 2048 x 2048: 1 row 7.8, 0.4; 4 8.4, 3.8; 16 54, 15; of 128 rows and more nobody knows on other processors."""


_MULTIPLES = (4, 32)
"""ATen's kernel was seen to read beyond the ends of a weight of other sizes, with a NaN or a crash."""


def _is_of_few_rows(x: SSAValue, weight: SSAValue, scale: Any, root: SSAValue) -> str | None:
    result, quantised = type_of(root), type_of(weight)
    if result.device != HOST or not isinstance(result.element, BFloat16Type | Float16Type):
        return ""
    if not isinstance(scale, SSAValue) or not isinstance(scale.type, TensorType):
        return "it is scaled by a number"
    if not _is_signed(quantised) or scale.type.shape != (quantised.shape[0],):
        return "its weight has no scale for each output channel, or is not of 8 bits"
    if {type_of(x).element, scale.type.element} != {result.element}:
        return "its operands are of several types"
    if not all(each.is_contiguous for each in (type_of(x), quantised, scale.type, result)):
        return "its operands are not row-major"
    if any((size.as_int() or 1) % multiple for size, multiple in zip(quantised.shape, _MULTIPLES, strict=True)):
        return "ATen's kernel reads beyond a weight whose rows are no multiples of 32 elements"
    rows = type_of(x).shape[0].as_int()
    return None if rows is not None and rows <= MOST_ROWS else f"it may have more than {MOST_ROWS} rows"


INT8_WEIGHT = Pattern(
    "int8_weight",
    _scaled,
    _packed,
    guard=_is_of_few_rows,
    differs="the product is rounded to 16 bits once, behind the scale",
)


def quantised_patterns(has_integers: bool) -> list[Pattern]:
    """The patterns, for a processor with instructions for integers or without."""
    guard = objection if has_integers else of_seven_bits
    pairs = (
        ("quantised_addmm", addmm, _quantised_linear),
        ("quantised_mm", mm, _quantised_linear),
        ("quantised_biased_bmm", biased_bmm, _quantised_batch),
        ("quantised_bmm", bmm, _quantised_batch),
        ("quantised_convolution", convolution, convolved),
    )
    return [
        *(Pattern(name, match, replace, guard, differs=_DIFFERS, may_repeat=True) for name, match, replace in pairs),
        INT8_WEIGHT,
    ]
