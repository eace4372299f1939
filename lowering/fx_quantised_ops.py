"""Products of quantised numbers as one op each: `inductile::quantised_linear`, `inductile::quantised_convolution`.

They mean the product of the dequantised numbers, with sums of integers that are exact, scaled once; images have two
dimensions and results channels last:

    linear((x - zero_point) * scale, (weight - weight_zero_points) * weight_scales, bias)

`inductile::requantised_linear` and `inductile::requantised_convolution` quantise the result again, behind an
activation; `requantised_convolution.sum` adds other quantised numbers in front of that, and `.sum_` may write these.
`inductile::activated_convolution` gives the floats behind an activation.

oneDNN computes them. It packs a weight in its own layout, which is kept beside the weight while that stays the same
tensor with the same version; weights without versions (`torch.inference_mode`) are packed in each call. A weight with
zero points, which oneDNN does not know, is dequantised. Uses the private ops `onednn::*` of torch builds with oneDNN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

_NAMESPACE = "inductile"
_LIBRARY = torch.library.Library(_NAMESPACE, "FRAGMENT")
_WEIGHT = "Tensor weight, Tensor weight_scales, Tensor weight_zero_points, Tensor? bias"
_WINDOW = "int[] stride, int[] padding, int[] dilation, int groups"
for _overload, _quantised in (("", "float scale, int zero_point"), (".tensor", "Tensor scale, Tensor zero_point")):
    _LIBRARY.define(f"quantised_linear{_overload}(Tensor x, {_quantised}, {_WEIGHT}) -> Tensor")
    _LIBRARY.define(f"quantised_convolution{_overload}(Tensor x, {_quantised}, {_WEIGHT}, {_WINDOW}) -> Tensor")

_AGAIN = "str activation, float result_scale, int result_zero_point"
_OTHER = "Tensor other, float other_scale, int other_zero_point"
_NUMBERS = "Tensor x, float scale, int zero_point"
_LIBRARY.define(f"activated_convolution({_NUMBERS}, {_WEIGHT}, {_WINDOW}, str activation) -> Tensor")
_LIBRARY.define(f"requantised_linear({_NUMBERS}, {_WEIGHT}, {_AGAIN}) -> Tensor")
_LIBRARY.define(f"requantised_convolution({_NUMBERS}, {_WEIGHT}, {_WINDOW}, {_AGAIN}) -> Tensor")
_LIBRARY.define(f"requantised_convolution.sum({_NUMBERS}, {_WEIGHT}, {_WINDOW}, {_AGAIN}, {_OTHER}) -> Tensor")
_WRITTEN = _OTHER.replace("Tensor other", "Tensor(a!) other")
_LIBRARY.define(f"requantised_convolution.sum_({_NUMBERS}, {_WEIGHT}, {_WINDOW}, {_AGAIN}, {_WRITTEN}) -> Tensor")

_MOST_KEPT = 4
"""Packed forms of one weight: for other sizes of what it is multiplied with the library may pack otherwise."""
_PACKED: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""Weight -> (its state when it was packed, what for -> the packed weight, or None where it has zero points)."""


@cache
def has_packed_products() -> bool:
    """Whether torch has oneDNN's products of integers."""
    names = ("qlinear_pointwise", "qlinear_prepack", "qconv_pointwise", "qconv_prepack")
    known = (torch._C._jit_get_schemas_for_operator(f"onednn::{name}") for name in names)
    return torch.backends.mkldnn.is_available() and all(known)


@cache
def _entry(packet: str, overload: str) -> Callable[..., torch.Tensor]:
    """What an op of oneDNN calls: its frame and the look-ups of its name take 2 us, of 32 for a small convolution.

    Uses `_op` of an `OpOverload`.
    """
    return getattr(getattr(torch.ops.onednn, packet), overload)._op


