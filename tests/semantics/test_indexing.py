"""Reading and writing at computed indices: negative, repeated, out of range."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from .catalogue import Case, Cases, check, parametrized, tensors

Tensor = torch.Tensor


def accumulate(x: Tensor, i: Tensor, v: Tensor) -> Any:
    a = x.clone()
    a.index_put_((i,), v, accumulate=True)
    b = x.clone()
    b[i] += v
    return a, b, x.index_add(0, i, v), x[-i - 1], x.scatter_add(0, i, v), x.scatter_reduce(0, i, v, "amax")


def sums_added(x: Tensor, i: Tensor, v: Tensor) -> Any:
    sums = torch.zeros_like(x).index_add(0, i, v)
    twice = torch.zeros_like(x).index_add(0, i, v) + torch.zeros_like(x).index_add(0, i + 1, -v)
    shared = torch.zeros_like(x).index_put((i,), v, accumulate=True)
    return x + sums, x.neg() + torch.zeros_like(x).index_add(0, i, v), twice, shared, shared + x


def advanced(x: Tensor, i: Tensor, j: Tensor) -> Any:
    return x[i], x[:, i], x[i, j], x[i[:, None], j], x[..., i], x[i, :, j], x[None, i], x[-1], x[:, -2:, i]


def masked(x: Tensor, m: Tensor) -> Any:
    y = x.clone()
    y[m] = 7.0
    return y, torch.where(m, x, -x), x.masked_fill(m, -1), x.masked_scatter(m, x * 2), x * m


def scattered(x: Tensor, i: Tensor) -> Any:
    src = torch.arange(6.0).reshape(2, 3) + 10
    return (
        x.scatter(0, i, src), x.scatter(1, i.clamp(max=1), 5.0), x.gather(0, i),
        x.scatter(0, i, src, reduce="multiply"),
        x.index_select(0, i[0]), x.index_fill(0, i[0], 9.0), x.index_copy(0, torch.tensor([2, 0]), src), x.take(i),
        x.scatter_reduce(0, i, src, "mean", include_self=False), x.index_reduce(0, torch.tensor([1, 1]), src, "prod"),
    )  # fmt: skip


def slices(x: Tensor) -> Any:
    y = x.clone()
    y[::2, 1:] = -1.0
    y[-1] = y[0] * 2
    return (
        y, x[1:-1], x[::2], x[-2:], x[5:], x[:100], x.narrow(0, 1, 2), x.select(1, -1), x.diagonal(1), x.tril(-1),
        x.triu(1), x.roll((1, -1), (0, 1)), x.flip(0), x.rot90(), x.unfold(1, 2, 1), torch.diag(x[0]), x.tile(2, 1),
        x.repeat_interleave(2, 0), torch.stack([x, x], 1), torch.cat([x, x[:1], x[:0]]), torch.block_diag(x, x[:1]),
    )  # fmt: skip


def single(x: Tensor, s: Tensor, i: Tensor) -> Any:
    zero = torch.tensor(0)
    return (
        s.index_select(0, i), s.index_fill(0, i, 2.0), s.index_add(0, i, torch.ones(1)), x.index_select(0, zero),
        x.index_copy(0, zero, x[1]), x[zero], s.gather(0, zero), s.scatter(0, zero, 3.0), s.flip(0),
        x.index_fill(1, zero, 0.0),
    )  # fmt: skip


def _cube() -> tuple[Tensor, ...]:
    return torch.arange(60.0).reshape(3, 4, 5), torch.tensor([0, -1, 2]), torch.tensor([1, 1, -3])


def _ones() -> tuple[Tensor, Tensor]:
    return torch.zeros(64, dtype=torch.int64), torch.ones(64)


CASES: Cases = {
    "repeated indices": Case(accumulate, tensors([0.0, 0.0, 0.0], [0, 0, 2], [1.0, 2.0, 3.0])),
    "sums at places are added": Case(
        sums_added,
        tensors([-0.0, 0.0, -0.0, float("nan"), float("inf"), 1.5], [0, 0, 2, 4], [1.0, -1.0, -0.0, 3.0]),
    ),
    "sums of integers at places are added": Case(sums_added, tensors([1, 2, 3, 4, 5, 6], [0, 0, 2, 4], [1, -1, 7, 3])),
    "small sums at a place are added to a large number": Case(
        lambda x, i, v: x + torch.zeros_like(x).index_add(0, i, v), lambda: (torch.full((2,), 2.0**24), *_ones())
    ),
    "lists of positions": Case(advanced, lambda: (_cube()[0], torch.tensor([0, -1, 2]), torch.tensor([1, 1, -3]))),
    "masks": Case(masked, tensors([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]])),
    "scatter and gather": Case(
        scattered, lambda: (torch.arange(9.0).reshape(3, 3), torch.tensor([[0, 2, 1], [1, 0, 0]]))
    ),
    "slices": Case(slices, lambda: (torch.arange(16.0).reshape(4, 4),)),
    "one number": Case(single, lambda: (torch.arange(6.0).reshape(2, 3), torch.tensor(5.0), torch.tensor([0]))),
    "no positions": Case(
        lambda x, i: (
            x[i], x.index_select(0, i), x.index_add(0, i, x[i]), x.index_fill(0, i, 1.0), x.gather(1, x[:0].long()),
        ),
        lambda: (torch.arange(6.0).reshape(2, 3), torch.empty(0, dtype=torch.int64)),
    ),
    "index out of range raises": Case(lambda x, i: x[i], tensors([1.0, 2.0], [0, 2])),
    "gather out of range raises": Case(lambda x, i: x.gather(0, i) + 1, tensors([1.0, 2.0], [0, -1])),
    "embedding out of range raises": Case(
        lambda w, i: torch.nn.functional.embedding(i, w), tensors([[1.0], [2.0]], [0, 5])
    ),
    "write out of range raises": Case(lambda x, i: x.index_put((i,), x[:1]), tensors([1.0, 2.0], [-3])),
    "indices computed in floating point": Case(
        lambda x: (
            F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 13)), F.adaptive_max_pool2d(x, 3),
            F.interpolate(x, scale_factor=1.5, mode="nearest-exact"), F.interpolate(x, scale_factor=3, mode="bilinear"),
            x[..., (torch.arange(8) * 0.5).long()], x[..., (torch.arange(4) * -0.9).long()],
            x.index_put((torch.zeros(4).long(), (torch.arange(4) * 0.5).long()), x[0, 0, 0, 0] * 2),
        ),
        lambda: (torch.randn(2, 3, 4, 7, generator=torch.Generator().manual_seed(0)),),
    ),
    "the order of writes": Case(
        lambda x, i, v: (x.index_put((i,), v), x.scatter(0, i, v), x.index_copy(0, i, v)),
        tensors([0.0, 0.0, 0.0], [1, 1, 1, 0], [1.0, 2.0, 3.0, 4.0]),
    ),
    "integers and bools accumulate": Case(
        lambda i: (
            torch.zeros(4, dtype=torch.int64).index_add(0, i, i), torch.bincount(i, minlength=5),
            torch.zeros(4, dtype=torch.uint8).scatter_add(0, i, torch.full_like(i, 200, dtype=torch.uint8)),
            torch.zeros(4, dtype=torch.bool).scatter(0, i, True), torch.nn.functional.one_hot(i, 4),
        ),
        tensors([3, 0, 3, 1]),
    ),
    "searches": Case(
        lambda x: (
            torch.searchsorted(torch.tensor([0.0, 1.0, 2.0]), x),
            torch.bucketize(x, torch.tensor([0.0, 1.0]), right=True),
            x.sort(descending=True).values, x.topk(2).values, x.kthvalue(2).values, x.median(),
        ),
        tensors([0.5, -1.0, 1.0, 5.0]),
    ),
    "pixels of few channels in the opposite order": Case(
        lambda b, c, f: (
            b.flip(3), b.flip(2), b[:, :, :, 1::2].clone(), c.flip(3), c.flip(2, 3), c.flip(3).contiguous(),
            f.flip(0), f.flip(0, 1), f[::3].clone(), f.flip(0) * 2,
        ),
        lambda: (
            torch.arange(2 * 5 * 33 * 3).to(torch.uint8).view(2, 5, 33, 3).permute(0, 3, 1, 2),
            torch.arange(2 * 5 * 70 * 4).to(torch.int16).view(2, 5, 70, 4).permute(0, 3, 1, 2),
            torch.arange(2 * 200.0).view(200, 2),
        ),
    ),
}  # fmt: skip


@parametrized(CASES)
def test_indexing(case: Case, dynamic: bool) -> None:
    check(case, dynamic)
