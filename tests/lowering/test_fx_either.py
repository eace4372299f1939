"""Attention under a mask stands in a graph twice where kernels of ours may be faster: both ways compute the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

import inductile.lowering.fx_attention as fx_attention
from inductile.lowering.fx_attention import recognise_attention
from inductile.lowering.fx_either import EITHER, either_way, on_way
from inductile.machines import Library
from inductile.passes.common.choices import Question, timed_by


class _Timer:
    """Somebody who would measure; without one a choice is left open only where something similar was measured."""

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        raise NotImplementedError


Pair = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fx_attention, "library_of", lambda device: Library(keeps_nan=True))
    torch._dynamo.reset()
    with timed_by(_Timer()):
        yield


def _places(q: torch.Tensor) -> Pair:
    place = torch.arange(q.shape[-2])
    return place[:, None], place[None]


def windowed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    row, column = _places(q)
    return (q @ k.mT * 0.25).masked_fill((column > row) | (row - column > 3), -torch.inf).softmax(-1) @ v


def sloped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    row, column = _places(q)
    slopes = 2.0 ** -torch.arange(1, 4)[:, None, None]
    scores = (q @ k.mT * 0.25 + slopes * (column - row)).masked_fill(column > row, -torch.inf)
    return scores.float().softmax(-1).to(v.dtype) @ v


def in_place(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    row, column = _places(q)
    scores = q @ k.mT
    scores *= 0.25
    scores.masked_fill_((row - column).abs() > 2, -torch.inf)
    return scores.softmax(-1) @ v


def hiding_a_row(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    row, _ = _places(q)
    return (q @ k.mT * 0.25).masked_fill(row == 5, torch.finfo(q.dtype).min).softmax(-1) @ v


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    row, column = _places(q)
    return (q @ k.mT * 0.25).masked_fill(column > row, -torch.inf).softmax(-1) @ v


def dropping(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    row, column = _places(q)
    weights = (q @ k.mT * 0.25).masked_fill((row - column).abs() > 2, -torch.inf).softmax(-1)
    return torch.nn.functional.dropout(weights, 0.5) @ v


def _ways(function: Any, given: list[torch.Tensor], dynamic: bool = False) -> tuple[torch.Tensor, list[Pair]]:
    """The result, and both ways of each choice that the graph leaves open."""
    pairs: list[Pair] = []

    def both(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        pairs.append((first, second))
        return first

    def backend(graph: GraphModule, inputs: list[Any]) -> Any:
        recognise_attention(graph, inputs)
        graph.graph.lint()
        for node in graph.graph.nodes:
            if node.target is EITHER:
                node.target = both
        graph.recompile()
        return graph

    for x in given if dynamic else ():
        torch._dynamo.mark_dynamic(x, 2)
    return torch.compile(function, backend=backend)(*given), pairs


def _given() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 3, 12, 16).bfloat16() for _ in range(3)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [windowed, sloped, in_place, hiding_a_row])
def test_both_ways_compute_the_same(function: Any, dynamic: bool) -> None:
    given = _given()
    _, [(fused, written)] = _ways(function, given, dynamic)
    eager, exact = function(*given), function(*(x.double() for x in given))
    assert torch.equal(written, eager)
    assert (fused.dtype, fused.shape, fused.stride()) == (written.dtype, written.shape, written.stride())
    assert float((fused.double() - exact).norm()) <= 1.5 * float((eager.double() - exact).norm())


@pytest.mark.parametrize("function", [causal, dropping])
def test_what_the_library_does_alone(function: Any) -> None:
    assert not _ways(function, _given())[1]


def test_gradients_are_the_library_s() -> None:
    given = [x.requires_grad_() for x in _given()]
    result, pairs = _ways(windowed, given)
    assert not pairs
    result.float().sum().backward()
    with torch.no_grad():
        torch._dynamo.reset()
        assert _ways(windowed, given)[1]


def test_nothing_is_left_open_where_nobody_knows() -> None:
    with timed_by(None):
        assert not _ways(windowed, _given())[1]


def test_in_eager_the_first_one_counts() -> None:
    first, second = torch.zeros(2), torch.ones(2)
    found = EITHER(first, second)
    assert torch.equal(found, first) and found is not first


def test_in_eager_gradients_are_those_of_the_first_way() -> None:
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    found = either_way(on_way(x, 3, 0).sin(), on_way(x, 3, 1) * 7, 3)
    (gradient,) = torch.autograd.grad((found * 2).sum(), x)
    assert torch.equal(found, x.sin()) and torch.equal(gradient, 2 * x.cos())


@pytest.mark.parametrize("function", [windowed, sloped, in_place])
def test_both_ways_have_gradients_of_their_own(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where training of such sizes was measured: in the end those of one way count, in eager the library's."""
    monkeypatch.setattr(fx_attention, "may_be_nest", lambda *_: True)
    given = [x.requires_grad_() for x in _given()]
    counts: list[int] = []

    def backend(graph: GraphModule, inputs: list[Any]) -> Any:
        recognise_attention(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        calls = [node.target for node in graph.graph.nodes]
        counts.append(calls.count(on_way) if calls.count(either_way) == 1 else -1)
        return graph

    result = torch.compile(function, backend=backend)(*given)
    found = torch.autograd.grad(result.float().sum(), given)
    eager = torch.autograd.grad(function(*given).float().sum(), given)
    assert counts == [6]
    for got, want in zip(found, eager, strict=True):
        torch.testing.assert_close(got, want, rtol=0.05, atol=0.05)