def _packed(
    weight: torch.Tensor, zero_points: torch.Tensor, how: Any, x: torch.Tensor,
    pack: Callable[[list[int] | None], torch.Tensor],
) -> Any:  # fmt: skip
    """A weight in oneDNN's layout; None where some zero point is not zero.

    The first layout is for the sizes of what is multiplied, the second one for any sizes, as where these are dynamic.
    """
    if not has_packed_products():
        return None
    shape: tuple[int, ...] | None = tuple(x.shape)
    if weight.is_inference() or zero_points.is_inference():
        return None if bool(zero_points.any()) else pack([*x.shape])
    state = state_of(weight, zero_points)
    known = _PACKED.get(weight)
    if known is None or known[0] != state:
        known = _PACKED[weight] = (state, {})
    kept = known[1]
    if (how, shape) not in kept and any(each == how for each, _ in kept):
        shape = None
    if (how, shape) not in kept:
        if len(kept) == _MOST_KEPT:
            kept.pop(next(iter(kept)))
        made = None if bool(zero_points.any()) else pack(None if shape is None else [*shape])
        kept[(how, shape)] = made
    return kept[(how, shape)]


def state_of(weight: torch.Tensor, zero_points: torch.Tensor) -> tuple[int, ...]:
    """What is another one when the values may be."""
    return (weight.data_ptr(), weight._version, zero_points.data_ptr(), zero_points._version)


def _by_channel(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, *(1,) * (weight.dim() - 1))


def _dequantised(
    x: torch.Tensor, scale: float, zero_point: int, weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    wide = (weight - _by_channel(zeros, weight)) * _by_channel(scales, weight)
    return (x.to(torch.float32) - zero_point) * scale, wide.to(torch.float32)


_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda y: y,
    "relu": torch.relu,
    "hardswish": torch.nn.functional.hardswish,
    "swish": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
}


def _in_steps(y: torch.Tensor, activation: str, scale: float, zero_point: int) -> torch.Tensor:
    """Floats as unsigned numbers of 8 bits, where oneDNN has no say."""
    return (torch.round(_ACTIVATIONS[activation](y) / scale) + zero_point).clamp(0, 255).to(torch.uint8)


def _pack_linear(
    x: torch.Tensor, scale: float, zero_point: int, weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor,
    *others: Any,
) -> Any:  # fmt: skip
    return _packed(weight, zeros, None, x, lambda shape: torch.ops.onednn.qlinear_prepack(weight, shape))


def _multiply(
    packed: torch.Tensor, x: torch.Tensor, scale: float, zero_point: int, weight: torch.Tensor, scales: torch.Tensor,
    zeros: torch.Tensor, bias: torch.Tensor | None, activation: str = "", result_scale: float = 1.0,
    result_zero_point: int = 0,
) -> torch.Tensor:  # fmt: skip
    """A linear layer by the library, of floats without an activation."""
    dtype = torch.uint8 if activation else torch.float32
    return _entry("qlinear_pointwise", "default")(
        x, scale, zero_point, packed, scales, zeros, bias, result_scale, result_zero_point, dtype,
        activation or "none", [], "none" if activation == "gelu" else "",
    )  # fmt: skip


def _linear(
    x: torch.Tensor, scale: Any, zero_point: Any, weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor,
    bias: torch.Tensor | None, activation: str = "", result_scale: float = 1.0, result_zero_point: int = 0,
) -> torch.Tensor:  # fmt: skip
    with torch.no_grad():
        scale, zero_point, again = float(scale), int(zero_point), (activation, result_scale, result_zero_point)
        packed = _pack_linear(x, scale, zero_point, weight, scales, zeros)
        if packed is not None and 0 not in (*x.shape, *weight.shape):
            return _multiply(packed, x, scale, zero_point, weight, scales, zeros, bias, *again)
        floats = torch.nn.functional.linear(*_dequantised(x, scale, zero_point, weight, scales, zeros), bias)
        return _in_steps(floats, *again) if activation else floats


def _pack_convolution(
    x: torch.Tensor, scale: float, zero_point: int, weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor,
    bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int,
    *others: Any,
) -> Any:  # fmt: skip
    window = (list(stride), list(padding), list(dilation), groups)
    how = (scale, zero_point, scales.data_ptr(), *map(tuple, window[:3]), groups)
    pack = torch.ops.onednn.qconv_prepack
    return _packed(weight, zeros, how, x, lambda shape: pack(weight, scales, scale, zero_point, *window, shape))


