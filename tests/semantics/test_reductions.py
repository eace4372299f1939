"""Reductions, scans and norms: nothing to reduce, one element, infinities, cancellation."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from .catalogue import INF, NAN, Case, Cases, check, parametrized, tensors

CASES: Cases = {
    "nothing and one number": Case(
        lambda x, s: (
            x.sum(), x.prod(), x.mean(), x.sum(0), x.mean(0), x.any(), x.all(), x.logsumexp(0), x.softmax(1),
            x.cumsum(0),
            s.sum(0), s.mean(-1), s.cumsum(0), s.softmax(0), s.amax(), s.argmax(), s.view(1, 1).expand(2, 3), s.var(),
            torch.cat([x, x]), x.reshape(3, 0), x.flip(0, 1), x + 1, x.std(0), x.norm(), x.permute(1, 0).contiguous(),
        ),
        lambda: (torch.empty(0, 3), torch.tensor(5.0)),
    ),
    "extremum of nothing raises": Case(lambda x: x.amax(), lambda: (torch.empty(0, 3),)),
    "maximum of nothing raises": Case(lambda x: x.max(), lambda: (torch.empty(0, 3),)),
    "minimum of nothing raises": Case(lambda x: x.min(), lambda: (torch.empty(3, 0),)),
    "maximum along nothing raises": Case(lambda x: x.max(0), lambda: (torch.empty(0),)),
    "extrema along what is not empty": Case(lambda x: (x.amax(1), x.argmax(1), x.max(1)), lambda: (torch.empty(0, 3),)),
    "along one element": Case(
        lambda x: (
            x.sum(0), x.argmax(0), x.max(0), x.argmin(0), x.var(0, correction=0), x.mean(0), x.softmax(0), x.prod(0),
            x.logsumexp(0), x.sum((0, 1)), x.all(0),
        ),
        tensors([[-0.0, 1.0, NAN, -INF, 2.5]]),
    ),
    "an empty axis between others": Case(
        lambda x: (
            x.sum(1), x.prod(1), x.any(1), x.flip(0, 2), x.to(torch.complex64).transpose(0, 2).reshape(0),
            x.transpose(0, 2).contiguous() * 2, x.sum((0, 2)),
        ),
        lambda: (torch.empty(4, 0, 5),),
    ),
    "softmax of infinities": Case(
        lambda x: (
            x.softmax(-1), x.log_softmax(-1), torch.logsumexp(x, -1), (x * -1e14).softmax(-1), x.logcumsumexp(-1),
        ),
        tensors([[-INF, -INF], [0.0, -INF], [INF, 0.0], [1000.0, 999.0]]),
    ),
    "attention with everything masked": Case(
        lambda q, k, m: (
            F.scaled_dot_product_attention(q, k, k, attn_mask=m), (q @ k.mT).masked_fill(~m, -INF).softmax(-1),
        ),
        lambda: (torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.tensor([[False, False], [True, False]])),
    ),
    "variance": Case(
        lambda x: (
            x.var(1), x.var(1, correction=0), x.std(1), torch.var_mean(x, 1, correction=2), F.layer_norm(x, [1]),
            (x * 1e5 + torch.tensor([[0.0, 1.0, 2.0]])).var(1), torch.tensor([1e30, -1e30, 1e30]).std(),
        ),
        tensors([[2.0], [3.0]]),
    ),
    "variance far from zero": Case(
        # eager's layer_norm is off by more than the tolerance at 1e4
        lambda x: (x.var(1), x.std(0), F.layer_norm(x - 9900, (64,)), torch.var_mean(x), x.mean(1)),
        lambda: (torch.randn(8, 64, generator=torch.Generator().manual_seed(0)) + 1e4,),
    ),
    "norms": Case(
        lambda x: (
            x.norm(), x.norm(1), x.norm(INF, dim=0), x.norm(-INF), x.norm(0, dim=1), torch.linalg.vector_norm(x, 3),
            F.normalize(x), x.abs().sum(1), x.renorm(2, 0, 1.0), torch.cdist(x, x),
        ),
        tensors([[3.0, -4.0], [0.0, 0.0], [1e-3, 1.0]]),
    ),
    "nan among the reduced": Case(
        lambda x: (x.sum(), x.mean(1), x.prod(0), x.var(), x.softmax(1), x.cumsum(1), x.cumprod(0), x.any(1), x.all(0)),
        tensors([[1.0, NAN, 0.0], [0.0, 2.0, 3.0]]),
    ),
    "long reductions": Case(
        lambda x: (x.sum(), x.mean(0), x.amax(1), x.argmax(0), x.var(1), x.softmax(0), x.cumsum(1), x.logsumexp(1)),
        lambda: (torch.randn(7, 5000, generator=torch.Generator().manual_seed(1)),),
    ),
    "reduction of a transposed and of an expanded tensor": Case(
        lambda x: (
            x.t().sum(0), x.t().softmax(0), x[:, None].expand(-1, 4, -1).sum(1), x.t().cumsum(1), x.t().argmax(1),
        ),
        lambda: (torch.randn(9, 33, generator=torch.Generator().manual_seed(2)),),
    ),
}  # fmt: skip


@parametrized(CASES)
def test_reductions(case: Case, dynamic: bool) -> None:
    check(case, dynamic)


def test_a_correction_may_be_a_symbol() -> None:
    """A number that a function takes from outside is a symbol under `dynamic=True`, whatever op it goes to."""
    x = torch.arange(40.0).view(5, 8).sqrt()

    def of(correction: int) -> Callable[[torch.Tensor], tuple[torch.Tensor, ...]]:
        return lambda x: (x.var(-1, correction=correction), x.std(0, correction=correction), x.mean(-1))

    run = torch.compile(lambda x, n: of(n)(x), backend="inductile", dynamic=True, fullgraph=True)
    for correction in (1, 2, 5):
        torch.testing.assert_close(run(x, correction), of(correction)(x), equal_nan=True)


def test_sums_of_a_long_scan_are_kept_in_double() -> None:
    """Rounding errors of a thousand steps would add up; eager's kernels for the CPU carry float64."""
    x = torch.randn(4, 4000, generator=torch.Generator().manual_seed(3))
    exact = x.double().logcumsumexp(1)
    got = torch.compile(lambda x: x.logcumsumexp(1), backend="inductile")(x)
    eager = (x.logcumsumexp(1) - exact).abs().max()
    assert (got - exact).abs().max() <= 3 * eager
