"""How much a compile does, counted: what it takes on a clock depends on the machine, calls of functions do not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from inductile.backends import compile_graph

_LAYERS = 12
_MOST_CALLS = 2050
"""Calls of functions, of Python and of C, an ATen op: 1,784 with Python 3.11 and torch 2.14. Where this fails with a
reason, say it and raise the number."""


class _Layer(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each.unflatten(2, (4, 8)).transpose(1, 2) for each in self.heads(self.before(x)).chunk(3, -1))
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.behind(x)), approximate="tanh"))


def _calls_of(function: Callable[[], object]) -> int:
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.skipif(sys.gettrace() is not None, reason="what watches the lines is called too")
def test_calls_of_a_repeated_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Twelve equal layers; the second compile of one graph, which finds its kernels in the disk cache."""
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "0")
    once = compile_graph._compile
    found: list[float] = []

    def twice(graph: torch.fx.GraphModule, *rest: Any) -> Any:
        once(graph, *rest)
        ops = sum(isinstance(node.target, torch._ops.OpOverload) for node in graph.graph.nodes)
        found.append(_calls_of(lambda: once(graph, *rest)) / ops)
        return once(graph, *rest)

    monkeypatch.setattr(compile_graph, "_compile", twice)
    model = nn.Sequential(*(_Layer() for _ in range(_LAYERS))).eval()
    with torch.no_grad():
        torch.compile(model, backend="inductile")(torch.randn(2, 16, 32))
    assert len(found) == 1
    assert found[0] < _MOST_CALLS