_POINT = ([1, 1], [0, 0], [1, 1], 1)
"""The window of a convolution that sees one element."""


@cache
def _writes_residual() -> bool:
    """Whether the library's sum is in place, which it is not in each version of torch."""
    image, scales = torch.zeros((1, 1, 1, 1), dtype=torch.uint8), torch.ones(1)
    weight, other, zeros = torch.ones((1, 1, 1, 1), dtype=torch.int8), torch.ones_like(image), torch.zeros(1).long()
    packed = torch.ops.onednn.qconv_prepack(weight, scales, 1.0, 0, *_POINT, [1, 1, 1, 1])
    torch.ops.onednn.qconv2d_pointwise.binary(
        image, 1.0, 0, packed, scales, zeros, other, None, *_POINT, 1.0, 2, torch.uint8, 1.0, 0, "sum", 1.0, "none",
        [], "",
    )  # fmt: skip
    return int(other) != 1


@cache
def _gives_channels_last() -> bool:
    """Whether the library's result has channels last, wherever it has to: to ask each of them takes 2 us of 36."""
    shape, scales = (1, 2, 2, 2), torch.ones(2)
    image, weight = torch.zeros(shape, dtype=torch.uint8), torch.ones((2, 2, 1, 1), dtype=torch.int8)
    packed = torch.ops.onednn.qconv_prepack(weight, scales, 1.0, 0, *_POINT, [*shape])
    made = torch.ops.onednn.qconv_pointwise.default(
        image, 1.0, 0, packed, scales, torch.zeros(2).long(), None, *_POINT, 1.0, 0, torch.uint8, "none", [], ""
    )
    return made.is_contiguous(memory_format=torch.channels_last)


def _convolve(
    packed: torch.Tensor, x: torch.Tensor, scale: float, zero_point: int, weight: torch.Tensor, scales: torch.Tensor,
    zeros: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, activation: str = "", result_scale: float = 1.0, result_zero_point: int = 0,
    other: torch.Tensor | None = None, other_scale: float = 1.0, other_zero_point: int = 0, *, writes: bool = False,
    again: bool = True,
) -> torch.Tensor:  # fmt: skip
    """A convolution by the library, which `writes` over what it adds or does not.

    Its result is quantised `again` behind an activation, and is of floats where there is none.
    """
    dtype = torch.uint8 if activation and again else torch.float32
    window = (stride, padding, dilation, groups)
    if other is None:
        made = _entry("qconv_pointwise", "default")(
            x, scale, zero_point, packed, scales, zeros, bias, *window, result_scale, result_zero_point, dtype,
            activation or "none", [], "",
        )  # fmt: skip
    else:
        last = torch.channels_last
        may_write = writes and other.is_contiguous(memory_format=last)
        total = other.clone(memory_format=last) if _writes_residual() and not may_write else other
        made = _entry("qconv2d_pointwise", "binary")(
            x, scale, zero_point, packed, scales, zeros, total, bias, *window, result_scale, result_zero_point, dtype,
            other_scale, other_zero_point, "sum", 1.0, activation, [], "",
        )  # fmt: skip
    return made if _gives_channels_last() else made.contiguous(memory_format=torch.channels_last)


def _convolution(
    x: torch.Tensor, scale: Any, zero_point: Any, weight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor,
    bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int,
    activation: str = "", result_scale: float = 1.0, result_zero_point: int = 0, other: torch.Tensor | None = None,
    other_scale: float = 1.0, other_zero_point: int = 0, *, multiply: Callable[..., torch.Tensor] = _convolve,
    behind: Callable[..., torch.Tensor] = _in_steps,
) -> torch.Tensor:  # fmt: skip
    with torch.no_grad():
        numbers = (x, float(scale), int(zero_point), weight, scales, zeros)
        window, again = (stride, padding, dilation, groups), (activation, result_scale, result_zero_point)
        packed = _pack_convolution(*numbers, bias, *window)
        if packed is not None and 0 not in (*x.shape, *weight.shape):
            return multiply(packed, *numbers, bias, *window, *again, other, other_scale, other_zero_point)
        place = (list(stride), list(padding), list(dilation), False, [0] * len(stride), groups)
        made = torch.ops.aten.convolution(*_dequantised(*numbers), bias, *place)
        if other is not None:
            made = made + (other.to(torch.float32) - other_zero_point) * other_scale
        made = behind(made, *again) if activation else made
        return made.contiguous(memory_format=torch.channels_last)


