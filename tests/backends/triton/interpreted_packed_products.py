"""Products of several rows with weights of 4 bits, unpacked where units read them, in both interpreters."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.lowering.pipeline import pipeline_string

from .products import Tensor, kernels_for_gpu

#: small tiles, which leave something over
SMALL = {
    "loop_products": True,
    "pipeline": pipeline_string().replace(
        "kernel-map-products", "kernel-map-products{tile-columns=16 tile-depth=16 warps=1 stages=1}"
    ),
}


def neighbours(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """Two numbers a byte stand side by side."""
    numbers = torch.stack([weight & 15, weight >> 4], -1).view(*scales.shape, -1)
    return torch.nn.functional.linear(x, ((numbers.to(x.dtype) - 8) * scales[:, :, None]).view(len(weight), -1))


def halves(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """They stand half a row apart."""
    numbers = torch.cat([weight & 15, weight >> 4], -1).view(*scales.shape, -1)
    return torch.nn.functional.linear(x, ((numbers.to(x.dtype) - 8) * scales[:, :, None]).view(len(weight), -1))


def scaled(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """Numbers of 8 bits with scales of groups."""
    numbers = weight.view(torch.int8).view(*scales.shape, -1)
    return torch.nn.functional.linear(x, (numbers.to(x.dtype) * scales[:, :, None]).view(len(weight), -1))


@pytest.mark.parametrize("rows", [2, 5, 8])
@pytest.mark.parametrize("function", [neighbours, halves, scaled])
def test_rows(function: Callable[..., Tensor], rows: int) -> None:
    torch.manual_seed(0)
    depth, columns, groups = 320, 40, 5
    size = depth if function is scaled else depth // 2
    x = torch.randn(rows, depth).bfloat16()
    inputs = [x, torch.randint(0, 256, (columns, size), dtype=torch.uint8), torch.rand(columns, groups).bfloat16()]
    module, given, sources = kernels_for_gpu(function, inputs, SMALL)
    (source,) = [each for each in sources if "tl.dot(" in each]
    assert source.count("tl.dot(") == (1 if function is scaled else 2)
    exact = function(*(each.double() if each.is_floating_point() else each for each in inputs))
    for run in (build(module), lambda given: run_module(module, given)):
        (got,) = run(list(given))
        assert got.shape == (rows, columns) and (got.double() - exact).norm() <= 8e-3 * exact.norm()


@pytest.mark.parametrize("depth", [256, 320])
def test_one_row(depth: int) -> None:
    """A program multiplies several rows of the weight with the vector, which it reads once."""
    torch.manual_seed(0)
    columns = 1280
    weight = torch.randint(0, 256, (columns, depth // 2), dtype=torch.uint8)
    inputs = [torch.randn(1, depth).bfloat16(), weight, torch.rand(columns, depth // 64).bfloat16()]
    module, given, sources = kernels_for_gpu(neighbours, inputs, {"overlap_launches": True})
    assert any("tl.arange(0, BLOCK_I0)[:, None]" in each for each in sources)
    exact = neighbours(*(each.double() if each.is_floating_point() else each for each in inputs))
    for run in (build(module), lambda given: run_module(module, given)):
        (got,) = run(list(given))
        assert got.shape == (1, columns) and (got.double() - exact).norm() <= 8e-3 * exact.norm()


def normed(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """The vector is normalised first."""
    wide = x if x.dtype is torch.float64 else x.float()
    return neighbours((wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype), weight, scales)


@pytest.mark.parametrize("function", [normed, halves, scaled])
def test_one_row_of_many_kinds(function: Callable[..., Tensor]) -> None:
    """Rows share a program; a norm is computed where its product is."""
    torch.manual_seed(0)
    depth, columns = 256, 1280
    size = depth if function is scaled else depth // 2
    weight = torch.randint(0, 256, (columns, size), dtype=torch.uint8)
    inputs = [torch.randn(1, depth).bfloat16(), weight, torch.rand(columns, depth // 64).bfloat16()]
    module, given, sources = kernels_for_gpu(function, inputs, {"overlap_launches": True})
    (source,) = [each for each in sources if "tl.arange(0, BLOCK_I0)[:, None]" in each]
    assert ("rsqrt" in source) == (function is normed)
    exact = function(*(each.double() if each.is_floating_point() else each for each in inputs))
    for run in (build(module), lambda given: run_module(module, given)):
        (got,) = run(list(given))
        assert (got.double() - exact).norm() <= 8e-3 * exact.norm()


def across(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """Numbers of 8 bits that lie along the columns."""
    return torch.mm(x, weight.view(torch.int8).view(x.shape[1], -1).to(x.dtype)) * scales[:, 0]


@pytest.mark.parametrize("function", [neighbours, halves, scaled, across])
def test_no_copy_of_a_weight_of_many_rows(function: Callable[..., Tensor]) -> None:
    torch.manual_seed(0)
    rows, depth, columns, groups = 133, 320, 40, 5
    size = depth if function in (scaled, across) else depth // 2
    x = torch.randn(rows, depth).bfloat16()
    inputs = [x, torch.randint(0, 256, (columns, size), dtype=torch.uint8), torch.rand(columns, groups).bfloat16()]
    options = {"dequantised_copies": "never"}
    module, given, (source,) = kernels_for_gpu(function, inputs, options)
    assert "tl.dot(" in source
    exact = function(*(each.double() if each.is_floating_point() else each for each in inputs))
    for run in (build(module), lambda given: run_module(module, given)):
        (got,) = run(list(given))
        assert (got.double() - exact).norm() <= 8e-3 * exact.norm()
    _, _, sources = kernels_for_gpu(function, inputs, {})
    assert not any("tl.dot(" in each for each in sources)
