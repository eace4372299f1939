"""Weights that are dequantised for the library a panel at a time: the values, and no whole weight in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.compiled import REPORTS
from inductile.lowering.pipeline import pipeline_string

DEPTH = 1024
SMALL = pipeline_string().replace("graph-panel-products", "graph-panel-products{panel=1}")
"""Panels of a megabyte."""


def _by_channel(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.mm(x, w.t().to(x.dtype)) * scale[:, 0] + bias)


def _in_groups(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    groups = w.view(w.shape[0], -1, 32).to(x.dtype) - 3
    return F.linear(x, (groups * scale[..., None]).view(w.shape), bias)


def _turned_scales(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    groups = w.view(w.shape[0], -1, 32).to(x.dtype) * scale.t().contiguous().t()[..., None]
    return torch.addmm(bias[None], x, groups.view(w.shape).t(), beta=0.5)


def _joined(join: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def unpacked(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        numbers = join([w & 15, w >> 4], -1).view(w.shape[0], -1, 32).to(x.dtype) - 8
        return F.linear(x, (numbers * scale[..., None]).view(w.shape[0], -1), bias)

    return unpacked


def _signed(columns: int, depth: int) -> torch.Tensor:
    return torch.randint(-128, 128, (columns, depth), dtype=torch.int8, generator=torch.Generator().manual_seed(1))


def _packed(columns: int, depth: int) -> torch.Tensor:
    return _signed(columns, depth // 2).view(torch.uint8)


def _float8(columns: int, depth: int) -> torch.Tensor:
    return torch.randn(columns, depth, generator=torch.Generator().manual_seed(1)).to(torch.float8_e4m3fn)


KINDS: dict[str, tuple[Callable[..., torch.Tensor], Callable[[int, int], torch.Tensor]]] = {
    "int8": (_by_channel, _signed), "float8": (_by_channel, _float8), "groups": (_in_groups, _signed),
    "turned scales": (_turned_scales, _signed), "stack": (_joined(torch.stack), _packed),
    "cat": (_joined(torch.cat), _packed),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("columns", "is_dynamic", "freezing"), [(1100, False, False), (1031, True, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind: str, columns: int, is_dynamic: bool, freezing: bool, dtype: torch.dtype) -> None:
    function, make = KINDS[kind]
    columns *= 4 // dtype.itemsize
    generator = torch.Generator().manual_seed(0)
    scale, bias = (torch.rand(shape, generator=generator).to(dtype) for shape in ((columns, DEPTH // 32), (columns,)))
    args = (make(columns, DEPTH), scale, bias)

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, each in zip("wsb", args, strict=True):
                self.register_buffer(name, each)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(x, self.w, self.s, self.b)

    layer = Layer()
    torch._dynamo.reset()
    REPORTS.clear()
    options: dict[str, Any] = {"pipeline": SMALL, "freezing": freezing}
    compiled = torch.compile(layer, backend="inductile", dynamic=is_dynamic, options=options)
    for rows in (40, 9) if is_dynamic else (40,):
        x = torch.randn(rows, DEPTH, generator=generator).to(dtype)
        with torch.no_grad():
            got, expected = compiled(x), layer(x)
        wide = (args[0], *(each.double() for each in args[1:]))
        exact = function(x.double(), *wide) if args[0].dtype != torch.float8_e4m3fn else function(
            x.double(), args[0].double(), *wide[1:]
        )  # fmt: skip
        error, of_eager = ((each.double() - exact).norm() for each in (got, expected))
        assert got.shape == expected.shape and got.stride() == expected.stride()
        assert error <= 2 * of_eager + 1e-6 * exact.norm()
    (report,) = REPORTS
    assert any(name.startswith("panel_0") for name in report.sources), list(report.sources)
    assert f"({columns}, {DEPTH})" not in report.sources["program.py"]


def test_gradients_of_activations() -> None:
    """Training with a quantised weight keeps what it had: values and gradients."""
    w, scale, bias = _signed(1100, DEPTH), torch.rand(1100, 1), torch.rand(1100)
    results = []
    for run in (_by_channel, torch.compile(_by_channel, backend="inductile", options={"pipeline": SMALL})):
        x = torch.randn(40, DEPTH, generator=torch.Generator().manual_seed(0)).requires_grad_()
        run(x, w, scale, bias).square().sum().backward()
        results.append(x.grad)
    assert (results[1] - results[0]).norm() < 1e-5 * results[0].norm()
