"""Operators whose schema is that of a function, and of which the user has told torch that they have an effect."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx.node import has_side_effect

Tensor = torch.Tensor
_SEEN: list[str] = []


@torch.library.custom_op("inductile_tests::note", mutates_args=())
def note(word: str, x: Tensor) -> Tensor:
    _SEEN.append(word)
    return torch.zeros(1)


@note.register_fake
def _(word: str, x: Tensor) -> Tensor:
    return torch.zeros(1)


has_side_effect(torch.ops.inductile_tests.note.default)


def unused(x: Tensor) -> Tensor:
    note("first", x)
    note("second", x)
    return x * x


def equal_calls(x: Tensor) -> Tensor:
    return x * x + note("same", x.detach()) + note("same", x.detach())


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("function", [unused, equal_calls])
def test_runs_as_often_as_eager(function: Callable[[Tensor], Tensor], training: bool) -> None:
    """Neither removed, nor merged, nor run again in backward."""
    counts = []
    torch._dynamo.reset()
    for each in (function, torch.compile(function, backend="inductile", fullgraph=True)):
        _SEEN.clear()
        x = torch.ones(3, 3, requires_grad=training)
        result = each(x)
        if training:
            result.sum().backward()
        counts.append(list(_SEEN))
    assert counts[0] == counts[1] and len(counts[0]) == 2
