"""Random numbers of compiled programs: reproducible, drawn once, and eager's own on request."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from inductile.backends.reference.integers import philox as reference_philox
from inductile.lowering import fx_random

from .models import Block, Checkpointed


def _compiled(function: Callable[..., torch.Tensor], **options: Any) -> Callable[..., torch.Tensor]:
    torch._dynamo.reset()
    return torch.compile(function, backend="inductile", options=options)


def test_seed_decides_the_numbers() -> None:
    run = _compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(100)
    torch.manual_seed(3)
    first, second = run(x), run(x)
    torch.manual_seed(3)
    assert torch.equal(run(x), first)
    assert torch.equal(run(x), second)
    assert not torch.equal(first, second)


def test_two_dropouts_have_two_masks() -> None:
    first, second = _compiled(lambda x: torch.stack([F.dropout(x, 0.5), F.dropout(x, 0.5)]))(torch.ones(200))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("size", [(7,), (3, 5), (0, 4), ()])
def test_fallback_draws_eagers_numbers(size: tuple[int, ...]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x + 1, 0.4) + torch.rand_like(x) + torch.randn(size) + torch.bernoulli(torch.full(size, 0.3))

    x = torch.randn(size)
    torch.manual_seed(5)
    expected = function(x)
    run = _compiled(function, fallback_random=True)
    torch.manual_seed(5)
    torch.testing.assert_close(run(x), expected)


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("checkpointed", [False, True])
def test_gradient_has_the_mask_of_the_output(fallback: bool, checkpointed: bool) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x.exp(), 0.5) * 3

    def region(x: torch.Tensor) -> torch.Tensor:
        y = checkpoint(function, x, use_reentrant=False) if checkpointed else function(x)
        assert isinstance(y, torch.Tensor)
        return y

    x = torch.randn(64, 33, requires_grad=True)
    y = _compiled(region, fallback_random=fallback)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
    assert 0.4 < (y == 0).float().mean() < 0.6


@pytest.mark.parametrize("make", [lambda: Block(dropout=0.3), lambda: Checkpointed(dropout=0.3)])
def test_training_with_dropout_equals_eager_under_fallback(make: Callable[[], torch.nn.Module]) -> None:
    torch.manual_seed(1)
    module = make()
    twin = copy.deepcopy(module)
    x = torch.randn(2, 6, 16)
    run = _compiled(twin, fallback_random=True)
    for step in (module, run):
        torch.manual_seed(9)
        step(x).sum().backward()
    for expected, got in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(got.grad, expected.grad)


def test_masks_run_again_rather_than_being_saved() -> None:
    from .harness import SplitBackend

    torch._dynamo.reset()
    backend = SplitBackend(random=True)
    x = torch.randn(64, requires_grad=True)
    torch.compile(lambda x: F.dropout(x.exp(), 0.5), backend=backend)(x).sum().backward()
    sizes = [node.meta["val"].numel() for node in backend.backward[-1].graph.find_nodes(op="placeholder")]
    assert sorted(sizes) == [1, 64, 64]  # the seed, one value, the tangent
    assert "inductile.random.default" in backend.targets("backward")
    assert "aten.randint.low" not in backend.targets("backward")


@pytest.mark.parametrize(("make", "mean", "deviation"), [
    (lambda: torch.rand(20000), 0.5, 12**-0.5),
    (lambda: torch.rand(20000, dtype=torch.float64), 0.5, 12**-0.5),
    (lambda: torch.rand(20000, dtype=torch.bfloat16), 0.5, 12**-0.5),
    (lambda: torch.rand(20000, dtype=torch.float16), 0.5, 12**-0.5),
    (lambda: torch.randn(20000), 0.0, 1.0),
    (lambda: torch.randn(20000, dtype=torch.float64), 0.0, 1.0),
    (lambda: torch.bernoulli(torch.full((20000,), 0.3)), 0.3, 0.21**0.5),
    (lambda: torch.empty(20000).uniform_(-1, 3), 1.0, 4 * 12**-0.5),
    (lambda: torch.empty(20000).normal_(2, 0.5), 2.0, 0.5),
    (lambda: torch.empty(20000).bernoulli_(0.2), 0.2, 0.4),
])  # fmt: skip
def test_distributions(make: Callable[[], torch.Tensor], mean: float, deviation: float) -> None:
    torch.manual_seed(0)
    drawn = _compiled(make)()
    expected = make()
    assert (drawn.dtype, drawn.shape, drawn.stride()) == (expected.dtype, expected.shape, expected.stride())
    values = drawn.double()
    assert abs(values.mean().item() - mean) < 5 * deviation / 20000**0.5 + 0.005
    assert abs(values.std().item() / deviation - 1) < 0.03
    if mean == 0.5:
        assert values.min() >= 0
        assert values.max() < 1
    # neighbours are independent
    centred = values - values.mean()
    assert abs((centred[1:] * centred[:-1]).mean() / deviation**2) < 0.04


def test_strides_are_those_of_the_operand() -> None:
    x = torch.randn(3, 4, 5, 6).to(memory_format=torch.channels_last)
    assert _compiled(torch.rand_like)(x).stride() == x.stride()
    assert _compiled(lambda x: F.dropout(x, 0.5))(x).stride() == x.stride()


def test_edge_probabilities() -> None:
    x = torch.tensor([1.0, float("inf"), -2.0])
    assert torch.equal(_compiled(lambda x: F.dropout(x, 1.0))(x), torch.zeros(3))
    assert torch.equal(_compiled(lambda x: F.dropout(x, 0.0))(x), x)


def test_philox_is_that_of_the_reference() -> None:
    seed, offset = torch.tensor([0x123456789ABCDEF]), torch.arange(2**34, 2**34 + 50)
    ours = fx_random.philox(seed, offset)
    assert torch.equal(ours.to(torch.int32), reference_philox(seed, offset))
    assert 0 <= ours.min() <= ours.max() < 2**32
    # the first block of the key 0, as published with the algorithm
    first = fx_random.philox(torch.tensor([0]), torch.arange(4)).tolist()
    assert first == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normal", [False, True])
def test_kernels_draw_what_the_operator_draws(dtype: torch.dtype, normal: bool) -> None:
    def function(seed: torch.Tensor) -> torch.Tensor:
        return torch.ops.inductile.random(seed, [7, 5], dtype=dtype, normal=normal)

    seed = torch.tensor([987654321987654321])
    torch.testing.assert_close(_compiled(function)(seed), function(seed))
