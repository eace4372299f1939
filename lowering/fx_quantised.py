"""What the ops of `quantized_decomposed`, PT2E's and ExecuTorch's, are decomposed into: ordinary arithmetic.

Taken apart, a graph of PT2E is written in the same ops as one of torchao's tensors, so that passes know one spelling of
quantised numbers, and what quantises and dequantises fuses with its neighbours. torch implements these ops in Python by
ATen ops, eager runs those, and so do decompositions here; only where torch's code reads numbers out of tensors another
one stands in, which computes the same digits on the device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

_MODULE = "torch.ao.quantization.fx._decomposed"
"""Private module of torch, which defines the ops: a graph with one of them has loaded it."""

#: ops whose own implementation is made of ATen ops and takes no number out of a tensor: packet -> overload.
#: `quantize_per_channel_group` refuses NaN, so it stays the op
_AS_THEY_ARE: dict[str, str] = {
    "quantize_per_tensor": "default",
    "dequantize_per_tensor": "default",
    "quantize_per_channel": "default",
    "dequantize_per_channel": "default",
    "quantize_per_token": "default",
    "dequantize_per_token": "default",
    "choose_qparams_per_token": "default",
    "dequantize_per_channel_group": "default",
}


def _number(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of one element as the 0-d tensor that stands for the number which eager reads."""
    return value.reshape(()).to(dtype)


def _quantize(
    input: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    quant_min: int | torch.Tensor,
    quant_max: int | torch.Tensor,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Eager divides 1 by the scale in float64 and multiplies in float32."""
    if scale.numel() != 1 or zero_point.numel() != 1 or not _is_quantizable(input):
        return NotImplemented
    inverse = _number(1.0 / scale.to(torch.float64), torch.float32)
    rounded = torch.round(input.to(torch.float32) * inverse) + _number(zero_point, torch.float32)
    if isinstance(quant_min, torch.Tensor) and isinstance(quant_max, torch.Tensor):
        low, high = _number(quant_min, torch.float32), _number(quant_max, torch.float32)
        return torch.clamp(rounded, low, high).to(dtype)
    assert isinstance(quant_min, int) and isinstance(quant_max, int)
    return torch.clamp(rounded, quant_min, quant_max).to(dtype)


def _is_quantizable(input: torch.Tensor) -> bool:
    return input.dtype in (torch.float32, torch.float16, torch.bfloat16)


def _dequantize(
    input: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    quant_min: int | torch.Tensor,
    quant_max: int | torch.Tensor,
    dtype: torch.dtype,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """In float32; in fewer digits it matters how eager rounds a number, so that stays the op."""
    wanted = out_dtype or torch.float32
    if scale.numel() != 1 or zero_point.numel() != 1 or input.dtype != dtype or wanted != torch.float32:
        return NotImplemented
    return (input.to(wanted) - _number(zero_point, wanted)) * _number(scale, wanted)


def _choose(
    input: torch.Tensor, qmin: int, qmax: int, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    if not _is_quantizable(input) or qmin >= qmax:
        return NotImplemented
    low, high = _limits(input)
    scale = torch.maximum((high - low) / float(qmax - qmin), _least(eps, input))
    zero_point = torch.clamp(qmin - torch.round(low / scale).to(torch.int), qmin, qmax)
    return scale.to(torch.float64), zero_point.to(torch.int64)


def _choose_symmetric(
    input: torch.Tensor, qmin: int, qmax: int, eps: float, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    if not _is_quantizable(input) or qmin >= qmax:
        return NotImplemented
    low, high = _limits(input)
    scale = torch.maximum(torch.maximum(-low, high) / (float(qmax - qmin) / 2), _least(eps, input))
    zero_point = torch.full([1], 128 if dtype == torch.uint8 else 0, dtype=torch.int64, device=input.device)
    return scale.to(torch.float64), zero_point


def _limits(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The least and the greatest element, zero among them."""
    low, high = torch.aminmax(input)
    return torch.minimum(low, torch.zeros_like(low)), torch.maximum(high, torch.zeros_like(high))


def _least(eps: float, input: torch.Tensor) -> torch.Tensor:
    return torch.full([1], eps, dtype=torch.float32, device=input.device)


#: (packet, overload) -> what computes the same without reading numbers out of tensors
_OUR_OWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("quantize_per_tensor", "tensor"): _quantize,
    ("quantize_per_tensor", "tensor2"): _quantize,
    ("dequantize_per_tensor", "tensor"): _dequantize,
    ("dequantize_per_tensor", "tensor2"): _dequantize,
    ("choose_qparams", "tensor"): _choose,
    ("choose_qparams_symmetric", "tensor"): _choose_symmetric,
}


def quantised_decompositions() -> dict[Any, Callable[..., Any]]:
    """Decompositions by overloads; none in a process where nothing has loaded torch's definitions of the ops."""
    module = sys.modules.get(_MODULE)
    if module is None:
        return {}
    table: dict[Any, Callable[..., Any]] = {}
    for packet, name in _AS_THEY_ARE.items():
        if (op := _overload(packet, name)) is not None and hasattr(module, packet):
            table[op] = getattr(module, packet)
    for (packet, name), function in _OUR_OWN.items():
        if (op := _overload(packet, name)) is not None:
            table[op] = function
    return table


def _overload(packet: str, name: str) -> Any:
    return getattr(getattr(torch.ops.quantized_decomposed, packet, None), name, None)
