"""Searches in tables on a GPU, in Triton's interpreter, against eager."""

from __future__ import annotations

import pytest
import torch

from .interpreted_training import Interpreted


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 64, 300])
def test_bucketize(count: int, right: bool) -> None:
    torch._dynamo.reset()
    backend = Interpreted()
    table = (torch.randn(count, generator=torch.Generator().manual_seed(count)) * 4).round().sort().values
    x = torch.cat((table, table + 0.5, torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0])))
    compiled = torch.compile(lambda x, t: torch.bucketize(x, t, right=right), backend=backend)
    assert torch.equal(compiled(x, table), torch.bucketize(x, table, right=right))
    assert ("kernel.reduce" in backend.text) == (1 < count < 16)


def test_integers_in_a_table_of_floats() -> None:
    torch._dynamo.reset()
    table = torch.arange(40.0) * 1.5
    x = torch.arange(-5, 70)
    compiled = torch.compile(torch.bucketize, backend=Interpreted())
    assert torch.equal(compiled(x, table), torch.bucketize(x, table))
