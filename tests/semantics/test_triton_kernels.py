"""Triton kernels of the user in compiled functions: kept, writing in place, and shown under their names.

There need be no GPU: torch is told that there is one, so that it captures kernels, a driver that knows a target alone
serves its analysis of what a kernel writes, and Triton's interpreter runs the kernels on the CPU's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import inductile
from inductile.backends.compiled import REPORTS

from ..eager_compare import clone_inputs

triton = pytest.importorskip("triton")
tl: Any = pytest.importorskip("triton.language")
Tensor = torch.Tensor


class Offline:
    """A driver without a device."""

    def get_current_target(self) -> Any:
        return triton.backends.compiler.GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        return 0


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    monkeypatch.setattr(triton.runtime.driver, "_active", Offline())
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def interpreted(kernel: Any) -> Any:
    """The kernel, whose launches are interpreted."""
    from triton.runtime.interpreter import InterpretedFunction

    inner = InterpretedFunction(kernel.fn)

    def run(*args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        own = {name: value for name, value in kwargs.items() if name in kernel.arg_names}
        inner.run(*args, grid=grid, warmup=warmup, **own)

    kernel.run = run
    return kernel


@interpreted
@triton.jit
def add_kernel(x, y, out, n, block: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton looks up annotations
    """Adds."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < n
    tl.store(out + place, tl.load(x + place, mask=inside) + tl.load(y + place, mask=inside), mask=inside)


