"""Outputs, gradients and buffers of small modules, compiled and in eager."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from .harness import SplitBackend, check_step
from .models import MODELS, Block, Checkpointed

BACKENDS: dict[str, Callable[[], Any]] = {"split": SplitBackend, "inductile": lambda: "inductile"}
each_backend = pytest.mark.parametrize("backend", BACKENDS)


def _autocast() -> AbstractContextManager[Any]:
    return torch.autocast("cpu", dtype=torch.bfloat16)


@pytest.mark.rotates(3, each="name")
@each_backend
@pytest.mark.parametrize("name", MODELS)
def test_equals_eager(name: str, backend: str) -> None:
    torch.manual_seed(1)
    module, inputs = MODELS[name]()
    check_step(module, inputs, BACKENDS[backend](), steps=2)


@pytest.mark.rotates(3, each="name")
@pytest.mark.parametrize("name", ["mlp", "conv_bn", "attention", "embedding", "inplace"])
@each_backend
def test_symbolic_sizes(name: str, backend: str) -> None:
    torch.manual_seed(1)
    module, inputs = MODELS[name]()
    check_step(module, inputs, BACKENDS[backend](), dynamic=True)


def test_sizes_that_are_spelled_in_two_ways() -> None:
    """ATen gives the gradient of the weight groups times channels of a group, that of the bias the channels."""

    def normed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.silu(F.group_norm(x, 4, weight, bias))

    torch.manual_seed(1)
    compiled = torch.compile(normed, backend="inductile", dynamic=True)
    for channels in (8, 12):
        inputs = [torch.randn(shape, requires_grad=True) for shape in ((2, channels, 5, 7), (channels,), (channels,))]
        got = torch.autograd.grad(compiled(*inputs).square().sum(), inputs)
        torch.testing.assert_close(got, torch.autograd.grad(normed(*inputs).square().sum(), inputs))


@each_backend
def test_autocast(backend: str) -> None:
    torch.manual_seed(1)
    check_step(Block(), (torch.randn(2, 6, 16, requires_grad=True),), BACKENDS[backend](), context=_autocast,
               rtol=3e-2, atol=3e-2)  # fmt: skip


@pytest.mark.rotates(3, each="name")
@pytest.mark.parametrize("budget", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("name", ["mlp", "conv_bn", "attention", "checkpoint"])
def test_budget_changes_no_gradient(name: str, budget: float) -> None:
    torch.manual_seed(1)
    module, inputs = MODELS[name]()
    check_step(module, inputs, SplitBackend({"activation_memory_budget": budget}))


@pytest.mark.parametrize("make", [lambda: Block(dropout=0.5), lambda: Checkpointed(dropout=0.5)])
def test_dropout_draws_once(make: Callable[[], torch.nn.Module]) -> None:
    """The two halves, run in eager, draw the numbers that eager draws; a second draw in backward would show."""
    torch.manual_seed(1)
    check_step(make(), (torch.randn(2, 6, 16, requires_grad=True),), SplitBackend(), steps=2)
