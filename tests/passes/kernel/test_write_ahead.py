"""Rows kept in the memory of a result do not disturb what else is read, written or returned."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

CASES: dict[str, Callable[[torch.Tensor], torch.Tensor | tuple[torch.Tensor, ...]]] = {
    "softmax": lambda x: F.softmax(x, -1),
    "layer norm": lambda x: F.layer_norm(x * 2, (x.shape[-1],)),
    "row used again": lambda x: F.softmax(x, -1) * x.exp(),
    "two results": lambda x: (F.softmax(x, -1), F.log_softmax(x + 1, -1)),
    "over its input": lambda x: x.copy_(F.softmax(x, -1)),
    "of another type": lambda x: F.softmax(x, -1).double(),
    "columns": lambda x: F.softmax(x, 0),
    "rows of two": lambda x: F.softmax(x.reshape(-1, 2), -1),
}


@pytest.mark.rotates(2, each="case")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_equals_eager(case: str, dynamic: bool) -> None:
    x = torch.randn(20, 2000, generator=torch.Generator().manual_seed(0))
    x[3, 5], x[4, 7], x[5] = float("nan"), float("inf"), -float("inf")
    torch._dynamo.reset()
    compiled = torch.compile(CASES[case], backend="inductile", dynamic=dynamic)
    torch.testing.assert_close(compiled(x.clone()), CASES[case](x.clone()), equal_nan=True)
