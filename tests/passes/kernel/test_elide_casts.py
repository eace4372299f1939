"""Casts that change no number are not made: maxima of what relu gives."""

from __future__ import annotations

import pytest
import torch

import inductile


def _pooled(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.max_pool2d(torch.relu(x), 3, 2, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_relu_inside_of_a_pool_is_not_rounded(dtype: torch.dtype) -> None:
    x = torch.randn(1, 16, 12, 12).to(dtype).to(memory_format=torch.channels_last)
    x[0, 0, 3, 3], x[0, 1, 0, 0], x[0, 2, 5, 5] = float("nan"), -float("inf"), float("inf")
    explained = inductile.explain(_pooled)(x)
    torch.testing.assert_close(explained.result, _pooled(x), rtol=0, atol=0, equal_nan=True)
    text = "".join(explained.reports[0].sources.values())
    assert "max_nan" in text and "round_" not in text.rpartition("extern")[2]
