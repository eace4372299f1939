"""Products of a row of bfloat16 and numbers of 4 bits in groups, beside float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn


class Linear4(nn.Module):
    """Two neighbours a byte, unpacked by `stack`."""

    def __init__(self, inner: int, columns: int, group: int, zero: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(inner + group)
        self.group, self.zero = group, zero
        self.register_buffer(
            "weight", torch.randint(0, 256, (columns, inner // 2), dtype=torch.uint8, generator=generator)
        )
        scales = torch.rand(columns, inner // group, generator=generator) * 0.01
        self.register_buffer("scales", scales.bfloat16())

    def weights(self, dtype: torch.dtype) -> torch.Tensor:
        packed = self.get_buffer("weight")
        numbers = torch.stack([packed & 15, packed >> 4], -1).view(packed.shape[0], -1, self.group)
        weight = (numbers.to(dtype) - self.zero) * self.get_buffer("scales").to(dtype)[:, :, None]
        return weight.view(packed.shape[0], -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weights(x.dtype))


class Gated(nn.Module):
    """Two products of one row, which one kernel computes."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = Linear4(512, 768, 128, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.joined(x).chunk(2, -1)
        return nn.functional.silu(gate) * up


@pytest.mark.parametrize("group", [32, 64, 128])
@pytest.mark.parametrize("zero", [0, 8])
def test_a_row(group: int, zero: int) -> None:
    torch.compiler.reset()
    model = Linear4(512, 384, group, zero)
    x = torch.randn(1, 512, generator=torch.Generator().manual_seed(1)).bfloat16()
    with torch.no_grad():
        found = torch.compile(model, backend="inductile", options={"freezing": True})(x)
        exact = nn.functional.linear(x.double(), model.weights(torch.float64))
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-3 * float(exact.abs().max()))


def test_gates() -> None:
    torch.compiler.reset()
    model = Gated()
    x = torch.randn(1, 512, generator=torch.Generator().manual_seed(2)).bfloat16()
    with torch.no_grad():
        found = torch.compile(model, backend="inductile", options={"freezing": True})(x)
        both = nn.functional.linear(x.double(), model.joined.weights(torch.float64))
        gate, up = both.chunk(2, -1)
        exact = nn.functional.silu(gate) * up
    torch.testing.assert_close(found.double(), exact, rtol=2**-6, atol=1e-2 * float(exact.abs().max()))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8], ids=str)
def test_a_row_of_bytes(dtype: torch.dtype) -> None:
    torch.compiler.reset()
    generator = torch.Generator().manual_seed(3)
    limits = torch.iinfo(dtype)
    weight = torch.randint(limits.min, limits.max + 1, (384, 544), dtype=dtype, generator=generator)
    x = torch.randn(1, 544, generator=generator).bfloat16()

    def function(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, weight.to(x.dtype))

    with torch.no_grad():
        found = torch.compile(function, backend="inductile")(x, weight)
    exact = nn.functional.linear(x.double(), weight.double())
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-3 * float(exact.abs().max()))
