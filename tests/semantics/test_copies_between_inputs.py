"""Inputs that are copied to each other and then written: each read sees what was there before."""

import random
from collections.abc import Callable

import pytest
import torch

from ..eager_compare import compare

Tensors = tuple[torch.Tensor, ...]
Step = Callable[[list[torch.Tensor]], object]


def swapped(d: torch.Tensor, s: torch.Tensor) -> Tensors:
    d[0:, :] = s[0:, :]
    s.add_(1)
    return s, d


def exchanged(d: torch.Tensor, s: torch.Tensor) -> Tensors:
    old = d.clone()
    d.copy_(s)
    s.copy_(old)
    return d, s


def turned(d: torch.Tensor, s: torch.Tensor) -> Tensors:
    d.copy_(s.flip(0))
    s.mul_(2)
    return d, s


@pytest.mark.parametrize("function", [swapped, exchanged, turned])
def test_copy_then_write(function: Callable[..., Tensors]) -> None:
    assert not compare(function, (torch.zeros(4, 4), torch.arange(16.0).view(4, 4)))


def program(seed: int) -> Callable[..., Tensors]:
    """Random copies, slices and writes between three inputs."""
    draw = random.Random(seed)
    steps: list[Step] = []
    for _ in range(draw.randint(3, 6)):
        to, shift, kind = draw.randrange(3), draw.randrange(1, 3), draw.randrange(6)
        of = (to + shift) % 3  # eager refuses copies between overlapping views, which no backend sees
        steps.append(_STEPS[kind](to, of))

    def run(*tensors: torch.Tensor) -> Tensors:
        given = list(tensors)
        for step in steps:
            step(given)
        return tuple(given)

    return run


_STEPS: tuple[Callable[[int, int], Step], ...] = (
    lambda to, of: lambda t: t[to].copy_(t[of]),
    lambda to, of: lambda t: t[to].copy_(t[of].mT),
    lambda to, of: lambda t: t[to][1:].copy_(t[of][:-1] + 1),
    lambda to, of: lambda t: t[to].add_(t[of]),
    lambda to, of: lambda t: t[to][:, 0].mul_(t[of].sum(1)),
    lambda to, of: lambda t: t.__setitem__(to, t[of] * 2),
)


@pytest.mark.parametrize("seed", range(8))
def test_random_copies(seed: int) -> None:
    inputs = [torch.randn(4, 4, generator=torch.Generator().manual_seed(k)) for k in range(3)]
    assert not compare(program(seed), inputs)
