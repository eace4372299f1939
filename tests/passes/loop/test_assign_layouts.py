"""Sums that lie transposed from layer to layer: `loop-assign-layouts`, across layers that are not outlined."""

from __future__ import annotations

import pytest
import torch

from inductile.passes.remarks import collecting


class Mixing(torch.nn.Module):
    """A layer that mixes rows, then columns."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(columns), torch.nn.LayerNorm(columns)
        self.across, self.along = torch.nn.Linear(rows, rows), torch.nn.Linear(columns, columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(images, rows, columns) -> the same."""
        x = x + torch.relu(self.across(self.first(x).transpose(1, 2))).transpose(1, 2)
        return x + torch.relu(self.along(self.second(x)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_transposed_stream_is_row_major_in_all_layers(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*(Mixing(20, 48) for _ in range(8))).to(dtype).eval()
    x = torch.randn(2, 48, 20, dtype=dtype).transpose(1, 2)
    torch._dynamo.reset()
    with torch.no_grad(), collecting() as remarks:
        compiled = torch.compile(lambda x: layers(x).mean(1), backend="inductile")(x)
        expected = layers(x).mean(1)
    tolerance = 1e-4 if dtype == torch.float32 else 4e-2
    torch.testing.assert_close(compiled, expected, rtol=tolerance, atol=tolerance)
    turned = [each for each in remarks if each.pass_name == "loop-assign-layouts" and "row-major" in str(each)]
    assert len(turned) == 16, turned  # both sums of every layer
