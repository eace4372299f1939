"""Gradients through operators that carry graphs, and backward passes that are traced themselves."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch


@pytest.fixture(autouse=True)
def _no_fallback() -> Iterator[None]:
    """torch's partitioner must not have taken over."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="(torch splits|inductile runs) a graph")
        yield


@torch.compiler.nested_compile_region
def _region(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.sin(x @ w).exp()


_nested_region: Any = _region


def _nested(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return _nested_region(_nested_region(x, w), w) * 2


def _cond(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x, w: (x @ w).sin(), lambda x, w: (x + w).cos(), (x, w))


def _scan(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    from torch._higher_order_ops.scan import scan

    return scan(lambda carry, row: ((carry @ w).tanh() + row, carry * 1), x[0], x)[1]


def _gradient_inside(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda a: (a @ w).sin().sum())(x) * w


def _vmap(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.vmap(lambda row: (row @ w).sin())(x)


@pytest.mark.parametrize("function", [_nested, _cond, _scan, _gradient_inside, _vmap])
def test_gradients(function: Callable[..., torch.Tensor]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    inputs = [torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)]
    expected = torch.autograd.grad(function(*inputs).sum(), inputs)
    got = torch.autograd.grad(torch.compile(function, backend="inductile")(*inputs).sum(), inputs)
    torch.testing.assert_close(got, expected)


def test_compiled_autograd() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    twin = copy.deepcopy(module)
    x = torch.randn(5, 4)

    def step(module: Any, x: torch.Tensor) -> None:
        module(x).square().sum().backward()

    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(step, backend="inductile")(twin, x)
    step(module, x)
    for expected, got in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(got.grad, expected.grad)
