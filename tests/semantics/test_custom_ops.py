"""Operators of the user that write their arguments: they write in place where eager does, and copy nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.profiler import profile

import inductile
from inductile.backends.compiled import REPORTS

from ..eager_compare import clone_inputs

Tensor = torch.Tensor
ROWS, WIDTH = 64, 256


@torch.library.custom_op("inductile_tests::write_row", mutates_args=("cache",))
def write_row(cache: Tensor, value: Tensor, at: int) -> None:
    cache[at] = value


@torch.library.custom_op("inductile_tests::add_to_both", mutates_args=("a", "b"))
def add_to_both(a: Tensor, value: Tensor, b: Tensor | None) -> Tensor:
    a += value
    if b is not None:
        b *= 2
    return value + a.flatten()[0]


@add_to_both.register_fake
def _(a: Tensor, value: Tensor, b: Tensor | None) -> Tensor:
    return torch.empty_like(value)


@torch.library.custom_op("inductile_tests::fill_all", mutates_args=("each",))
def fill_all(each: list[Tensor], value: float) -> None:
    for tensor in each:
        tensor.fill_(value)


def once(x: Tensor, cache: Tensor) -> Any:
    write_row(cache, x * 2, 3)
    return x + 1


def read_before_and_behind(x: Tensor, cache: Tensor) -> Any:
    before = cache.sum(1)
    write_row(cache, x * 2, 3)
    return before, cache.sum(1)


def often(x: Tensor, cache: Tensor) -> Any:
    for row in range(4):
        write_row(cache, x + row, row)
        x = x + cache[row]
    return x


def views(x: Tensor, cache: Tensor) -> Any:
    write_row(cache[8:], x, 3)
    write_row(cache.view(4, -1)[:, WIDTH : 2 * WIDTH], x, 1)
    write_row(cache[:, ::2], x[::2], 5)
    write_row(cache.t(), x[:1].expand(cache.shape[0]), 7)
    return x.sin()


def several(x: Tensor, cache: Tensor) -> Any:
    own = x.new_zeros(4, WIDTH)
    result = add_to_both(cache[2:5], x, own)
    return result, own, add_to_both(own[1], x, None)


def lists(x: Tensor, cache: Tensor) -> Any:
    fill_all([cache[1], cache[4:6], x.clone()], 2.0)
    return x + cache[1]


IN_PLACE: list[Callable[..., Any]] = [once, read_before_and_behind, often, views, several, lists]


def program() -> str:
    """The text of the program compiled last."""
    return REPORTS[-1].sources["program.py"]


def compare(function: Callable[..., Any], args: tuple[Any, ...], dynamic: bool | None = None) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="inductile", fullgraph=True, dynamic=dynamic)
    for _ in range(2):
        expected_args, got_args = clone_inputs(args), clone_inputs(args)
        torch.testing.assert_close(compiled(*got_args), function(*expected_args))
        torch.testing.assert_close(got_args, expected_args)


@pytest.mark.parametrize(
    ("function", "dynamic"),
    [*((each, None) for each in IN_PLACE), (views, True), (several, True), (lists, True)],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_in_place(function: Callable[..., Any], dynamic: bool | None) -> None:
    with torch.no_grad():
        compare(function, (torch.randn(WIDTH), torch.randn(ROWS, WIDTH)), dynamic)
    assert "auto_functionalized" not in str(REPORTS[-1])
    assert "copy_(" not in program()


def made_by_operators(x: Tensor, cache: Tensor) -> Any:
    """Into memory that holds nothing before, in a list and by itself, and into what is read too."""
    row, each, sums = torch.empty_like(cache), [torch.empty_like(x), x.clone()], cache * 1
    fill_all(each, 2.5)
    fill_all([row], 3.0)
    write_row(row, each[0], 1)
    return add_to_both(sums, x, None), sums + row + each[1]


@pytest.mark.parametrize("function", [made_by_operators, once, lists], ids=lambda each: each.__name__)
def test_passes_around_operators_can_be_checked(function: Callable[..., Any]) -> None:
    """In float64, while operators of somebody's own get the program's types."""
    x, cache = torch.randn(WIDTH), torch.randn(ROWS, WIDTH)
    expected_args, got_args = clone_inputs((x, cache)), clone_inputs((x, cache))
    expected = function(*expected_args)
    torch.compiler.reset()
    got = torch.compile(function, backend="inductile", options={"verify_each": "numerics"})(*got_args)
    torch.testing.assert_close((got, got_args), (expected, expected_args))


def test_no_memory_for_a_copy() -> None:
    x, cache = torch.randn(1024), torch.zeros(1024, 1024)
    compiled = torch.compile(once, backend="inductile", fullgraph=True)
    with torch.no_grad():
        compiled(x, cache)
        with profile(profile_memory=True) as profiled:
            compiled(x, cache)
    assert max(event.cpu_memory_usage for event in profiled.key_averages()) < cache.nbytes


def test_views_of_a_tensor_that_lies_elsewhere_in_each_call() -> None:
    """torch takes the first call's place in the storage for that of all; so do its own backends."""

    def columns_and_rows(x: Tensor, cache: Tensor) -> Any:
        write_row(cache[:, ::2], x[::2], 1)
        write_row(cache[2:], x, 1)
        return cache.sum()

    torch._dynamo.reset()
    compiled = torch.compile(columns_and_rows, backend="inductile", fullgraph=True)
    with torch.no_grad():
        for start in (3, 0, 5):
            x, whole = torch.randn(WIDTH), torch.randn(ROWS, WIDTH)
            expected, got = whole.clone(), whole.clone()
            columns_and_rows(x, expected[start : start + 8])
            compiled(x, got[start : start + 8])
            torch.testing.assert_close(got, expected, rtol=0, atol=0)


