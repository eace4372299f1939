"""Short runs of neighbours, reduced along one axis of lanes, equal eager's answer; and the pass has fired."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import inductile

Program = Callable[[torch.Tensor], object]


def _group_norm(x: torch.Tensor) -> torch.Tensor:
    scale = (torch.arange(x.shape[1]) % 5 - 2).to(x.dtype)
    return F.group_norm(x, 8, scale, scale + 1)


def _statistics(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    groups = x.unflatten(1, (8, -1))
    return groups.amax((2, 3, 4)), groups.sum((2, 3, 4)), groups - groups.mean((2, 3, 4), keepdim=True)


PROGRAMS: dict[str, Program] = {
    "group norm": _group_norm,
    "statistics": _statistics,
    "softmax over groups": lambda x: x.unflatten(1, (8, -1)).flatten(2).softmax(-1),
}


def _images(images: int, channels: int, side: int) -> torch.Tensor:
    x = torch.randn(images, channels, side, side, generator=torch.Generator().manual_seed(0))
    return x.contiguous(memory_format=torch.channels_last)


def _gradients(program: Program, x: torch.Tensor) -> torch.Tensor:
    leaf = x.detach().requires_grad_()
    y = program(leaf)
    assert isinstance(y, torch.Tensor)
    (y * torch.linspace(0.5, 1.5, y.numel()).reshape(y.shape)).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_group_norm_joins_runs(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    x = _images(8, 24, 20).to(dtype)
    assert "runs of 8 neighbours are one axis" in str(inductile.explain(_group_norm)(x))
    torch.testing.assert_close(torch.compile(_group_norm, backend="inductile")(x), _group_norm(x))


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_equals_eager_for_any_size(name: str) -> None:
    program = PROGRAMS[name]
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="inductile", dynamic=True)
    for images, channels, side in ((4, 32, 12), (1, 80, 9), (5, 8, 17), (2, 200, 6)):
        x = _images(images, channels, side)
        torch.testing.assert_close(compiled(x), program(x), rtol=1e-5, atol=1e-5)


def test_gradients_of_a_group_norm() -> None:
    torch._dynamo.reset()
    x = _images(4, 64, 14)
    compiled = torch.compile(_group_norm, backend="inductile")
    torch.testing.assert_close(_gradients(compiled, x), _gradients(_group_norm, x), rtol=1e-4, atol=1e-4)
