"""Norms of groups of an image whose sizes are symbols are one kernel, as with known sizes, and equal eager."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import inductile


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_group_norm_of_any_size_is_one_kernel(memory_format: torch.memory_format) -> None:
    def norm(x: torch.Tensor) -> torch.Tensor:
        return F.group_norm(x, 4)

    torch._dynamo.reset()
    compiled = torch.compile(norm, backend="inductile", dynamic=True)
    for shape in ((2, 32, 9, 7), (3, 40, 5, 11), (1, 8, 3, 3)):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(memory_format=memory_format)
        expected, answer = norm(x), compiled(x)
        assert answer.stride() == expected.stride()
        torch.testing.assert_close(answer, expected)
    (report,) = inductile.explain(norm, dynamic=True)(x).reports
    assert sum(report.kernels.values()) == 1