@torch.library.custom_op("inductile_tests::reverse_into", mutates_args=("target",))
def reverse_into(source: Tensor, target: Tensor) -> None:
    for place in range(source.shape[0]):
        target[source.shape[0] - 1 - place] = source[place]


def from_a_clone(x: Tensor, cache: Tensor) -> Any:
    reverse_into(x.clone(), x)
    return x * 2


def between_clones(x: Tensor, cache: Tensor) -> Any:
    y, z = x.clone(), x.clone()
    reverse_into(y, z)
    return y, z


def between_equal_values(x: Tensor, cache: Tensor) -> Any:
    y, z = x + 1, x + 1
    reverse_into(y, z)
    return y + z


def from_a_clone_of_a_view(x: Tensor, cache: Tensor) -> Any:
    y = x.view(2, -1).clone().view(-1)
    reverse_into(y, x)
    return y


@pytest.mark.parametrize(
    "function", [from_a_clone, between_clones, between_equal_values, from_a_clone_of_a_view], ids=lambda f: f.__name__
)
def test_clones_stay_apart(function: Callable[..., Any]) -> None:
    """An operator that reads one tensor while it writes another is wrong where both come to be the same memory."""
    with torch.no_grad():
        compare(function, (torch.randn(8), torch.randn(2)))


def old_elements_behind(x: Tensor, cache: Tensor) -> Any:
    new = cache.clone()
    write_row(new, x, 3)
    return new, cache + 1


def returned(x: Tensor, cache: Tensor) -> Any:
    new = cache + 0
    write_row(new, x, 3)
    cache.copy_(new)
    return new


def argument_in_what_is_written(x: Tensor, cache: Tensor) -> Any:
    write_row(cache, cache[0], 3)
    return x + 1


@pytest.mark.parametrize("function", [old_elements_behind, returned, argument_in_what_is_written])
def test_what_copies_is_right(function: Callable[..., Any]) -> None:
    with torch.no_grad():
        compare(function, (torch.randn(WIDTH), torch.randn(ROWS, WIDTH)))


def test_a_remark_says_why_it_copies() -> None:
    x, cache = torch.randn(WIDTH), torch.randn(ROWS, WIDTH)

    with torch.no_grad():
        told = str(inductile.explain(argument_in_what_is_written)(x, cache))
        assert "writes a copy: another argument lies in the same memory" in told
        assert "writes in place" in str(inductile.explain(once)(x, cache))


@pytest.mark.parametrize("dynamic", [None, True], ids=["static", "dynamic"])
def test_training(dynamic: bool | None) -> None:
    def step(x: Tensor, cache: Tensor) -> Tensor:
        write_row(cache, x.detach() * 2, 3)
        return (x * cache.sum(0)).sin()

    torch._dynamo.reset()
    compiled = torch.compile(step, backend="inductile", fullgraph=True, dynamic=dynamic)
    x = torch.randn(WIDTH, requires_grad=True, dtype=torch.float64)
    cache = torch.randn(ROWS, WIDTH, dtype=torch.float64)
    expected, got = cache.clone(), cache.clone()
    (gradient,) = torch.autograd.grad(step(x, expected).sum(), x)
    (found,) = torch.autograd.grad(compiled(x, got).sum(), x)
    torch.testing.assert_close(found, gradient)
    torch.testing.assert_close(got, expected)
    forward = next(report for report in reversed(REPORTS) if report.kind == "forward")
    assert "auto_functionalized" not in str(forward)
    assert "copy_(" not in forward.sources["program.py"]


def test_random_sequences() -> None:
    """Any order of writes and reads, of the caller's tensor and of the program's own, gives eager's values."""
    for seed in range(3):
        random = torch.Generator().manual_seed(seed)
        steps = torch.randint(0, 6, (8,), generator=random).tolist()

        def run(x: Tensor, cache: Tensor, steps: list[int] = steps) -> Any:
            own, kept = cache * 2, [x]
            for number, step in enumerate(steps):
                target = (cache, own, cache[2:], own[:, : WIDTH // 2], own, cache)[step]
                if step < 4:
                    write_row(target, (x + number)[: target.shape[1]], step)
                else:
                    kept.append(target.sum(0) if step == 4 else target[1] + 1)
            return (*kept[1:], own)

        with torch.no_grad():
            compare(run, (torch.randn(WIDTH, generator=random), torch.randn(ROWS, WIDTH, generator=random)))
