"""Operators and Triton kernels of the user write their arguments in place on a GPU, recorded or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductile.backends.compiled import REPORTS

triton = pytest.importorskip("triton")
tl: Any = pytest.importorskip("triton.language")
pytestmark = pytest.mark.gpu
Tensor = torch.Tensor


@torch.library.custom_op("inductile_gpu_tests::write_row", mutates_args=("cache",))
def write_row(cache: Tensor, value: Tensor, at: int) -> None:
    cache[at] = value


@triton.jit
def add_kernel(x, y, out, n, block: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton looks up annotations
    """Adds; the kernel of a user."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < n
    tl.store(out + place, tl.load(x + place, mask=inside) + tl.load(y + place, mask=inside), mask=inside)


def write_in_place(x: Tensor, cache: Tensor) -> Tensor:
    write_row(cache, x * 2, 3)
    write_row(cache[4:], x + 1, 3)
    return cache.sum(0)


def own_kernel(x: Tensor, cache: Tensor) -> Tensor:
    out = torch.empty_like(cache)
    add_kernel[(triton.cdiv(cache.numel(), 1024),)](cache, cache * 2, out, cache.numel(), block=1024)
    add_kernel[(triton.cdiv(cache.numel(), 1024),)](out, out + x, cache, cache.numel(), block=1024)
    return out + 1


@pytest.mark.parametrize("recorded", [False, True], ids=["launched", "recorded"])
@pytest.mark.parametrize("function", [write_in_place, own_kernel], ids=lambda each: each.__name__)
def test_nothing_is_copied(function: Callable[..., Any], recorded: bool) -> None:
    options: dict[str, Any] = {"triton.cudagraphs": recorded, "triton.cudagraph_or_error": recorded}
    compiled = torch.compile(function, backend="inductile", fullgraph=True, options=options)
    x, cache = torch.randn(1024, device="cuda"), torch.randn(64, 1024, device="cuda")
    expected_cache = cache.clone()
    with torch.no_grad():
        for _ in range(4):
            expected = function(x, expected_cache)
            torch.testing.assert_close(compiled(x, cache), expected)
            torch.testing.assert_close(cache, expected_cache)
    text = REPORTS[-1].sources["program.py"]
    assert "copy_(" not in text and "functional" not in str(REPORTS[-1])


def test_no_memory_for_a_copy_of_a_cache() -> None:
    compiled = torch.compile(write_in_place, backend="inductile", fullgraph=True)
    x, cache = torch.randn(1024, device="cuda"), torch.zeros(4096, 1024, device="cuda")
    with torch.no_grad():
        compiled(x, cache)
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        compiled(x, cache)
    assert torch.cuda.max_memory_allocated() - before < cache.nbytes // 2


@triton.autotune(configs=[triton.Config({"block": 64}), triton.Config({"block": 256})], key=["n"])
@triton.jit
def scale_kernel(x, out, n, factor, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiplies; which block is best is measured at the first call."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < n
    tl.store(out + place, tl.load(x + place, mask=inside) * factor, mask=inside)


def autotuned(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    scale_kernel[lambda chosen: (triton.cdiv(x.numel(), chosen["block"]),)](x + 1, out, x.numel(), 3.0)
    return out.relu()


@torch.library.triton_op("inductile_gpu_tests::scaled", mutates_args=())
def scaled(x: Tensor, factor: float) -> Tensor:
    out = torch.empty_like(x)
    wrapped = torch.library.wrap_triton(scale_kernel)
    wrapped[lambda chosen: (triton.cdiv(x.numel(), chosen["block"]),)](x, out, x.numel(), factor)
    return out


def as_operator(x: Tensor) -> Tensor:
    return scaled(x.sin(), 2.0) + x


@pytest.mark.parametrize("function", [autotuned, as_operator], ids=lambda each: each.__name__)
def test_autotuned_kernels_of_users(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function, backend="inductile", fullgraph=True)
    with torch.no_grad():
        for n in (1000, 4096):
            x = torch.randn(n, device="cuda")
            torch.testing.assert_close(compiled(x), function(x))
    assert any("scale_kernel" in name for name in REPORTS[-1].aten_calls), REPORTS[-1].aten_calls
