"""What the aten level has no types for, and what ATen refuses: torch runs it, or says no, with one warning at most."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

WIDE = (torch.uint16, torch.uint32, torch.uint64)
REFUSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "add": lambda x: x + x,
    "negative": lambda x: -x,
    "less": lambda x: x < 2,
    "amax": lambda x: x.amax(0),
    "mixed": lambda x: x * torch.ones(4, dtype=torch.int64),
}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", REFUSED)
def test_unsigned_arithmetic_that_eager_refuses(name: str, dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    x = torch.arange(1, 5).to(dtype)
    with pytest.raises((RuntimeError, NotImplementedError)):
        REFUSED[name](x)
    with pytest.raises(Exception, match=r"not implemented|not supported"):
        torch.compile(REFUSED[name], backend="inductile")(x)


@pytest.mark.parametrize("dtype", WIDE)
def test_unsigned_arithmetic_that_eager_has(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    x = torch.tensor([1, 2, 60000]).to(dtype)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x * 3, (x & 3) | 4 ^ x, x == 2, x.float() + 1, x.long() * 2, torch.cat([x, x]), x.sum(), x / 2)

    torch.testing.assert_close(torch.compile(function, backend="inductile")(x), function(x))


@pytest.mark.parametrize(
    ("gradient", "shape", "target", "total"),
    [
        ((1,), (3,), (2, 0, 1), 2.0),
        ((1,), (3,), 2, 2.0),
        ((1,), (2, 3), (2, 0), 2.0),
        ((), (2, 3), (2, 0), (2.0,)),
        ((), (3,), 2, 2.0),
    ],
)
def test_losses_of_odd_shapes(gradient: tuple[int, ...], shape: tuple[int, ...], target: Any, total: Any) -> None:
    """Of several targets of one row eager's kernel reads the first, and a list of one gradient is a number."""
    torch._dynamo.reset()
    inputs = torch.randn(gradient), torch.randn(shape), torch.tensor(target), torch.tensor(total)

    def function(gradient: torch.Tensor, x: torch.Tensor, target: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.nll_loss_backward(gradient, x, target, None, 1, 10, total)

    torch.testing.assert_close(torch.compile(function, backend="inductile")(*inputs), function(*inputs))


class _Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 4, sparse=True, mode="sum")
        self.head = nn.Linear(4, 2)

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.head(self.bag(indices, offsets).sin())


def test_sparse_gradients_run_in_eager_with_one_warning() -> None:
    torch._dynamo.reset()
    module = _Bag()
    inputs = torch.tensor([1, 2, 3, 1]), torch.tensor([0, 2])
    found: list[list[torch.Tensor]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for function in (module, torch.compile(module, backend="inductile")):
            module.zero_grad()
            result = function(*inputs)
            result.sum().backward()
            gradients = [p.grad for p in module.parameters()]
            assert gradients[0] is not None
            assert gradients[0].is_sparse
            found.append([result.detach(), *(g.to_dense() for g in gradients if g is not None)])
    torch.testing.assert_close(found[1], found[0])
    told = [str(each.message) for each in caught if "graph" in str(each.message)]
    assert len(told) == 1
    assert "runs a graph in eager: a tensor of layout torch.sparse_coo" in told[0]


@pytest.mark.parametrize("shape", [(5,), ()])
def test_gradients_through_complex_numbers_of_the_program(shape: tuple[int, ...]) -> None:
    torch._dynamo.reset()

    def function(x: torch.Tensor) -> torch.Tensor:
        return ((x * (2 + 3j) + 1j) / (1 - 2j)).abs()

    found: list[torch.Tensor | None] = []
    for each in (function, torch.compile(function, backend="inductile")):
        x = torch.full(shape, 1.5 - 2j, requires_grad=True)
        each(x).sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])
