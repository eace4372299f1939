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


def test_a_step_of_a_byte_is_the_same_float_with_what_is_no_number() -> None:
    """Sums keep no byte in between; a NaN is 0 in a byte, and so it is here."""

    def function(x: torch.Tensor) -> torch.Tensor:
        steps = torch.clamp(torch.round(x * 2) + 17, 0, 255).to(torch.uint8)
        return (steps.to(torch.float32) - 17) * 0.5

    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.25, -0.25, -8.5, -8.75, -9.0, 119.0, 1e30])
    torch._dynamo.reset()
    got = torch.compile(function, backend="inductile")(x)
    expected = torch.tensor([-8.5, 119, -8.5, 0, 0, 0, -8.5, -8.5, -8.5, 119, 119])
    torch.testing.assert_close(got, expected, rtol=0, atol=0)
