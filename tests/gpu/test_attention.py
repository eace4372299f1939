"""Attention on a GPU ends in a fused kernel, whatever its mask is made of, and is as exact as eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.compiled import REPORTS

pytestmark = pytest.mark.gpu


def _tensors(length: int = 512, count: int = 3) -> list[torch.Tensor]:
    return [torch.randn(2, 4, length, 64, device="cuda", dtype=torch.bfloat16) for _ in range(count)]


def _positions(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    place = torch.arange(q.shape[2], device=q.device)
    return place[:, None], place[None, :]


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT / 8).softmax(-1) @ v


def in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.softmax(q @ k.mT / 8, dim=-1, dtype=torch.float32).to(v.dtype) @ v


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    rows, columns = _positions(q)
    return (q @ k.mT / 8).masked_fill(columns > rows, -torch.inf).softmax(-1) @ v


def stretched_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Rows alone are hidden, so that the mask has a stride of 0 along keys."""
    rows, _ = _positions(q)
    mask = (rows < q.shape[2] - 3)[None, None].expand(2, 1, q.shape[2], q.shape[2])
    return F.scaled_dot_product_attention(q, k, v, mask)[:, :, : q.shape[2] - 3]


def window(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    rows, columns = _positions(q)
    return F.scaled_dot_product_attention(q, k, v, (columns <= rows) & (rows - columns < 99))


def causal_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    rows, columns = _positions(q)
    return F.scaled_dot_product_attention(q, k, v, columns <= rows)


def one_head(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Keys and values that all heads share."""
    return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], is_causal=True)


def one_batch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k[:1], v[:1], is_causal=True)


def repeated(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Keys and values that two heads share, as models repeat them."""
    k, v = (x[:, :2, None].expand(-1, -1, 2, -1, -1).reshape(q.shape) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def repeated_and_masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    rows, columns = _positions(q)
    k, v = (x[:, :2, None].expand(-1, -1, 2, -1, -1).reshape(q.shape) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, columns <= rows + 3)


CASES = [
    plain,
    in_float32,
    causal,
    stretched_mask,
    window,
    causal_mask,
    one_head,
    one_batch,
    repeated,
    repeated_and_masked,
]


def test_one_head_and_a_wide_bias() -> None:
    q, k, v = _tensors()
    bias = torch.randn(512, 512, device="cuda")

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], bias)

    torch.testing.assert_close(torch.compile(attend, backend="inductile")(q, k, v), attend(q, k, v))


def _error(got: torch.Tensor, exact: torch.Tensor) -> float:
    return float((got.double() - exact).norm() / exact.norm())


def _fused(report: Any) -> list[str]:
    return [call for call in report.aten_calls if "attention" in call]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", CASES)
def test_fused(function: Callable[..., torch.Tensor], dynamic: bool) -> None:
    given = _tensors()
    for x in given if dynamic else ():
        torch._dynamo.mark_dynamic(x, 2)
    run = torch.compile(function, backend="inductile")
    with torch.no_grad():
        got, eager, exact = run(*given), function(*given), function(*(x.double() for x in given))
    assert (got.dtype, got.stride()) == (eager.dtype, eager.stride())
    assert _error(got, exact) <= 1.5 * _error(eager, exact)
    assert _fused(REPORTS[-1]) and not any("bmm" in call for call in REPORTS[-1].aten_calls), REPORTS[-1].aten_calls


@pytest.mark.parametrize("function", [plain, in_float32, causal, window])
def test_fused_with_gradients(function: Callable[..., torch.Tensor]) -> None:
    def gradients(call: Callable[..., torch.Tensor], given: list[torch.Tensor]) -> list[torch.Tensor]:
        leaves = [x.detach().clone().requires_grad_() for x in given]
        return list(torch.autograd.grad(call(*leaves).double().square().sum(), leaves))

    given = _tensors()
    got = gradients(torch.compile(function, backend="inductile"), given)
    assert all(_fused(report) for report in REPORTS[-2:]), [report.aten_calls for report in REPORTS[-2:]]
    exact = gradients(function, [x.double() for x in given])
    for mine, eager, right in zip(got, gradients(function, given), exact, strict=True):
        assert _error(mine, right) <= 1.5 * _error(eager, right)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_undefined_rows(place: int, number: float) -> None:
    given = _tensors(128)
    given[place][0, 1, 70, 3] = number
    with torch.no_grad():
        got, eager = torch.compile(plain, backend="inductile")(*given), plain(*given)
    assert torch.equal(got.isnan(), eager.isnan())
