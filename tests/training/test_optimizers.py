"""Compiled optimizers: few launches for many parameters, and eager's steps."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from inductile.backends.compiled import REPORTS

#: optimizer and options -> launches of a step for the twelve parameters of `_model`, all small
LAUNCHES = [
    ("SGD", {"momentum": 0.9, "weight_decay": 0.01}, 1),
    ("Adam", {"weight_decay": 0.01}, 4),
    ("AdamW", {"weight_decay": 0.1}, 4),
]


def _model() -> nn.Module:
    torch.manual_seed(1)
    layers = [nn.Linear(8 + k, 9 + k) for k in range(6)]
    return nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))


def _optimizer(name: str, module: nn.Module, **arguments: Any) -> torch.optim.Optimizer:
    return getattr(torch.optim, name)(module.parameters(), **{"lr": 0.01, "foreach": True, **arguments})


def _train(module: nn.Module, optimizer: torch.optim.Optimizer, step: Any, steps: int = 4) -> dict[str, Any]:
    """Parameters and state behind some steps."""
    for seed in range(steps):
        torch.manual_seed(seed)
        optimizer.zero_grad()
        module(torch.randn(5, 8)).square().mean().backward()
        step()
    state = {n: optimizer.state[p] for n, p in module.named_parameters()}
    return {"parameters": dict(module.named_parameters()), "state": state}


def _compare(name: str, arguments: dict[str, Any], expected: dict[str, Any], options: dict[str, Any]) -> list[int]:
    """Train with the optimizer compiled; the launches of each of its graphs."""
    torch._dynamo.reset()
    module = _model()
    optimizer = _optimizer(name, module, **arguments)
    REPORTS.clear()
    step = torch.compile(optimizer.step, backend="inductile", options=options)
    torch.testing.assert_close(_train(module, optimizer, step), expected)
    return [sum(report.kernels.values()) for report in REPORTS]


@pytest.mark.rotates(2)
@pytest.mark.parametrize(("name", "arguments", "launches"), LAUNCHES)
def test_small_parameters_share_launches(name: str, arguments: dict[str, Any], launches: int) -> None:
    module = _model()
    optimizer = _optimizer(name, module, **arguments)
    expected = _train(module, optimizer, optimizer.step)
    made = _compare(name, arguments, copy.deepcopy(expected), {})
    assert made
    assert max(made) <= launches


def test_without_merging_each_parameter_has_a_launch() -> None:
    """What the numbers above are worth: the same step with the pass switched off."""
    module = _model()
    optimizer = _optimizer("SGD", module, momentum=0.9)
    expected = _train(module, optimizer, optimizer.step)
    off = {"debug_counter": "kernel-merge-launches-count=0"}
    assert max(_compare("SGD", {"momentum": 0.9}, copy.deepcopy(expected), off)) >= 12


@pytest.mark.parametrize(("foreach", "capturable"), [(False, False), (True, True)])
def test_learning_rate_that_is_a_tensor(foreach: bool, capturable: bool) -> None:
    """A schedule writes it between the steps, and nothing is compiled again."""
    results = []
    for is_compiled in (False, True):
        torch._dynamo.reset()
        module, rate = _model(), torch.tensor(0.01)
        # in eager, a rate that is a tensor wants a GPU where it is given with foreach
        options = {"foreach": foreach, "capturable": capturable} if is_compiled else {"foreach": False}
        optimizer = _optimizer("Adam", module, lr=rate, **options)
        REPORTS.clear()
        step = torch.compile(optimizer.step, backend="inductile") if is_compiled else optimizer.step
        for k in range(3):
            rate.fill_(0.01 / (k + 1))
            _train(module, optimizer, step, steps=2)
        results.append([p.detach() for p in module.parameters()])
    torch.testing.assert_close(results[1], results[0])
    # the first step fills the state
    assert len(REPORTS) <= 2
