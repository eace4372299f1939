"""A decoding step writes its new tokens into the cache and moves nothing else of it: bytes counted in the IR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inductile.dialects.context import new_context
from inductile.dialects.reading import Reader
from inductile.passes.analysis.program_costs import program_costs

HEADS, LENGTH, WIDTH = 4, 64, 16
Step = Callable[[torch.Tensor, torch.Tensor, Any], None]


def slice_of_all(cache: torch.Tensor, new: torch.Tensor, position: int) -> None:
    cache[0][:, position : position + 1] = new


def slice_of_layer(cache: torch.Tensor, new: torch.Tensor, position: int) -> None:
    cache[1, :, position : position + 1] = new


def select_of_layer(cache: torch.Tensor, new: torch.Tensor, position: int) -> None:
    cache[1, :, position] = new[:, 0]


def slices_of_slices(cache: torch.Tensor, new: torch.Tensor, position: int) -> None:
    cache[0:2][1:2, :, position : position + 1] = new


def index_copied(cache: torch.Tensor, new: torch.Tensor, position: int) -> None:
    cache[1].index_copy_(1, torch.full((1,), position), new)


def index_put(cache: torch.Tensor, new: torch.Tensor, position: torch.Tensor) -> None:
    cache[1, :, position] = new


CASES: list[Step] = [slice_of_all, slice_of_layer, select_of_layer, slices_of_slices, index_copied, index_put]


class Layer(torch.nn.Module):
    """Holds its cache in a buffer."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step
        self.cache: torch.Tensor
        self.register_buffer("cache", torch.zeros(2, HEADS, LENGTH, WIDTH))

    def forward(self, new: torch.Tensor, position: Any) -> torch.Tensor:
        self.step(self.cache, new, position)
        return new * 2


def bytes_moved(folder: Path) -> int:
    """Bytes that the last graph compiled moves, at the hints of its symbols."""
    text = max(folder.glob("*/*-host-free.mlir"), key=lambda path: path.stat().st_mtime).read_text()
    return program_costs(Reader(new_context(), text).parse_module(), {})[0].total.bytes


@pytest.mark.rotates(2, each="step")
@pytest.mark.parametrize("dynamic", [None, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("held", ["argument", "buffer"])
@pytest.mark.parametrize("step", CASES, ids=lambda step: step.__name__)
def test_only_new_tokens_move(step: Step, held: str, dynamic: bool | None, tmp_path: Path) -> None:
    torch._dynamo.reset()
    new = torch.randn(HEADS, 1, WIDTH)
    cache, expected = torch.zeros(2, HEADS, LENGTH, WIDTH), torch.zeros(2, HEADS, LENGTH, WIDTH)
    options: Any = {"trace": str(tmp_path)}
    if held == "buffer":
        layer = Layer(step)
        cache = layer.cache
        run = torch.compile(layer, backend="inductile", dynamic=dynamic, options=options)
    else:
        compiled = torch.compile(step, backend="inductile", dynamic=dynamic, options=options)

        def run(new: torch.Tensor, position: Any) -> Any:
            return compiled(cache, new, position)

    with torch.no_grad():
        for number in (5, 6, 9):
            position = torch.tensor([number]) if step is index_put else number
            run(new, position)
            step(expected, new, position)
    torch.testing.assert_close(cache, expected, rtol=0, atol=0)
    token = HEADS * WIDTH * 4
    assert bytes_moved(tmp_path) <= 5 * token  # read, written, doubled, and indices; the cache has 128 times a token
