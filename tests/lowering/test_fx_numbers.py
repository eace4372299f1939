"""Numbers that modules own are constants under dynamic sizes, until they change."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import inductile.lowering.fx_attention as fx_attention
from inductile.lowering.fx_attention import recognise_attention
from inductile.lowering.fx_numbers import settle_numbers
from inductile.machines import Library

SCALE = 0.75


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.eps, self.gain = 1e-5, 3.0

    def forward(self, x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * (self.gain / 2) * math.sqrt(self.gain)
        return y * SCALE * factor


def graphs(module: nn.Module, passes: tuple[Any, ...] = (settle_numbers,)) -> tuple[Any, list[torch.fx.GraphModule]]:
    """The compiled module, and the graphs that it has compiled."""
    found: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        for each in passes:
            each(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        found.append(graph)
        return graph

    return torch.compile(module, backend=backend, dynamic=True), found


def open_numbers(graph: torch.fx.GraphModule) -> int:
    return sum(isinstance(n.meta.get("example_value"), torch.SymFloat) for n in graph.graph.nodes)


def test_a_number_that_changes_stays_open() -> None:
    module = Normed()
    run, found = graphs(module)
    x = torch.randn(5, 7)
    for eps in (1e-5, 1e-5, 0.5, 0.25, 0.125):
        module.eps = eps
        torch.testing.assert_close(run(x), module(x))
    assert [open_numbers(each) for each in found] == [1, 2]  # one is the factor of the call


def test_numbers_of_calls_stay_open() -> None:
    run, found = graphs(Normed())
    x = torch.randn(5, 7)
    for factor in (0.5, 0.25, 0.125):
        torch.testing.assert_close(run(x, factor), Normed()(x, factor))
    assert [open_numbers(each) for each in found] == [1]


class Ours(nn.Module):
    """No number of a call."""

    def __init__(self) -> None:
        super().__init__()
        self.eps = 1e-3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


def test_kernels_get_no_numbers() -> None:
    from inductile.backends.compiled import REPORTS

    module = nn.Sequential(nn.LayerNorm(8, eps=1e-3), Ours())
    x = torch.randn(3, 8)
    for passes, is_given in (("", True), ("settle-numbers", False)):
        torch._dynamo.reset()
        run = torch.compile(module, backend="inductile", dynamic=True, options={"pre_grad": passes})
        with torch.no_grad():
            torch.testing.assert_close(run(x), module(x))
        assert ("const double* " in REPORTS[-1].sources["kernels.cpp"]) is is_given


def test_gradients() -> None:
    module = Normed()
    run = torch.compile(module, backend="inductile", dynamic=True)
    x = torch.randn(4, 6, requires_grad=True)
    got, wanted = (torch.autograd.grad(f(x).sum(), x)[0] for f in (run, module))
    torch.testing.assert_close(got, wanted)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.width, self.scaling, self.share = 16, 0.25, 0.0

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = (x.view(*x.shape[:3], self.width) for x in (q, k, v))
        weights = (torch.matmul(q.float(), k.float().mT) * self.scaling).softmax(-1).to(q.dtype)
        return torch.matmul(F.dropout(weights, self.share), v)


def test_a_scale_keeps_no_attention_from_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fx_attention, "library_of", lambda device: Library(keeps_nan=True))
    module = Scaled()
    run, found = graphs(module, (settle_numbers, recognise_attention))
    given = [torch.randn(2, 3, 12, 16).bfloat16() for _ in range(3)]
    torch.testing.assert_close(run(*given), module(*given), rtol=0.02, atol=0.02)
    calls = [n for n in found[0].graph.nodes if n.target is F.scaled_dot_product_attention]
    assert [call.kwargs["scale"] for call in calls] == [0.25]
