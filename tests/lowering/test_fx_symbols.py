"""Sizes that guards have made equal look equal in the IR."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import inductile.backends.compile_graph as compile_graph
from inductile.passes.printing import module_text


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


class Patches(nn.Module):
    """Patches of an image as rows, and back: torch divides their number by their width to find their height."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.linear = nn.Conv2d(3, 8, 4, stride=4), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.convolution(x)
        for _ in range(2):
            y = F.gelu(self.linear(F.layer_norm(y.permute(0, 2, 3, 1), (8,)))).permute(0, 3, 1, 2) + y
        return y


def test_sizes_that_are_equal_look_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    known = compile_graph.import_graph

    def import_graph(*given: Any) -> Any:
        imported = known(*given)
        texts.append(module_text(imported.module))
        return imported

    monkeypatch.setattr(compile_graph, "import_graph", import_graph)
    model = Patches().eval()
    run = torch.compile(model, backend="inductile", dynamic=True)
    for batch, size in ((2, 32), (3, 44), (2, 33)):
        x = torch.randn(batch, 3, size, size)
        with torch.no_grad():
            torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(texts) == 1
    assert "max(" not in texts[0]
    assert "floordiv (" not in texts[0], texts[0]
