"""Inputs that are the negative or the conjugate of what their memory holds, in every combination with compiles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._dynamo.utils import counters

from inductile.backends.host.copies import log

from .. import eager_compare
from .catalogue import Case, Cases, check, parametrized

COPIED = "inputs copied for their negative or conjugate bit"


def complexes(*shape: int, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(len(shape)))


def negative(*shape: int, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    """Strides 2, and the negative bit."""
    tensor = complexes(*shape, dtype=dtype).conj().imag
    assert tensor.is_neg()
    return tensor


def add_to_first(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return x * y


def write_through_a_view(x: torch.Tensor) -> torch.Tensor:
    return x[1:].mul_(3)


def write_to_complex(z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    z.mul_(2j)
    return z.abs(), torch.view_as_real(z.resolve_conj()) + 1


CASES: Cases = {
    "negative": Case(lambda x: (x * 2, x.sum(), x.abs()), lambda: (negative(4),)),
    "negative in double": Case(lambda x: x * 2, lambda: (negative(3, dtype=torch.complex128),)),
    "negative in half": Case(lambda x: x * 2, lambda: (negative(3, dtype=torch.complex32),)),
    "negative, transposed": Case(lambda x: x.sum(0) + x[0], lambda: (negative(4, 4).T,)),
    "negative, 0-d": Case(lambda x: x + 1, lambda: (negative(),)),
    "negative, of no elements": Case(lambda x: (x + 1, x.sum()), lambda: (negative(0),)),
    "negative, expanded": Case(lambda x: x + 1, lambda: (negative(1).expand(5),)),
    "negative, windows": Case(lambda x: x.sum(1), lambda: (negative(6).unfold(0, 3, 1),)),
    "negative and written": Case(add_to_first, lambda: (negative(4), torch.randn(4))),
    "read beside a written one": Case(add_to_first, lambda: (torch.randn(4), negative(4))),
    "written through a view": Case(write_through_a_view, lambda: (negative(4),)),
    "returned views": Case(lambda x: (x[1:], x.T, x * 2), lambda: (negative(4, 4),)),
    "negative of a negative": Case(
        lambda x: (torch.ops.aten._neg_view(x) * 3, x.resolve_neg() + 1), lambda: (negative(4),)
    ),
    "bits that are asked for": Case(lambda x: x + 1 if x.is_neg() else x - 1, lambda: (negative(4),)),
    "parts of a conjugate": Case(lambda z: (z.real * 2, z.imag * 2, z.abs()), lambda: (complexes(4).conj(),)),
    "resolved conjugate as pairs": Case(
        lambda z: torch.view_as_real(z.resolve_conj()).exp(), lambda: (complexes(4).conj(),)
    ),
    "written conjugate": Case(write_to_complex, lambda: (complexes(4).conj(),)),
    "conjugate with the negative bit": Case(
        lambda z: (z + 1, z.imag * 2), lambda: (torch.ops.aten._neg_view(complexes(4).conj()),)
    ),
    "made inside": Case(
        lambda z: ((z * z).conj().imag.exp(), torch.ops.aten._neg_view(z.real) * 2, z.conj()), lambda: (complexes(4),)
    ),
}


@parametrized(CASES)
def test_case(case: Case, dynamic: bool) -> None:
    check(case, dynamic)


PAIRS = {
    "plain, then negative": (lambda: torch.randn(8)[::2], lambda: negative(4)),
    "negative, then plain": (lambda: negative(4), lambda: torch.randn(8)[::2]),
    "plain, then conjugate": (lambda: complexes(4), lambda: complexes(4).conj()),
    "conjugate, then plain": (lambda: complexes(4).conj(), lambda: complexes(4)),
}


@pytest.mark.rotates(2, each="first")
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("first, second", PAIRS.values(), ids=PAIRS)
def test_the_bit_of_a_later_call_counts(
    first: Callable[[], torch.Tensor], second: Callable[[], torch.Tensor], training: bool, dynamic: bool
) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (torch.view_as_real(x.resolve_conj()) if x.is_complex() else x).sin() * 2

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="inductile", dynamic=dynamic)
    for make in (first, second, first):
        x = make().requires_grad_(training)
        expected, got = function(x), compiled(x)
        torch.testing.assert_close(got, expected)
        if training:
            seed = torch.ones_like(expected)
            torch.testing.assert_close(torch.autograd.grad(got, x, seed), torch.autograd.grad(expected, x, seed))


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_gradients_that_arrive_with_the_bit(dynamic: bool) -> None:
    """Nothing guards the bits of what autograd hands to a backward graph: the check at its entry does."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin() * x

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="inductile", dynamic=dynamic)
    x = torch.randn(4, requires_grad=True)
    dense = torch.ops.aten._neg_view(torch.randn(4))  # AOTAutograd makes others contiguous, which takes the bit away
    for gradient, copies in ((torch.randn(4), 0), (negative(4), 0), (dense, 1)):
        (expected,) = torch.autograd.grad(function(x), x, gradient)
        counters.clear()
        (got,) = torch.autograd.grad(compiled(x), x, gradient)
        torch.testing.assert_close(got, expected)
        assert counters["inductile"][COPIED] == copies


def test_gradients_through_complex_numbers_outside() -> None:
    def outside(f: Callable[..., torch.Tensor]) -> Callable[..., tuple[torch.Tensor, ...]]:
        def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y = f(x)
            z = torch.complex(y, y.cos()).conj() * (1 + 2j)
            return torch.autograd.grad(z.imag.sum() + z.abs().sum(), x)

        return run

    x = torch.randn(4, requires_grad=True)
    assert not eager_compare.compare(lambda x: x.sin() * x, (x,), around=outside)


@torch.library.custom_op("inductile_lazy_bits::negated", mutates_args=())
def negated(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x, -x).conj().imag


@negated.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x, -x).conj().imag


def test_a_custom_operator_may_return_the_bit() -> None:
    assert not eager_compare.compare(lambda x: (negated(x).exp(), negated(x)), (torch.randn(4),))


def test_a_buffer_that_is_exchanged() -> None:
    module = torch.nn.Module()
    module.register_buffer("held", torch.randn(8)[::2])
    module.forward = lambda x: x * module.held  # pyright: ignore
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="inductile")
    x = torch.randn(4)
    for held in (torch.randn(8)[::2], negative(4), torch.randn(8)[::2]):
        module.held = held
        torch.testing.assert_close(compiled(x), module(x))


def test_copies_are_counted_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(log, "warning", lambda message, *values: told.append(message % values))
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, y: x * y + 1, backend="inductile")
    counters.clear()
    for _ in range(3):
        compiled(torch.randn(4), negative(4))
    assert counters["inductile"][COPIED] == 3
    assert len(told) == 1
    assert told[0].startswith("forward copies its inputs [1] in each call")


def test_gradient_through_a_complex_number() -> None:
    """Autograd's formulas take the conjugate of the number."""
    z = complexes(5).requires_grad_()
    product, quotient = torch.compile(lambda z: (z * (2 + 3j), (1 - 2j) / z), backend="inductile")(z)
    (gradient,) = torch.autograd.grad((product.abs() + quotient.abs()).sum(), z)
    (expected,) = torch.autograd.grad(((z * (2 + 3j)).abs() + ((1 - 2j) / z).abs()).sum(), z)
    torch.testing.assert_close(gradient, expected)
