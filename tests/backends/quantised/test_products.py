"""Products of integers and of dequantised weights: exact sums of integers, no weight dequantised into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductile.backends.compiled import REPORTS
from inductile.backends.host.products import int_mm_by_floats


def _run(function: Callable[..., Any], *args: torch.Tensor, **options: Any) -> tuple[Any, Any]:
    """The result, and the report of the one graph."""
    torch._dynamo.reset()
    REPORTS.clear()
    with torch.no_grad():
        result = torch.compile(function, backend="inductile", options=options)(*args)
    (report,) = REPORTS
    return result, report


def _integers(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("fill", [None, -128, 127])
@pytest.mark.parametrize("depth", [0, 1, 1024, 2500])
def test_floats_multiply_integers_exactly(depth: int, fill: int | None) -> None:
    left, right = (_integers(19, depth), _integers(1030, depth)) if fill is None else (
        torch.full((19, depth), fill, dtype=torch.int8), torch.full((1030, depth), -128, dtype=torch.int8)
    )  # fmt: skip
    exact = left.double() @ right.t().double()
    got = int_mm_by_floats(left, right.t())
    assert got.dtype == torch.int32 and got.is_contiguous()
    assert torch.equal(got.double(), exact)


@pytest.mark.parametrize(("way", "rows", "call"), [
    ("floats", 4, None), ("floats", 40, "aten._int_mm by floats"), ("library", 40, "aten._int_mm"),
])  # fmt: skip
def test_sums_of_integers_are_exact_and_scaled_in_one_kernel(way: str, rows: int, call: str | None) -> None:
    def scaled(x: torch.Tensor, w: torch.Tensor, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.ops.aten._int_mm(x, w.t()).to(torch.float32) * a * b + bias)

    generator = torch.Generator().manual_seed(0)
    floats = torch.rand(rows, 1, generator=generator), torch.rand(64, generator=generator), torch.randn(64)
    args = _integers(rows, 1500), _integers(64, 1500)[:, :1500], *floats
    got, report = _run(scaled, *args, integer_products=way)
    assert torch.equal(got, scaled(*args))
    assert dict(report.aten_calls) == ({} if call is None else {call: 1})
    assert sum(report.kernels.values()) == 1


def _by_channel(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, w.t().to(x.dtype)) * scale


def _in_groups(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    groups = w.view(w.shape[0], -1, 32).to(x.dtype) - zero.to(x.dtype)[..., None]
    return torch.addmm(torch.ones_like(zero[:, 0], dtype=x.dtype), x, (groups * scale[..., None]).view(w.shape).t())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("in_groups", [False, True])
def test_a_weight_is_dequantised_where_one_row_reads_it(in_groups: bool, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(1, 256, generator=generator).to(dtype), _integers(96, 256)
    shape = (96, 8) if in_groups else (96,)
    scale = torch.rand(shape, generator=generator).to(dtype)
    function, args = (_in_groups, (x, w, scale, _integers(96, 8))) if in_groups else (_by_channel, (x, w, scale))
    got, report = _run(function, *args)
    exact = function(*(a.double() if a.is_floating_point() else a for a in args))
    error, of_eager = ((each.double() - exact).abs().max() for each in (got, function(*args)))
    assert error <= 2 * of_eager + 1e-6 * exact.abs().max()
    assert not report.aten_calls and sum(report.kernels.values()) == 1


def test_a_dynamic_number_of_rows_is_the_librarys() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(_by_channel, backend="inductile", dynamic=True)
    w, scale = _integers(96, 256), torch.rand(96)
    for rows in (2, 5, 40):
        x = torch.randn(rows, 256)
        torch.testing.assert_close(compiled(x, w, scale), _by_channel(x, w, scale), rtol=1e-4, atol=1e-3)