def _active(y: torch.Tensor, activation: str, *_: Any) -> torch.Tensor:
    return _ACTIVATIONS[activation](y)


_convolve_active = partial(_convolve, again=False)
_convolution_active = partial(_convolution, multiply=_convolve_active, behind=_active)
_convolve_over = partial(_convolve, writes=True)
_convolution_over = partial(_convolution, multiply=_convolve_over)


def _fake_linear_again(
    x: torch.Tensor, scale: Any, zero_point: Any, weight: torch.Tensor, *others: Any
) -> torch.Tensor:
    return _fake_linear(x, scale, zero_point, weight).to(torch.uint8)


def _fake_convolution_again(
    x: torch.Tensor, scale: Any, zero_point: Any, weight: torch.Tensor, scales: Any, zeros: Any, bias: Any, *others: Any
) -> torch.Tensor:
    return _fake_convolution(x, scale, zero_point, weight, scales, zeros, bias, *others[:4]).to(torch.uint8)


def _fake_convolution_active(*given: Any) -> torch.Tensor:
    return _fake_convolution(*given[:-1])


def _fake_linear(x: torch.Tensor, scale: Any, zero_point: Any, weight: torch.Tensor, *others: Any) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]), dtype=torch.float32)


def _fake_convolution(
    x: torch.Tensor, scale: Any, zero_point: Any, weight: torch.Tensor, scales: Any, zeros: Any, bias: Any, *window: Any
) -> torch.Tensor:
    stride, padding, dilation, _ = window
    sizes = [
        (size + 2 * pad - step * (kernel - 1) - 1) // each + 1
        for size, kernel, each, pad, step in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    ]
    shape = (x.shape[0], weight.shape[0], *sizes)
    return torch.empty(shape, dtype=torch.float32, device=x.device, memory_format=torch.channels_last)


for _name, _function, _fake in (
    ("quantised_linear", _linear, _fake_linear), ("quantised_convolution", _convolution, _fake_convolution),
):  # fmt: skip
    for _overload in ("", ".tensor"):
        _LIBRARY.impl(f"{_name}{_overload}", _function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{_NAMESPACE}::{_name}{_overload}", _fake, lib=_LIBRARY)
for _name, _function, _fake in (
    ("requantised_linear", _linear, _fake_linear_again),
    ("requantised_convolution", _convolution, _fake_convolution_again),
    ("activated_convolution", _convolution_active, _fake_convolution_active),
    ("requantised_convolution.sum", _convolution, _fake_convolution_again),
    ("requantised_convolution.sum_", _convolution_over, _fake_convolution_again),
):
    _LIBRARY.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{_NAMESPACE}::{_name}", _fake, lib=_LIBRARY)

#: the operators whose scale and zero point are numbers, by the names that programs call them by: what packs a weight,
#: what multiplies with the packed one, and both
PRODUCTS: dict[str, tuple[Callable[..., Any], Callable[..., torch.Tensor], Callable[..., torch.Tensor]]] = {
    **{f"inductile::{name}": (_pack_linear, _multiply, _linear) for name in ("quantised_linear", "requantised_linear")},
    **{
        f"inductile::{name}": (_pack_convolution, _convolve, _convolution)
        for name in ("quantised_convolution", "requantised_convolution", "requantised_convolution.sum")
    },
    "inductile::activated_convolution": (_pack_convolution, _convolve_active, _convolution_active),
    "inductile::requantised_convolution.sum_": (_pack_convolution, _convolve_over, _convolution_over),
}