@interpreted
@triton.jit
def reverse_kernel(x, out, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """One program after the other writes a block in reverse: wrong where both are the same memory."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < n
    tl.store(out + n - 1 - place, tl.load(x + place, mask=inside), mask=inside)


@interpreted
@triton.jit
def both_kernel(x, a, b, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    """Writes two tensors, and reads one of them again."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    inside = place < n
    tl.store(a + place, tl.load(x + place, mask=inside) * 2, mask=inside)
    tl.store(b + place, tl.load(b + place, mask=inside) + 1, mask=inside)


CONFIGS = [triton.Config({"block": 32}), triton.Config({"block": 64}, num_warps=8)]
tuned_kernel = triton.autotune(CONFIGS, key=["n"], do_bench=lambda call, quantiles: [1.0, 1.0, 1.0])(add_kernel)
chosen_kernel = triton.heuristics({"block": lambda args: 64 if args["n"] > 64 else 32})(add_kernel)


def grid_of(n: int) -> Callable[[dict[str, int]], tuple[int, ...]]:
    return lambda meta: (triton.cdiv(n, meta["block"]),)


def twice(x: Tensor, cache: Tensor) -> Any:
    out = torch.empty_like(cache)
    add_kernel[(triton.cdiv(cache.numel(), 128),)](cache, cache * 2, out, cache.numel(), block=128)
    add_kernel[(triton.cdiv(cache.numel(), 128),)](out, out + x, cache, cache.numel(), block=128)
    return out + 1


def tuned(x: Tensor, cache: Tensor) -> Any:
    tuned_kernel[grid_of(cache.numel())]((cache * x).sin(), (cache + x).cos(), cache, cache.numel())
    return cache.sum(0)


def read_and_written(x: Tensor, cache: Tensor) -> Any:
    add_kernel[grid_of(cache.numel())](cache, (cache * x).sin(), cache, cache.numel(), block=32)
    return cache.sum(0)


def chosen(x: Tensor, cache: Tensor) -> Any:
    out = torch.zeros_like(x)
    chosen_kernel[grid_of(x.numel())](x, cache[1], out, x.numel())
    return out.relu()


def part(x: Tensor, cache: Tensor) -> Any:
    add_kernel[grid_of(x.numel())](x, cache[2], cache[3], x.numel(), block=32)
    return cache[3] * 2


def own_result(x: Tensor, cache: Tensor) -> Any:
    a, b = torch.empty_like(x), x * 3
    both_kernel[grid_of(x.numel())](x, a, b, x.numel(), block=32)
    return a, b, b - a


def from_a_clone(x: Tensor, cache: Tensor) -> Any:
    y = x.clone()
    reverse_kernel[grid_of(x.numel())](y, x, x.numel(), block=8)
    return x * 2


def read_before_and_behind(x: Tensor, cache: Tensor) -> Any:
    before = cache.sum(1)
    reverse_kernel[grid_of(x.numel())](x, cache, x.numel(), block=32)
    return before, cache.sum(1)


IN_PLACE = [twice, tuned, chosen, own_result, from_a_clone, read_before_and_behind]
#: another argument may lie in the memory that is written: what is written is a copy, of the row alone in the first
BESIDE = [part, read_and_written]


def compiled_and_compared(function: Callable[..., Any], dynamic: bool | None = None, **options: Any) -> str:
    """The program's text; two calls write and return what eager's do."""
    compiled = torch.compile(function, backend="inductile", fullgraph=True, dynamic=dynamic, options=options)
    args = (torch.randn(96), torch.randn(6, 96))
    with torch.no_grad():
        for _ in range(2):
            expected_args, got_args = clone_inputs(args), clone_inputs(args)
            torch.testing.assert_close(compiled(*got_args), function(*expected_args))
            torch.testing.assert_close(got_args, expected_args)
    return REPORTS[-1].sources["program.py"]


@pytest.mark.parametrize("function", [*IN_PLACE, *BESIDE], ids=lambda each: each.__name__)
def test_kept_and_in_place(function: Callable[..., Any]) -> None:
    program = compiled_and_compared(function)
    assert "wrapper_functional" not in str(REPORTS[-1])
    assert all(name.startswith("triton::") for name in REPORTS[-1].aten_calls)
    assert function in BESIDE or "copy_(" not in program


@pytest.mark.parametrize("function", [twice, own_result], ids=lambda each: each.__name__)
def test_dynamic_sizes(function: Callable[..., Any]) -> None:
    assert "copy_(" not in compiled_and_compared(function, True)


@pytest.mark.parametrize("function", [twice, own_result], ids=lambda each: each.__name__)
def test_passes_around_kernels_can_be_checked(function: Callable[..., Any]) -> None:
    compiled_and_compared(function, verify_each="numerics")


def test_where_nothing_is_known_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch takes each argument for written where its analysis fails."""
    monkeypatch.setattr(Offline, "get_current_target", lambda self: None)
    compiled_and_compared(twice)


def test_shown_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    program = compiled_and_compared(twice)
    assert program.count("  # triton::add_kernel\n") == 2
    assert REPORTS[-1].aten_calls == {"triton::add_kernel": 2}
    explained = inductile.explain(twice)(torch.randn(96), torch.randn(6, 96))
    text = str(explained)
    assert any(line.split()[:4] == ["triton::add_kernel", "ATen", "call", "2"] for line in text.splitlines()), text
    assert "triton::add_kernel writes in place" in text
    compiled_and_compared(tuned)
    assert REPORTS[-1].aten_calls == {"triton::add_kernel": 1}


class Doubled(torch.autograd.Function):
    """A kernel in forward and in backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        out = torch.empty_like(x)
        add_kernel[grid_of(x.numel())](x, x, out, x.numel(), block=32)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradient, out = gradient.contiguous(), torch.empty_like(gradient)
        add_kernel[grid_of(gradient.numel())](gradient, gradient, out, gradient.numel(), block=32)
        return out


def test_gradients() -> None:
    x = torch.randn(4, 24, requires_grad=True)

    def function(x: Tensor) -> Tensor:
        return Doubled.apply(x.sin()).exp()  # pyright: ignore[reportReturnType]

    (wanted,) = torch.autograd.grad(function(x).sum(), x)
    before = len(REPORTS)
    result = torch.compile(function, backend="inductile", fullgraph=True)(x)
    torch.testing.assert_close(result, function(x))
    torch.testing.assert_close(torch.autograd.grad(result.sum(), x), (wanted,))
    assert [each.aten_calls for each in list(REPORTS)[before:]] == [{"triton::add_kernel": 1}] * 2
