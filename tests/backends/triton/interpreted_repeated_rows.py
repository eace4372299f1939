"""Vectors that are normalised in the kernel of the product that reads them, in both interpreters."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.host import build
from inductile.backends.reference import run_module

from .products import Tensor, kernels_for_gpu


def normalised(x: Tensor, scale: Tensor) -> Tensor:
    """As Llama does."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * scale


def product(x: Tensor, other: Tensor, scale: Tensor, weight: Tensor, next_weight: Tensor) -> Tensor:
    """A residual, its norm, and a product with a gate."""
    x = x + torch.nn.functional.linear(other, next_weight)
    gate, up = torch.nn.functional.linear(normalised(x, scale), weight).chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("columns", [64, 72])
@pytest.mark.parametrize("overlap", [False, True])
def test_norm(dtype: torch.dtype, columns: int, overlap: bool) -> None:
    """With launches that overlap each kernel loads its weight, in front of its wait."""
    torch.manual_seed(0)
    sizes = ((1, columns), (1, columns), (columns,), (1280, columns), (columns, columns))
    inputs = [torch.randn(size).to(dtype) for size in sizes]
    module, given, sources = kernels_for_gpu(product, inputs, {"overlap_launches": overlap})
    assert len(sources) == 2
    for source in sources:
        front, wait, _ = source.partition("nvidia.await_launches()")
        assert bool(wait) is overlap and (not overlap or front.count("tl.load(") >= 1)
    exact = product(*(each.double() for each in inputs))
    allowed = 2 * (product(*inputs).double() - exact).norm()
    for run in (build(module), lambda given: run_module(module, given)):
        (got,) = run(list(given))
        assert got.dtype == dtype and (got.double() - exact).norm() <= allowed


def of_bytes(x: Tensor, scale: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """A product with a weight of 8 bits, of a vector that is normalised."""
    return torch.nn.functional.linear(normalised(x, scale), weight.to(x.dtype)) * scales


def test_norm_of_bytes() -> None:
    """The weight waits in registers while the vector, which all rows of a program share, is normalised."""
    torch.manual_seed(0)
    columns, rows = 64, 1280
    x, scale, scales = (torch.randn(size).bfloat16() for size in ((1, columns), (columns,), (rows,)))
    inputs = [x, scale, torch.randint(-127, 128, (rows, columns), dtype=torch.int8), scales]
    module, given, sources = kernels_for_gpu(of_bytes, inputs, {"overlap_launches": True})
    assert any("tl.reshape(" in each for each in sources)
    exact = of_bytes(*(each.double() if each.is_floating_point() else each for each in inputs))
    allowed = 2 * (of_bytes(*inputs).double() - exact).norm()
    for run in (build(module), lambda given: run_module(module, given)):
        (got,) = run(list(given))
        assert (got.double() - exact).norm() <= allowed
