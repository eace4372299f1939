"""Aliases, writes and parts without gradients in training: what a compiled function shares with its caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

Function = Callable[..., Any]


def _leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).requires_grad_()


def _expanded(run: Function) -> Any:
    base = _leaf(4, 1)
    y = run(base.expand(4, 5))
    y.sum().backward()
    return [y.detach(), base.grad]


def _written_output(run: Function) -> Any:
    x = _leaf(4, 6)
    y = run(x)
    y.mul_(3)
    y.sum().backward()
    return [x.grad, y.detach()]


def _written_view_of_input(run: Function) -> Any:
    x = _leaf(4, 6)
    base = x * 1
    run(base).mul_(3)
    base.sum().backward()
    return [x.grad, base.detach()]


def _views_of_one_value(run: Function) -> Any:
    x = _leaf(4, 6)
    first, second = run(x)
    (first.sum() * 2 + second.prod()).backward()
    return [x.grad, first.stride(), second.stride()]


def _overlapping(run: Function) -> Any:
    memory = torch.arange(6.0)
    return [run(memory[:4], memory[2:]), memory]


def _written_input(run: Function) -> Any:
    x, y = _leaf(4), _leaf(4)
    copy = x * 1
    (run(copy, y) + copy.square().sum()).backward()
    return [x.grad, y.grad, copy.detach()]


def _kinds_of_outputs(run: Function) -> Any:
    x = _leaf(4, 6)
    outputs = run(x)
    outputs[0].sum().backward()
    return [x.grad, [t.requires_grad for t in outputs if isinstance(t, torch.Tensor)], outputs[1] is outputs[0]]


def _two_inputs(run: Function) -> Any:
    x, w = _leaf(8, 6), _leaf(6, 6)
    y = run(x, w)
    y.sum().backward()
    return [y.detach(), x.grad, w.grad, torch.rand(2)]


def _copied(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.copy_(y.sin() * 2)
    return x.sum()


def _without_gradient_inside(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    with torch.no_grad():
        scale = (y * 3).exp()
    return y * scale


def _written_detached(x: torch.Tensor) -> torch.Tensor:
    y = x.cos() * 2
    y.detach().add_(1)
    return y * 2


def _hook_inside(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y * y


def _dropped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.dropout((F.dropout(x, 0.3) @ w).relu(), 0.4)


def _checkpointed(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = F.dropout(checkpoint(_dropped, x, w, use_reentrant=False), 0.1)  # pyright: ignore
    return checkpoint(_dropped, y, w, use_reentrant=False)


@pytest.mark.parametrize(
    ("program", "function"),
    [
        (_expanded, lambda x: (x * x).sin()),
        (_written_output, lambda x: (x * 2).sin()),
        (_written_output, _without_gradient_inside),
        (_written_output, _written_detached),
        (_written_output, _hook_inside),
        (_written_view_of_input, lambda x: x[1:3]),
        (_views_of_one_value, lambda x: ((y := x * 2).t(), y[1:3, ::2])),
        (_overlapping, lambda a, b: a.add_(1) * b),
        (_written_input, _copied),
        (_kinds_of_outputs, lambda x: ((y := x.exp()), y, None, 3, x.detach(), x > 0)),
        (_two_inputs, _checkpointed),
    ],
)
def test_same_as_eager(program: Callable[[Function], Any], function: Function) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    expected = program(function)
    torch.manual_seed(0)
    got = program(torch.compile(function, backend="inductile", options={"fallback_random": True}))
    torch.testing.assert_close(got, expected)
