"""Scans as a GPU runs them, in Triton's interpreter, against eager: along rows and columns, with what follows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from inductile.passes.kernel.gpu_blocks import GpuBlocks

from .interpreted_training import Interpreted

Function = Callable[[torch.Tensor], object]

#: along dimension `d`; what is behind a scan is done in its loop
SCANS: dict[str, Callable[[torch.Tensor, int], object]] = {
    "sum": lambda x, d: x.cumsum(d),
    "product": lambda x, d: (1 + x / 64).cumprod(d),
    "maximum and its place": lambda x, d: x.cummax(d),
    "minimum and its place": lambda x, d: x.cummin(d),
    "logarithm of a sum": lambda x, d: x.float().logcumsumexp(d),
    "before and behind": lambda x, d: ((y := x * 2 + 1), y.cumsum(d), y.cumsum(d) - y),
    "of a scan": lambda x, d: (x.cumsum(d) * 2).cumsum(d),
    "two of one input": lambda x, d: x.cumsum(d) + (x * x).cumsum(d),
    "backwards": lambda x, d: x.flip(d).cumsum(d).flip(d),
    "divided by its maximum": lambda x, d: (y := x.abs().cumsum(d)) / (1 + y.amax(d, keepdim=True)),
}
#: shapes and dimension: sizes that tiles do not divide, nothing, one, several axes outside and inside
SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "columns": ((37, 5), 0),
    "columns of pieces": ((3, 21, 5), 1),
    "rows": ((3, 37), -1),
    "one row": ((1, 7), 0),
    "one column": ((37, 1), 0),
    "no rows": ((0, 3), 0),
    "no columns": ((5, 0), 0),
}
#: tiles of few elements, so that rows and columns take several
SMALL = GpuBlocks(longest_row=16, step=16, least_step=16, column_step=64)


def _input(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if dtype is torch.int64:
        return torch.randint(-3, 4, shape, generator=generator)
    return torch.randn(shape, generator=generator).to(dtype)


def _check(function: Function, *inputs: torch.Tensor, dynamic: bool = False) -> str:
    torch._dynamo.reset()
    backend = Interpreted(SMALL)
    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    for x in inputs:
        rtol, atol = (2e-2, 5e-1) if x.dtype is torch.bfloat16 else (1e-4, 1e-4)
        torch.testing.assert_close(compiled(x), function(x), rtol=rtol, atol=atol, equal_nan=True)
    return backend.text


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scan", SCANS)
def test_scans(scan: str, shape: str) -> None:
    size, dim = SHAPES[shape]
    if not all(size) and scan == "divided by its maximum":
        pytest.skip("eager has no maximum of nothing")
    with torch.no_grad():
        _check(lambda x: SCANS[scan](x, dim), _input(size, torch.float32))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64])
@pytest.mark.parametrize("shape", ["columns", "rows"])
@pytest.mark.parametrize("scan", ["sum", "maximum and its place", "of a scan"])
def test_types(scan: str, shape: str, dtype: torch.dtype) -> None:
    size, dim = SHAPES[shape]
    with torch.no_grad():
        _check(lambda x: SCANS[scan](x, dim), _input(size, dtype))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("scan", SCANS)
def test_sizes_that_are_not_known(scan: str, dim: int) -> None:
    with torch.no_grad():
        inputs = [_input(size, torch.float32) for size in ((37, 5), (5, 37))]
        _check(lambda x: SCANS[scan](x, dim), *inputs, dynamic=True)


def test_running_values_stay_in_registers() -> None:
    """Nothing but the input and the result is in memory, whatever their type."""
    with torch.no_grad():
        for size, dim in ((37, 5), 0), ((2, 37), 1):
            text = _check(lambda x, dim=dim: x.cumsum(dim).exp() + x, _input(size, torch.bfloat16) / 8)
            assert "scratch" not in text and text.count("host.empty") == 1


@pytest.mark.parametrize("scan", ["sum", "product", "maximum and its place", "logarithm of a sum"])
def test_backwards_in_one_tile(scan: str) -> None:
    """Lanes lie the other way round, also those that a row does not fill."""
    with torch.no_grad():
        for size in ((3, 13), (4, 16)):
            function = lambda x: [y.flip(-1) for y in _tuple(SCANS[scan](x.flip(-1), -1))]  # noqa: E731
            text = _check(function, _input(size, torch.float32))
            assert " turned {" in text


def _tuple(found: object) -> tuple[torch.Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)  # pyright: ignore[reportReturnType]
