"""Sizes that data decides: what defines them, and that they are checked where torch takes them to be known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

X = torch.arange(8.0)


@pytest.fixture(autouse=True)
def _captured() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield


def _first(n: int) -> torch.Tensor:
    return torch.arange(8) < n


def _number(n: torch.Tensor) -> torch.Tensor:
    k = n.sum().item()
    torch._check(k == 3)
    return X[:3] + torch.ones(k)  # pyright: ignore[reportCallIssue, reportArgumentType]


#: a function, inputs that fit, and inputs for which eager raises
CHECKS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "mask": (lambda m, y: X[m] + y, (_first(3), torch.ones(3)), (_first(2), torch.ones(3))),
    "nonzero": (lambda m, y: m.nonzero()[:, 0] + y, (_first(3), torch.ones(3)), (_first(8), torch.ones(3))),
    "view": (lambda m: X[m].view(3, 2).sum(1), (_first(6),), (_first(4),)),
    "product": (lambda m, y: X[m][None] @ y, (_first(3), torch.ones(3, 2)), (_first(2), torch.ones(3, 2))),
    "two": (lambda m, n: X[m] + X[n], (_first(3), ~_first(5)), (_first(2), ~_first(5))),
    "number": (_number, (torch.tensor([3]),), (torch.tensor([2]),)),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", CHECKS)
def test_a_size_that_has_to_be_another(name: str, dynamic: bool | None) -> None:
    function, fitting, wrong = CHECKS[name]
    compiled: Any = torch.compile(function, backend="inductile", dynamic=dynamic)
    torch.testing.assert_close(compiled(*fitting), function(*fitting))
    with pytest.raises(RuntimeError):
        function(*wrong)
    with pytest.raises(RuntimeError):
        compiled(*wrong)


@torch.library.custom_op("inductile_test::apart", mutates_args=())
def _apart(x: torch.Tensor) -> torch.Tensor:
    return x.new_zeros(x.shape[0], int(x.sum())).narrow(1, 0, x.shape[1]).copy_(x)


@torch.library.custom_op("inductile_test::twice", mutates_args=())
def _twice(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(2.0 * int(x.sum()))


@_apart.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    step = torch.library.get_ctx().new_dynamic_size()
    return x.new_empty_strided(tuple(x.shape), (step, 1))


@_twice.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(2 * torch.library.get_ctx().new_dynamic_size())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (_apart(x) + 1, _apart(x).stride(0) * x),
        lambda x: _apart(x).t().cumsum(0),
        lambda x: _twice(x).view(2, -1) * 2,
    ],
)
def test_a_symbol_that_a_stride_or_a_part_of_a_size_defines(function: Callable[..., Any]) -> None:
    compiled: Any = torch.compile(function, backend="inductile", fullgraph=True)
    for rows in (3, 4):
        x = torch.ones(rows, 2)
        torch.testing.assert_close(compiled(x), function(x), check_stride=True)


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_float_that_data_decides(dynamic: bool | None) -> None:
    """Asking whether its op has been seen before must not ask for its value."""

    def scaled(x: torch.Tensor) -> Any:
        mean = x.mean().item()
        return x * mean, torch.full((2, 8), mean) @ x, mean > 0

    compiled: Any = torch.compile(scaled, backend="inductile", dynamic=dynamic, fullgraph=True)
    for x in (X, X - 5):
        torch.testing.assert_close(compiled(x), scaled(x))
