"""PT2E's ops of quantised numbers: ordinary arithmetic at the aten level, with eager's digits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # pyright: ignore[reportUnusedImport]

from inductile.backends.compiled import REPORTS
from inductile.lowering.fx_quantised import quantised_decompositions

_OPS = torch.ops.quantized_decomposed


def _per_tensor(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    scale, zero = _OPS.choose_qparams.tensor(x, 0, 255, 2**-12, torch.uint8)
    symmetric, middle = _OPS.choose_qparams_symmetric.tensor(x, -127, 127, 2**-12, torch.int8)
    given = _OPS.quantize_per_tensor(x, 0.021, 113, 0, 127, torch.uint8)
    found = _OPS.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
    low, high = torch.tensor(-127), torch.tensor(127)
    even = _OPS.quantize_per_tensor.tensor2(x, symmetric, middle, low, high, torch.int8)
    return (
        scale, zero, symmetric, middle, given, found, even,
        _OPS.dequantize_per_tensor(given, 0.021, 113, 0, 127, torch.uint8),
        _OPS.dequantize_per_tensor.tensor(found, scale, zero, 0, 255, torch.uint8),
        _OPS.dequantize_per_tensor.tensor2(even, symmetric, middle, low, high, torch.int8),
    )  # fmt: skip


def _per_channel(x: torch.Tensor, w: torch.Tensor, s: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    rows = _OPS.quantize_per_channel(w, s, z, 0, -128, 127, torch.int8)
    tokens, zeros = _OPS.choose_qparams_per_token(x, torch.int8)
    few = _OPS.quantize_per_token(x, tokens, zeros, -128, 127, torch.int8)
    groups = (4 * w).clamp(-8, 7).to(torch.int8)
    return (
        rows, tokens, few, groups,
        _OPS.dequantize_per_channel(rows, s, z, 0, -128, 127, torch.int8),
        _OPS.dequantize_per_token(few, tokens, zeros, -128, 127, torch.int8, torch.float32),
        _OPS.dequantize_per_channel_group(
            groups, s.repeat(2, 1).t(), z.repeat(2, 1).t(), -8, 7, torch.int8, 4, torch.float32
        ),
    )  # fmt: skip


@pytest.mark.parametrize("function", [_per_tensor, _per_channel])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_digit_is_eagers(function: Any, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, w = (3 * torch.randn(5, 8, generator=generator)).to(dtype), torch.randn(4, 8, generator=generator)
    s, z = torch.rand(4, generator=generator) * 0.1 + 0.01, torch.tensor([0, 3, -2, 0])
    torch._dynamo.reset()
    REPORTS.clear()
    got = torch.compile(function, backend="inductile", options={"emulate_precision_casts": True})(x, w, s, z)
    for value, expected in zip(got, function(x, w, s, z), strict=True):
        assert value.dtype == expected.dtype
        assert torch.equal(value, expected)
    assert not REPORTS[0].aten_calls


def test_what_eager_rounds_in_16_bits_stays_an_op() -> None:
    def halved(x: torch.Tensor, s: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return _OPS.dequantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8, out_dtype=torch.bfloat16)

    args = torch.arange(-128, 128, dtype=torch.int8), torch.tensor([0.0173], dtype=torch.float64), torch.tensor([3])
    torch._dynamo.reset()
    REPORTS.clear()
    assert torch.equal(torch.compile(halved, backend="inductile")(*args), halved(*args))
    assert REPORTS[0].aten_calls


def test_ops_that_this_torch_does_not_have_are_left_out() -> None:
    assert all(isinstance(op, torch._ops.OpOverload) for op in quantised_decompositions())
