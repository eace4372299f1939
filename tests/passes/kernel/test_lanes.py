"""Lanes whose ends run by themselves, and lanes along quotients, compute what eager does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F


def _resize(mode: str, scale: float, align: bool | None = None) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.sigmoid(F.interpolate(x, scale_factor=scale, mode=mode, align_corners=align)) * 2


def _last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _bordered(x: torch.Tensor) -> torch.Tensor:
    """Pieces are copied over others of the same tensor, apart and, in the end, overlapping."""
    x = x.clone()
    x[:, :, 0] = x[:, :, -1]
    x[..., -3:] = x[..., 2:5].flip(-1)
    x[:, 1:, 1] = x[:, :-1, 1].clone()
    return x


CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nearest by 2": _resize("nearest", 2),
    "nearest by 3": _resize("nearest", 3),
    "bilinear by 2": _resize("bilinear", 2),
    "bilinear by 2, corners": _resize("bilinear", 2, True),
    "bilinear by 3": _resize("bilinear", 3),
    "bilinear by 1.5": _resize("bilinear", 1.5),
    "bilinear by 1/2": _resize("bilinear", 0.5),
    "bicubic by 2": _resize("bicubic", 2),
    "reflection": lambda x: F.pad(x, (3, 5, 2, 1), mode="reflect") + 1,
    "replication": lambda x: F.pad(x, (9, 2, 0, 3), mode="replicate") + 1,
    "roll": lambda x: torch.roll(x, 5, -1) * 2,
    "circular": lambda x: F.pad(x, (1, 2, 3, 1), mode="circular") + 1,
    "circular volume": lambda x: F.pad(x, (2, 1, 1, 2, 1, 1), mode="circular") + 1,
    "rows of a border copied": lambda x: _bordered(x) + 1,
    "constant": lambda x: F.pad(x, (1, 2, 3, 1)) + 1,
    "replication by one": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate") + 1,
    "repeat": lambda x: x.repeat(1, 1, 2, 2) * 2,
    "average of channels last": lambda x: F.avg_pool2d(_last(x), 3, 1, 1) * 2,
    "maximum of channels last": lambda x: F.max_pool2d(_last(x), 3, 2, 1) * 2,
    "maximum of not a number": lambda x: F.max_pool2d(x.sqrt(), 3, 1, 1) * 2,
    "maximum of 16 bits": lambda x: F.max_pool2d(x.bfloat16(), 2) * 2,
    "maximum of rows": lambda x: F.max_pool1d(x[0], 3, 2, 1) * 2,
    "depthwise": lambda x: F.conv2d(x, x.new_ones(3, 1, 3, 3) / 7, padding=1, groups=3) * 2,
    "rows and columns": lambda x: (x[0] * 2).sum(-1).sum(0) + (x[..., :13] * x[..., :13].mT).sum(-1).sum(),
    "blocks of eight": lambda x: x[:, :, :8, :40].unflatten(-1, (5, 8)).amax((2, 4)),
    "repeated": lambda x: x.repeat_interleave(2, -1) + 1,
}


@pytest.mark.rotates(2)
@pytest.mark.parametrize("case", CASES)
def test_equals_eager(case: str) -> None:
    x = torch.randn(2, 3, 13, 41, generator=torch.Generator().manual_seed(0))
    torch._dynamo.reset()
    compiled = torch.compile(CASES[case], backend="inductile", dynamic=False)
    torch.testing.assert_close(compiled(x), CASES[case](x), rtol=2e-6, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_pixels(dtype: torch.dtype) -> None:
    """Images with the channels inside: what bounds a pixel bounds its bytes."""
    x = torch.randint(0, 256, (2, 9, 37, 3), generator=torch.Generator().manual_seed(0)).to(dtype)

    def moved(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        padded = F.pad(x, (0, 0, 2, 5, 1, 3)), F.pad(x.flip(2), (0, 0, 4, 1)), F.pad(x, (0, 0, -3, 2))
        return *padded, torch.cat((x, x[:, :, 5:] + 1), 2), x.roll(7, 2), F.pad(x, (1, 2, 3, 4))

    torch._dynamo.reset()
    got = torch.compile(moved, backend="inductile", dynamic=False)(x)
    for ours, eager in zip(got, moved(x), strict=True):
        torch.testing.assert_close(ours, eager, rtol=0, atol=0)


def test_gradients_of_an_outer_product() -> None:
    """One sum goes along the rows of what both need, the other one across."""
    x, y = (torch.randn(5, 24, generator=torch.Generator().manual_seed(k), requires_grad=True) for k in (0, 1))
    weight = torch.randn(5, 24, 24, generator=torch.Generator().manual_seed(2))

    def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x[:, :, None] * y[:, None] * weight).sum()

    torch._dynamo.reset()
    got = torch.autograd.grad(torch.compile(outer, backend="inductile", dynamic=False)(x, y), (x, y))
    for ours, eager in zip(got, torch.autograd.grad(outer(x, y), (x, y)), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-5)


def test_linear_interpolation_backward() -> None:
    """Gradients that meet are added in order, in every row."""
    x = torch.randn(3, 40, 33, generator=torch.Generator().manual_seed(0), requires_grad=True)

    def resized(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=2, mode="linear").square().sum()

    torch._dynamo.reset()
    (got,) = torch.autograd.grad(torch.compile(resized, backend="inductile", dynamic=False)(x), x)
    torch.testing.assert_close(got, torch.autograd.grad(resized(x), x)[0], rtol=1e-5, atol=1e-5)


def test_rows_of_tables() -> None:
    """All lanes share an index; one that is outside is an error, wherever it stands."""
    table, which = torch.randn(7, 33), torch.tensor([6, 0, 3, 3, 5, 1])
    at_ends = torch.tensor([-1, 2, -7, 0, 6, 4])
    bags = torch.tensor([0, 2, 2, 5])

    def rows(table: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> tuple[torch.Tensor, ...]:
        looked_up = F.embedding(i, table) + table[j]
        return looked_up, table.index_select(0, i) * 2, F.embedding_bag(i, table, bags, mode="sum"), table[i].sum(1)

    torch._dynamo.reset()
    compiled = torch.compile(rows, backend="inductile", dynamic=False)
    torch.testing.assert_close(compiled(table, which, at_ends), rows(table, which, at_ends))
    for bad in (7, -1):
        with pytest.raises(IndexError):
            compiled(table, torch.tensor([6, 0, bad, 3, 5, 1]), at_ends)
    none = torch.empty(0, 33)
    with pytest.raises((IndexError, RuntimeError)):
        torch.compile(lambda x, i: F.embedding(i, x), backend="inductile", dynamic=False)(none, which)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("last", [False, True])
def test_places_of_maxima(dtype: torch.dtype, last: bool) -> None:
    """Ties, infinities, NaNs, and windows that begin outside: places are eager's."""
    x = torch.randint(-2, 3, (1, 2, 9, 21), generator=torch.Generator().manual_seed(0)).to(dtype)
    x[0, 0, :3, :5] = float("-inf")
    x[0, 1, :, -4:] = float("-inf")
    x[0, 0, 7, 9] = x[0, 0, 8, 10] = x[0, 1, 0, 0] = float("nan")  # two of them in a window: the last one counts
    x = _last(x) if last else x

    def places(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        padded = F.max_pool2d(x, 3, 2, 1, return_indices=True)
        dilated = F.max_pool2d(x, (2, 3), 1, (0, 1), dilation=2, return_indices=True)
        whole = F.max_pool2d(x, 2, ceil_mode=True, return_indices=True)
        return *padded, *dilated, *whole, *F.max_pool1d(x[0].flatten(1), 5, 2, 2, return_indices=True)

    torch._dynamo.reset()
    got, want = torch.compile(places, backend="inductile", dynamic=False)(x), places(x)
    for ours, eager in zip(got, want, strict=True):
        torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
