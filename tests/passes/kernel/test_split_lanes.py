"""Lanes split at conditions compute what eager does: pieces, padding and rotations along the last dimension."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "two pieces": lambda x: torch.cat((x, 2 * x), -1).relu() + 1,
    "three pieces": lambda x: torch.cat((x[:, :40], -x[:, 3:36], x), -1) * 2,
    "a piece shorter than the lanes": lambda x: torch.cat((x[:, :3], x), -1) + 1,
    "padding on both sides": lambda x: F.pad(x, (32, 32)) - 1,
    "rotation": lambda x: x * 0.5 + torch.cat((-x[:, 48:], x[:, :48]), -1),
    "triangle": lambda x: x.tril() + 1,
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equals_eager(case: str, dtype: torch.dtype) -> None:
    x = torch.randn(6, 96, generator=torch.Generator().manual_seed(0)).to(dtype)
    x[0, ::7] = float("nan")
    torch._dynamo.reset()
    compiled = torch.compile(CASES[case], backend="inductile", options={"emulate_precision_casts": True})
    assert torch.equal(torch.nan_to_num(compiled(x), 7.0), torch.nan_to_num(CASES[case](x), 7.0))
