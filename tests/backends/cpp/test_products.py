"""Products as nests of several rows at once, in C++, against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.torch_compile import inductile

Tensor = torch.Tensor
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 4e-3}


def _inputs(dtype: torch.dtype, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def _check(function: Callable[..., Tensor], inputs: list[Tensor], dynamic: bool | None = None) -> None:
    """Run a function with its products as nests; none is a call."""
    torch._dynamo.reset()
    options: dict[str, Any] = {"loop_products": True}
    compiled = torch.compile(function, backend=inductile, options=options, dynamic=dynamic)
    with torch.no_grad():
        got, exact = compiled(*inputs), function(*(x.double() for x in inputs))
    error = (got.double() - exact).norm() / exact.norm()
    assert got.shape == exact.shape and got.dtype == inputs[0].dtype and error < TOLERANCE[got.dtype]


def _linear(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.linear(x, w, b).relu() + b


def _product(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return (x + 1) @ w.t().contiguous() * b


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("function", [_linear, _product])
def test_epilogues(function: Callable[..., Tensor], dtype: torch.dtype) -> None:
    _check(function, _inputs(dtype, (18, 70), (37, 70), (37,)))


def test_batches_and_long_sums() -> None:
    _check(torch.bmm, _inputs(torch.float32, (3, 13, 1100), (3, 1100, 21)))


def test_any_number_of_rows() -> None:
    _check(_linear, _inputs(torch.float32, (22, 70), (37, 70), (37,)), dynamic=True)
