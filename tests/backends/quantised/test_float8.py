"""Floats of 8 bits are converted in kernels, with eager's digits: all their numbers, and all upper halves of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductile.backends.compiled import REPORTS

FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def _run(function: Callable[..., Any], *args: torch.Tensor) -> tuple[Any, int, dict[str, int]]:
    torch._dynamo.reset()
    REPORTS.clear()
    with torch.no_grad():
        result = torch.compile(function, backend="inductile")(*args)
    return result, sum(REPORTS[0].kernels.values()), dict(REPORTS[0].aten_calls)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.uint8])
@pytest.mark.parametrize("of", FLOAT8)
def test_every_number_becomes_what_eager_makes_of_it(of: torch.dtype, dtype: torch.dtype) -> None:
    x = torch.arange(256, dtype=torch.uint8).view(of)
    x = x if dtype.is_floating_point else x[:64]  # of negative numbers and large ones the result is undefined
    got, kernels, calls = _run(lambda x: x.to(dtype), x)
    assert torch.equal(got.double().nan_to_num(777), x.to(dtype).double().nan_to_num(777))
    assert (kernels, calls) == (1, {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("to", FLOAT8)
def test_rounding_is_eagers(to: torch.dtype, dtype: torch.dtype) -> None:
    upper = torch.arange(1 << 16).to(torch.int32) << 16
    x = torch.cat([upper + low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(torch.float32).to(dtype)
    most = torch.finfo(to).max

    def quantised(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(-most, most).to(to)

    got, kernels, calls = _run(quantised, x)
    expected = quantised(x)
    assert torch.equal(got.float().nan_to_num(777), expected.float().nan_to_num(777))
    assert torch.equal(got.float().signbit(), expected.float().signbit())
    assert (kernels, calls) == (1, {})


def test_what_may_be_too_large_is_atens_as_versions_of_torch_differ() -> None:
    got, _, calls = _run(lambda x: (2 * x).to(torch.float8_e4m3fn), torch.tensor([1e4, 1.0]))
    assert torch.equal(got.float().nan_to_num(777), torch.tensor([2e4, 2.0]).to(got.dtype).float().nan_to_num(777))
    assert calls == {"aten._to_copy": 1}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("of", FLOAT8)
def test_a_weight_is_read_as_it_lies(of: torch.dtype, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, scale = torch.randn(1, 256, generator=generator).to(dtype), torch.rand(96, generator=generator).to(dtype)
    w = torch.randn(96, 256, generator=generator).to(of)

    def linear(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, w.to(x.dtype).t()) * scale

    got, kernels, calls = _run(linear, x, w, scale)
    exact = torch.mm(x.double(), w.double().t()) * scale.double()
    error, of_eager = ((each.double() - exact).norm() for each in (got, linear(x, w, scale)))
    assert error <= 2 * of_eager + 1e-6 * exact.norm()
    assert (kernels, calls) == (1, {})
