"""Products of few vectors as nests: the values, sizes and strides of eager's, with what is around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.compiled import REPORTS
from inductile.lowering.pipeline import pipeline_string

#: as on a GPU that has many vectors' worth of rates
PIPELINE = pipeline_string().replace("graph-expand-products", "graph-expand-products{vectors=4}")

Function = Callable[..., torch.Tensor]


def _check(function: Function, *inputs: torch.Tensor, calls: int = 0, dynamic: bool = False) -> None:
    """The same as eager, no less exact, with so many products left to the library."""
    torch._dynamo.reset()
    run = torch.compile(function, backend="inductile", options={"pipeline": PIPELINE}, dynamic=dynamic)
    got, eager = run(*inputs), function(*inputs)
    exact = function(*(x.double() if x.is_floating_point() else x for x in inputs))
    assert (got.dtype, got.shape, got.stride()) == (eager.dtype, eager.shape, eager.stride())
    rounding = torch.finfo(eager.dtype).eps * exact.nan_to_num().abs().max() if exact.numel() else 0.0
    torch.testing.assert_close(got.double(), exact, rtol=0, atol=float(4 * rounding), equal_nan=True)
    assert sum(REPORTS[-1].aten_calls.values()) == calls, REPORTS[-1].aten_calls


def _tensors(dtype: torch.dtype, *sizes: tuple[int, ...]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(size).to(dtype) for size in sizes]


@pytest.mark.parametrize(("dtype", "rows"), [(torch.bfloat16, 1), (torch.float64, 1), (torch.float16, 3)])
def test_a_layer(dtype: torch.dtype, rows: int) -> None:
    x, gate, up, down, b = _tensors(dtype, (2, rows, 20), (24, 20), (24, 20), (20, 24), (24,))

    def layer(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        gate, up, down, b = weights
        h = F.layer_norm(x, (20,))
        return x + F.linear(F.silu(F.linear(h, gate, b)) * F.linear(h, up), down)

    _check(layer, x[:1], gate, up, down, b)
    _check(layer, x, gate, up, down, b, calls=0 if rows == 1 else 3)


def _scaled(c: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(c, x, y.mT, beta=0.5, alpha=2.0)


def _without(c: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(c * torch.nan, x, y.mT, beta=0)


def _columns(c: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.addmm(c[0].mT, y[0], x[0].mT)


def _sliced(c: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x[0, ::2, 3:] @ y[1, :, 3:].mT + y[1, :, 3:].sum()


def _viewed(c: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (y.sin() @ x.mT).mT[..., 1:].reshape(-1) * 2


@pytest.mark.parametrize("function", [_scaled, _without, _columns, _sliced, _viewed])
@pytest.mark.parametrize(("dtype", "depth"), [(torch.bfloat16, 16), (torch.float32, 5)])
def test_forms(function: Function, dtype: torch.dtype, depth: int) -> None:
    _check(function, *_tensors(dtype, (2, 3, 9), (2, 3, depth), (2, 9, depth)))


def test_nothing_to_sum_and_nothing_to_compute() -> None:
    for sizes in [((1, 0), (5, 0)), ((1, 4), (0, 4))]:
        _check(lambda x, w: F.linear(x, w) + 1, *_tensors(torch.float32, *sizes))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("loop_products", [False, True])
def test_factors_of_a_product_times_0_are_read_as_eager_does(dtype: torch.dtype, loop_products: bool) -> None:
    """Most libraries do not read them, so that infinities make no NaN."""
    (c,) = _tensors(dtype, (3, 16, 16))
    x = torch.full_like(c, torch.inf)

    def products(c: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.addmm(c[0], x[0], x[1], alpha=0),
            torch.baddbmm(c, x, x, alpha=0),
            torch.addmv(c[0, 0], x[0], x[0, 0], alpha=0),
        )

    torch._dynamo.reset()
    got = torch.compile(products, backend="inductile", options={"loop_products": loop_products})(c, x)
    for mine, eager in zip(got, products(c, x), strict=True):
        torch.testing.assert_close(mine, eager, equal_nan=True)


def test_infinities_and_nan() -> None:
    x, w = _tensors(torch.float32, (1, 6), (3, 6))
    w[0, 1], w[1, 2], x[0, 3] = torch.inf, torch.nan, 0.0
    w[2, 3] = -torch.inf
    _check(F.linear, x, w)


def test_weights_of_integers_and_a_dynamic_depth() -> None:
    x, scale = _tensors(torch.bfloat16, (1, 32), (12,))
    w = torch.randint(-128, 128, (12, 32), dtype=torch.int8)

    def dequantised(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return F.linear(x, w.to(x.dtype)) * scale

    for depth in (32, 20):
        _check(dequantised, x[:, :depth].contiguous(), w[:, :depth].contiguous(), scale, dynamic=True)


@pytest.mark.parametrize("options", [{}, {"row_products": False, "pipeline": PIPELINE}, {"fallback_by_default": True}])
def test_off(options: dict[str, Any]) -> None:
    """On a CPU by default, and where options say so."""
    torch._dynamo.reset()
    x, w = _tensors(torch.float32, (1, 6), (3, 6))
    torch.compile(F.linear, backend="inductile", options=options)(x, w)
    assert any("mm" in name for name in REPORTS[-1].aten_calls)
