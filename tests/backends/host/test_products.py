"""Products that oneDNN runs: the values are eager's but for the order of sums, and the option decides."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inductile.backends.compiled import REPORTS

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


def _compiled(function: Any, library: str) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend="inductile", options={"products": library})


@pytest.mark.parametrize("rows_of_weight", [True, False])
@pytest.mark.parametrize("library", ["blas", "onednn"])
def test_products_are_right_in_both_orders_of_the_matrix(library: str, rows_of_weight: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x, b = torch.randn(24, 800, generator=generator), torch.randn(700, generator=generator)
    w = torch.randn(700, 800, generator=generator).t() if rows_of_weight else torch.randn(800, 700, generator=generator)
    y, z = _compiled(lambda: (x @ w, torch.addmm(b, x, w)), library)()
    for got, addend in ((y, torch.zeros(700)), (z, b)):
        exact = x.double() @ w.double() + addend.double()
        assert got.stride() == (700, 1)
        torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=2e-4)


def test_infinite_and_undefined_numbers_go_through() -> None:
    x, w = torch.ones(4, 1024), torch.ones(1024, 600)
    x[0, 0], x[1, 5], x[2, 7], w[7, 3] = torch.nan, torch.inf, 0.0, torch.inf
    got = _compiled(lambda: x @ w, "onednn")()
    torch.testing.assert_close(got, x @ w, equal_nan=True)


@pytest.mark.parametrize(("library", "marked"), [("blas", 0), ("onednn", 2)])
def test_products_of_a_step_take_what_the_option_says(library: str, marked: int) -> None:
    """Those of forward and of the input's gradient; the weight's has a first matrix along columns."""
    model, x = torch.nn.Linear(768, 768), torch.randn(64, 768, requires_grad=True)
    wanted = (x, *model.parameters())
    expected = torch.autograd.grad(model(x).square().sum(), wanted)
    REPORTS.clear()
    got = torch.autograd.grad(_compiled(model, library)(x).square().sum(), wanted)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-3)
    calls = [call for report in REPORTS for call in report.aten_calls.items()]
    assert sum(count for name, count in calls if name.endswith("by onednn")) == marked, calls
    assert sum(count for _, count in calls) == 3, calls
