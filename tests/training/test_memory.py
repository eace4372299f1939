"""Bytes that a training step holds at its peak, beside those of eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..scripts import load_benchmark

peak_bytes = load_benchmark("memory").peak_bytes


class Embedded(nn.Module):
    """Rows of a table as large as a vocabulary's, added to those of a small one and normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(20000, 256), nn.Embedding(64, 256)
        self.norm = nn.LayerNorm(256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.norm(self.table(tokens) + self.places(places)).square().mean()


def test_a_table_gets_its_gradient_when_little_else_is_left() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = Embedded()
    tokens = torch.randint(20000, (2, 64))
    peaks: dict[str, int] = {}
    gradients: dict[str, list[torch.Tensor]] = {}
    for name, call in (("eager", module), ("inductile", torch.compile(module, backend="inductile"))):

        def step(call: Callable[..., Any] = call) -> None:
            module.zero_grad(set_to_none=True)
            call(tokens).backward()

        step()
        gradients[name] = [p.grad for p in module.parameters() if p.grad is not None]
        module.zero_grad(set_to_none=True)
        peaks[name] = peak_bytes(step)
    torch.testing.assert_close(gradients["inductile"], gradients["eager"])
    assert peaks["inductile"] <= peaks["eager"]
