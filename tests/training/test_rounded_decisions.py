"""Gradients in 16 bits that depend on what a comparison says of values that are computed twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ..versions import torch_version

Function = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

FUNCTIONS: dict[str, Function] = {
    "amax": lambda x, y: (x * y).amax(-1),
    "aminmax": lambda x, y: torch.stack(torch.aminmax((x * y).sigmoid(), dim=1)),
    "max of all": lambda x, y: (x * y).sin().max(),
    "norm": lambda x, y: torch.linalg.vector_norm(x * y, float("inf"), dim=-1),
    "softmax": lambda x, y: (x * y * 0.7 - (x * y * 0.7).amax(-1, keepdim=True)).exp() * y,
    "scatter": lambda x, y: x.sigmoid().scatter_reduce(1, torch.arange(8).expand(4, 8) % 3, x * y * 1.1, "amax"),
    "chain": lambda x, y: ((x * y).tanh() * 1.3 + 0.1).mul(y).amax(0),
}


def _autocast(function: Function) -> Function:
    def cast(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return function(x @ torch.eye(8), y @ torch.eye(8))

    return cast


def _gradients(function: Function, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(4, 8, generator=generator).to(dtype).requires_grad_() for _ in range(2)]
    function(*inputs).float().sum().backward()
    return [each.grad for each in inputs if each.grad is not None]


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_16_bits(name: str) -> None:
    if name == "aminmax" and torch_version() < (2, 12):
        pytest.skip("torch 2.11 has no derivative of aminmax")
    dtype = torch.float16 if name in ("aminmax", "chain") else torch.bfloat16
    compiled = torch.compile(FUNCTIONS[name], backend="inductile")
    expected = _gradients(FUNCTIONS[name], dtype)
    torch.testing.assert_close(_gradients(compiled, dtype), expected, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("partition", ["inductile", "torch"])
def test_gradients_under_autocast(partition: str) -> None:
    function = _autocast(FUNCTIONS["chain"])
    compiled = torch.compile(function, backend="inductile", options={"partition": partition})
    expected = _gradients(function, torch.float32)
    torch.testing.assert_close(_gradients(compiled, torch.float32), expected, rtol=3e-2, atol=3e-2)
