"""Products of quantised numbers whose results are quantised again, in the same call of the library.

    y = product(...)                                       as in `quantised.py`
    y = view(y)                                            linear layers of more than two dimensions
    y = y + (cast(qz) - other_zero_point) * other_scale    convolutions only, where a residual is added
    y = relu(y), hardswish(y), silu(y), gelu(y)            or none; gelu behind linear layers
    q = cast(clamp(round(y * inverse) + result_zero_point, 0, high))

The library quantises what it has in registers, so that no float image is in memory. A step may be the other one where a
value lies between two, as with everything that is summed in another order. Its numbers end at 255; fewer bits are a
clamp of the integers behind it.

An activation whose result is read as floats, as by a mean and the gate that it makes, is the library's as well: else
each of its readers would compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue

from ....dialects.aten import AtenOp, MemoryFormat, TensorType
from ....dialects.sym import ONE, as_expr
from .._pattern import Either, Pattern, PatternBuilder, PatternCall, either
from .._replacement import ReplacementBuilder, type_of
from . import quantised

_DIFFERS = "sums of integers are exact, and scaled and quantised once: a value between two steps may take the other one"
_NAMES = ("x", "scale", "zero_point", "weight", "scales", "zero_points")
_WINDOW = ("stride", "padding", "dilation", "groups")
#: ops behind a product -> what our op calls them
_ACTIVATIONS = {"": "none", "relu": "relu", "hardswish": "hardswish", "silu": "swish", "gelu": "gelu"}
_OF_SUMS, _OF_MATRICES, _OF_IMAGES = ("", "relu"), ("", "relu", "gelu"), ("", "relu", "hardswish", "silu")
_PRODUCTS = frozenset({"convolution", "addmm", "mm"})
_MOST = 255


def quantised_again(
    aten: PatternBuilder, y: PatternCall | Either, activation: str, found: Mapping[str, Any]
) -> PatternCall:
    """Quantisation behind an activation."""
    active = getattr(aten, activation)(y) if activation else y
    steps = aten.add(aten.round(aten.mul(active, found["inverse"])), found["result_zero_point"])
    return aten._to_copy(aten.clamp(steps, found["low"], found["high"]), dtype=...)


def _convolution(activation: str, has_residual: bool) -> Callable[..., PatternCall]:
    def plain(
        aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any,
        bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any,
        inverse: Any, result_zero_point: Any, low: Any, high: Any,
    ) -> PatternCall:  # fmt: skip
        y = quantised.convolution(
            aten, x, scale, zero_point, weight, scales, zero_points, bias, stride, padding, dilation, groups
        )
        found = {"inverse": inverse, "result_zero_point": result_zero_point, "low": low, "high": high}
        return quantised_again(aten, y, activation, found)

    def residual(
        aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any,
        bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any,
        inverse: Any, result_zero_point: Any, low: Any, high: Any,
        other: Any, other_scale: Any, other_zero_point: Any,
    ) -> PatternCall:  # fmt: skip
        y = quantised.convolution(
            aten, x, scale, zero_point, weight, scales, zero_points, bias, stride, padding, dilation, groups
        )
        found = {"inverse": inverse, "result_zero_point": result_zero_point, "low": low, "high": high}
        y = aten.add(y, quantised.numbers(aten, other, other_scale, other_zero_point))
        return quantised_again(aten, y, activation, found)

    return residual if has_residual else plain


def _active(activation: str) -> Callable[..., PatternCall]:
    def match(
        aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any,
        bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any,
    ) -> PatternCall:  # fmt: skip
        y = quantised.convolution(
            aten, x, scale, zero_point, weight, scales, zero_points, bias, stride, padding, dilation, groups
        )
        return getattr(aten, activation)(y)

    return match


def _linear(activation: str, has_bias: bool) -> Callable[..., PatternCall]:
    def biased(
        aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any,
        bias: Any, inverse: Any, result_zero_point: Any, low: Any, high: Any,
    ) -> PatternCall:  # fmt: skip
        y = quantised.addmm(aten, x, scale, zero_point, weight, scales, zero_points, bias)
        found = {"inverse": inverse, "result_zero_point": result_zero_point, "low": low, "high": high}
        return quantised_again(aten, either(y, aten.view(y, ...), aten._unsafe_view(y, ...)), activation, found)

    def plain(
        aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, weight: Any, scales: Any, zero_points: Any,
        inverse: Any, result_zero_point: Any, low: Any, high: Any,
    ) -> PatternCall:  # fmt: skip
        y = quantised.mm(aten, x, scale, zero_point, weight, scales, zero_points)
        found = {"inverse": inverse, "result_zero_point": result_zero_point, "low": low, "high": high}
        return quantised_again(aten, either(y, aten.view(y, ...), aten._unsafe_view(y, ...)), activation, found)

    return biased if has_bias else plain


def _replacement(activation: str, is_image: bool) -> Callable[..., SSAValue]:
    def replace(aten: ReplacementBuilder, root: SSAValue, **found: Any) -> SSAValue:
        source, result = type_of(found["x"]), type_of(root)
        operand, made = found["x"], result
        if is_image:
            last, made = quantised.channels_last(source), quantised.channels_last(result)
            if source != last:
                operand = aten.clone(operand, memory_format=MemoryFormat("channels_last"), types=[last])
        else:
            columns, depth = type_of(found["weight"]).shape
            rows = prod(result.shape[:-1], start=ONE)
            if source.shape != (rows, depth):
                operand = aten.view(operand, [rows, depth])
            made = TensorType.get((rows, columns), result.element, (columns, ONE), result.device)
        quantisation = (float(found["scale"]), int(found["zero_point"]))
        args: list[Any] = [operand, *quantisation, *(found[name] for name in _NAMES[3:]), found.get("bias")]
        args += [found[name] for name in _WINDOW] if is_image else []
        args += [_ACTIVATIONS[activation], 1.0 / float(found["inverse"]), integer(found["result_zero_point"])]
        name = f"inductile::requantised_{'convolution' if is_image else 'linear'}"
        if found.get("other") is not None:
            other, last = found["other"], quantised.channels_last(type_of(found["other"]))
            if other.type != last:
                other = aten.clone(other, memory_format=MemoryFormat("channels_last"), types=[last])
            args += [other, float(found["other_scale"]), int(found["other_zero_point"])]
            name += ".sum"
        made = aten.call(name, args, [made])
        if (high := integer(found["high"])) is not None and high < _MOST:
            made = aten.clamp(made, 0, high, types=[made.type])
        if made.type == result:
            return made
        if not is_image:
            return aten.view(made, list(result.shape))
        return aten.clone(made, memory_format=MemoryFormat("contiguous_format"), types=[result])

    return replace


def _active_replacement(activation: str) -> Callable[..., SSAValue]:
    def replace(aten: ReplacementBuilder, root: SSAValue, **found: Any) -> SSAValue:
        return quantised.convolved(aten, root=root, activation=_ACTIVATIONS[activation], **found)

    return replace


def _active_guard(has_integers: bool) -> Callable[..., str | None]:
    """What `quantised.py` demands of a product that nothing but the activation reads."""
    of_product = quantised.objection if has_integers else quantised.of_seven_bits

    def guard(root: SSAValue, **found: Any) -> str | None:
        if isinstance(found["scale"], SSAValue) or isinstance(found["zero_point"], SSAValue):
            return "its scale and zero point are no numbers"
        if _is_read_otherwise(root):
            return "the product is read without the activation, too"
        return of_product(root=root, **found)

    return guard


def _guard(has_integers: bool) -> Callable[..., str | None]:
    """What `quantised.py` demands of a product, and that all about the result is known numbers."""
    of_product = quantised.objection if has_integers else quantised.of_seven_bits

    def guard(root: SSAValue, **found: Any) -> str | None:
        numbers = ("scale", "zero_point", "inverse", "result_zero_point", "low", "high")
        others = ("other_scale", "other_zero_point") if "other" in found else ()
        if any(isinstance(found[name], SSAValue) or found[name] is None for name in (*numbers, *others)):
            return "scales and zero points are not all numbers"
        result = type_of(root)
        high = integer(found["high"])
        if result.element != quantised.UNSIGNED or integer(found["low"]) != 0 or high is None or not 0 < high <= _MOST:
            return "its result is not unsigned, of 8 bits"
        if integer(found["result_zero_point"]) is None or float(found["inverse"]) <= 0:
            return "its result has no zero point that is an integer, or no positive scale"
        if "other" in found and not _is_like(found["other"], result):
            return "what is added is no unsigned numbers of the same sizes"
        if "stride" not in found and not result.is_contiguous:
            return "its result is not row-major"
        if _is_read_otherwise(root):
            return "its floats are read otherwise, too: the product would be computed twice"
        product = {name: found[name] for name in (*_NAMES, "bias", *_WINDOW) if name in found}
        return of_product(root=_of_floats(root), **product)

    return guard


def _is_like(other: Any, result: TensorType) -> bool:
    type_ = type_of(other)
    return type_.element == quantised.UNSIGNED and type_.shape == result.shape


def _is_read_otherwise(root: SSAValue) -> bool:
    """Whether anything but the quantisation reads the product, or what is made of it on the way."""
    value = root
    while isinstance(op := value.owner, AtenOp) and not _is_product(value):
        value = next(filter(_is_product, op.operands), op.operands[0])
        if not value.has_one_use():
            return True
    return False


def _is_product(value: SSAValue) -> bool:
    return isinstance(value.owner, AtenOp) and value.owner.packet in _PRODUCTS


def _of_floats(root: SSAValue) -> SSAValue:
    """The value that is rounded, which has the type of the product."""
    value = root
    for _ in range(3):  # cast, clamp, the zero point
        assert isinstance(value.owner, Operation)
        value = value.owner.operands[0]
    return value


def integer(value: Any) -> int | None:
    """A number that is an integer, whatever it is written as."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return as_expr(value).as_int()


def requantised_patterns(has_integers: bool) -> list[Pattern]:
    """The patterns, for a processor with instructions for integers or without."""
    guard = _guard(has_integers)
    found: list[Pattern] = []
    for kind, activations, match, is_image in (
        ("sum", _OF_SUMS, partial(_convolution, has_residual=True), True),
        ("addmm", _OF_MATRICES, partial(_linear, has_bias=True), False),
        ("mm", _OF_MATRICES, partial(_linear, has_bias=False), False),
        ("convolution", _OF_IMAGES, partial(_convolution, has_residual=False), True),
    ):
        for activation in activations:
            name = f"requantised_{kind}{f'_{activation}' if activation else ''}"
            made = _replacement(activation, is_image)
            found.append(Pattern(name, match(activation), made, guard, differs=_DIFFERS, may_repeat=True))
    guard = _active_guard(has_integers)
    for activation in filter(None, _OF_IMAGES):
        made, name = _active_replacement(activation), f"activated_convolution_{activation}"
        found.append(Pattern(name, _active(activation), made, guard, differs=_DIFFERS, may_repeat=True))
    return found
