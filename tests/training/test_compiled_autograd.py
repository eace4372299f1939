"""Backward passes that Dynamo captures as a whole, hooks and accumulation included, against eager's gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch import nn

from inductile.backends.compiled import REPORTS

Program = Callable[[nn.Module], Any]


class _Squared(torch.autograd.Function):
    """A function with a backward of its own, which keeps a tensor."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return 2 * x * g


def _mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2))


def _loss(module: nn.Module, count: int = 5, seed: int = 0) -> torch.Tensor:
    return module(torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))).square().mean()


def _gradients(module: nn.Module) -> dict[str, torch.Tensor | None]:
    return {name: p.grad for name, p in module.named_parameters()}


def _two_backwards(module: nn.Module) -> Any:
    _loss(module).backward()
    first = {name: None if g is None else g.clone() for name, g in _gradients(module).items()}
    _loss(module, seed=1).backward()
    return [first, _gradients(module)]


def _tensor_hooks(module: nn.Module) -> Any:
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    hidden = module[0](x)  # pyright: ignore[reportIndexIssue]
    hidden.register_hook(lambda g: g * 3)
    next(module.parameters()).register_hook(lambda g: g + 1)
    x.register_hook(lambda g: 2 * g)
    x.register_hook(lambda g: g.clamp(-0.5, 0.5))  # hooks run in the order of their registration
    module[3](module[2](module[1](hidden))).square().sum().backward()  # pyright: ignore[reportIndexIssue]
    return [x.grad, _gradients(module)]


def _post_accumulate_hooks(module: nn.Module) -> Any:
    """Gradient descent inside of the backward pass."""

    def update(p: torch.Tensor) -> None:
        assert p.grad is not None
        with torch.no_grad():
            p.sub_(0.1 * p.grad)
        p.grad = None

    for p in module.parameters():
        p.register_post_accumulate_grad_hook(update)
    for seed in range(3):
        _loss(module, seed=seed).backward()
    return [dict(module.named_parameters()), _gradients(module)]


def _hooks_of_both_kinds_that_accumulate(module: nn.Module) -> Any:
    def shift(p: torch.Tensor) -> None:
        assert p.grad is not None
        p.grad.add_(0.25)

    for p in module.parameters():
        p.register_hook(lambda g: g * 0.5)
        p.register_post_accumulate_grad_hook(shift)
    for seed in range(2):
        _loss(module, seed=seed).backward()
    return _gradients(module)


def _hook_of_a_node(module: nn.Module) -> Any:
    y = _loss(module)
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 2,))
    y.backward()
    return _gradients(module)


def _retained_graph(module: nn.Module) -> Any:
    y = module(torch.ones(3, 4))
    y.sum().backward(retain_graph=True)
    y.square().sum().backward()
    return _gradients(module)


def _views_and_writes(module: nn.Module) -> Any:
    x = torch.linspace(-1, 1, 24).view(6, 4).requires_grad_()
    y = x * 2
    y[1:3] = module[0](x)[1:3, :4]  # pyright: ignore[reportIndexIssue]
    y[4].mul_(3)
    (y.view(3, 8).t().square().sum() + y[::2].exp().sum()).backward()
    return [x.grad, _gradients(module)]


def _several_sizes(module: nn.Module) -> Any:
    for count in (5, 6, 9):
        _loss(module, count).backward()
    return _gradients(module)


def _function_of_the_user(module: nn.Module) -> Any:
    x = torch.linspace(-1, 1, 20).view(5, 4).requires_grad_()
    _Squared.apply(module(x)).sum().backward()
    return [x.grad, _gradients(module)]


#: compiled both over eager's graph of autograd, op by op, and over one with compiled nodes
_PROGRAMS: list[Program] = [
    _two_backwards, _tensor_hooks, _hooks_of_both_kinds_that_accumulate, _views_and_writes,
]  # fmt: skip
#: over compiled nodes; where a hook writes to a weight that eager's graph keeps a view of, AOTAutograd gives up
_OF_COMPILED: list[Program] = [
    *_PROGRAMS, _post_accumulate_hooks, _hook_of_a_node, _retained_graph, _several_sizes, _function_of_the_user,
]  # fmt: skip


def _autograd_by(compiler: Any) -> AbstractContextManager[Any]:
    from torch._dynamo.compiled_autograd import _enable

    return _enable(compiler)


def _check(program: Program, compile_forward: bool) -> None:
    torch._dynamo.reset()
    module = _mlp()
    twin: nn.Module = copy.deepcopy(module)
    expected = program(module)
    if compile_forward:
        for child in twin.children():
            child.compile(backend="inductile")
    REPORTS.clear()
    with _autograd_by(torch.compile(backend="inductile")):
        got = program(twin)
    torch.testing.assert_close(got, expected)
    assert any(report.kernels for report in REPORTS), "no backward pass was compiled"


@pytest.mark.rotates(2)
@pytest.mark.parametrize("program", _PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_of_eager_forward(program: Program) -> None:
    _check(program, compile_forward=False)


@pytest.mark.rotates(2)
@pytest.mark.parametrize("program", _OF_COMPILED, ids=lambda program: program.__name__.strip("_"))
def test_of_compiled_forward(program: Program) -> None:
    _check(program, compile_forward=True)


def test_compiled_training_step() -> None:
    """`config.compiled_autograd`: forward, backward with its hooks, and the optimizer in one compiled function."""
    torch._dynamo.reset()
    results: list[Any] = []
    for compiled in (False, True):
        module = _mlp()
        for p in module.parameters():
            p.register_hook(lambda g: g * 2)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

        def step(seed: int, module: nn.Module = module, optimizer: Any = optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            loss = _loss(module, seed=seed)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = torch.compile(step, backend="inductile") if compiled else step
        with torch._dynamo.config.patch(compiled_autograd=compiled):
            results.append([[run(seed) for seed in range(3)], dict(module.named_parameters()), _gradients(module)])
    torch.testing.assert_close(results[1], results[0])
