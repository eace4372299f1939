"""Copies that swap axes move every element of every type to its place, bit by bit."""

from __future__ import annotations

import pytest
import torch

#: whole tiles, ragged ones, both shorter than a tile
SHAPES = ((64, 128), (70, 33), (200, 16), (17, 15), (3, 130))
TYPES = (torch.int8, torch.bool, torch.bfloat16, torch.float16, torch.int32, torch.float32, torch.int64, torch.float64)


@pytest.mark.rotates(2, each="dynamic")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("dynamic", [False, True])
def test_equals_eager(dtype: torch.dtype, dynamic: bool) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.t().contiguous(), x.t() == y

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="inductile", dynamic=dynamic)
    for rows, columns in SHAPES if dynamic else SHAPES[:3]:
        x = torch.randint(-9, 9, (rows, columns), generator=torch.Generator().manual_seed(rows)).to(dtype)
        y = x.t().clone(memory_format=torch.contiguous_format)
        y[1, 2] = 11
        expected = function(x, y)
        assert all(map(torch.equal, compiled(x, y), expected))
