"""Products that are turned and go to a cache in the kernel that sums them up, in both interpreters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from inductile.backends.host import build
from inductile.backends.reference import run_module

from .interpreted_repeated_rows import normalised
from .products import Tensor, kernels_for_gpu

HEADS, KEYS, HEAD, CACHE = 16, 2, 64, 8


def turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary positions."""
    left, right = x.chunk(2, -1)
    return x * cosine + torch.cat([-right, left], -1) * sine


def queries(
    x: Tensor, scale: Tensor, weight: Tensor, turns: Tensor, position: Tensor, keys: Tensor, values: Tensor
) -> Tensor:
    """What a layer of a decoder does in front of its attention."""
    found = torch.nn.functional.linear(normalised(x, scale), weight)
    q, k, v = found.view(-1, HEAD).split([HEADS, KEYS, KEYS])
    q, k = (turned(each, turns[0], turns[1]) for each in (q, k))
    keys.index_copy_(1, position, k[:, None])
    values.index_copy_(1, position, v[:, None])
    return q


def results_of(run: Callable[[list[Tensor]], Any], inputs: Sequence[Tensor]) -> list[Tensor]:
    """The result of a call, and what is in the caches behind it."""
    own = [each.clone() for each in inputs]
    caches = [each for each in own if each.shape == (KEYS, CACHE, HEAD)]
    found = run(own)
    return [*(found if isinstance(found, list | tuple) else [found]), *caches]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_turned_products(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    columns, rows = 64, (HEADS + 2 * KEYS) * HEAD
    sizes = ((1, columns), (columns,), (rows, columns), (2, HEAD))
    caches = [torch.randn(KEYS, CACHE, HEAD).to(dtype) for _ in range(2)]
    inputs = [*(torch.randn(size).to(dtype) for size in sizes), torch.tensor([5]), *caches]
    module, given, sources = kernels_for_gpu(queries, [each.clone() for each in inputs], {})
    assert len(sources) == 1
    wide = [each.double() if each.is_floating_point() else each for each in inputs]
    exact, eager = (results_of(lambda own: queries(*own), each) for each in (wide, inputs))
    for run in (build(module), lambda own: run_module(module, own)):
        for got, right, other in zip(results_of(run, given), exact, eager, strict=True):
            assert got.dtype == dtype and (got.double() - right).norm() <= 2 * (other.double() - right).norm()
