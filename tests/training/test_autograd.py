"""What a program does around a compiled function: accumulation, hooks, double use, writes between calls."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from .models import Function

Program = Callable[[Callable[..., Any], nn.Module], Any]


def _same(program: Program, module: nn.Module, **options: Any) -> None:
    """Assert that a program gives the same with the module and with the compiled module."""
    torch._dynamo.reset()
    twin = copy.deepcopy(module)
    torch.manual_seed(0)
    expected = program(module, module)
    torch.manual_seed(0)
    got = program(torch.compile(twin, backend="inductile", **options), twin)
    torch.testing.assert_close(got, expected)


def _gradients(module: nn.Module) -> dict[str, torch.Tensor | None]:
    return {name: p.grad for name, p in module.named_parameters()}


def _mlp() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def test_gradients_accumulate() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        for _ in range(3):
            run(torch.randn(5, 4)).square().mean().backward()
        return _gradients(module)

    _same(program, _mlp())


def test_backward_twice_through_a_retained_graph() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        y = run(torch.randn(5, 4))
        y.sum().backward(retain_graph=True)
        y.square().sum().backward()
        return _gradients(module)

    _same(program, _mlp())


def test_several_calls_before_one_backward() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        x = torch.randn(5, 4, requires_grad=True)
        (run(x).sum() + run(x * 2).square().sum() + run(run(x) @ torch.ones(2, 4)).sum()).backward()
        return [x.grad, _gradients(module)]

    _same(program, _mlp())


def test_only_some_outputs_have_a_gradient() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        first, second, third = run(torch.randn(3, 4))
        second.sum().backward()
        # where eager leaves None, AOTAutograd gives zeros
        return [
            first,
            third,
            {name: torch.zeros(()) if g is None else g.sum() for name, g in _gradients(module).items()},
        ]

    module = Function(lambda a, b, x: (x * a, (x * b).tanh(), (x * a).detach()), (4,), (4,))
    _same(program, module)


def test_hooks_see_and_change_gradients() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        # one node gives all gradients of a compiled graph, so the order is another than eager's
        seen: dict[str, torch.Tensor] = {}
        x = torch.randn(5, 4, requires_grad=True)
        x.register_hook(lambda g: seen.update(x=g.clone()))
        parameter = next(module.parameters())
        handle = parameter.register_hook(lambda g: 2 * g)
        parameter.register_post_accumulate_grad_hook(lambda p: seen.update(weight=p.grad.clone()))
        y = run(x)
        y.register_hook(lambda g: g * 3)
        y.sum().backward()
        handle.remove()
        return [seen, x.grad, _gradients(module)]

    _same(program, _mlp())


def test_module_hooks() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        return [run(torch.randn(5, 4)), _gradients(module)]

    module = _mlp()
    module[0].register_forward_hook(lambda m, args, y: y * 2)  # pyright: ignore
    module[2].register_forward_pre_hook(lambda m, args: (args[0] + 1,))  # pyright: ignore
    _same(program, module)


def test_gradient_by_torch_autograd_grad() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        x = torch.randn(5, 4, requires_grad=True)
        return torch.autograd.grad(run(x).sum(), [x, *module.parameters()])

    _same(program, _mlp())


def test_gradients_of_views_and_of_their_base() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        base = torch.randn(6, 4, requires_grad=True)
        y = run(base[1:5])
        z = run(base.view(2, 3, 4)[0])
        (y.sum() + (z * z).sum()).backward()
        return [base.grad, _gradients(module)]

    _same(program, _mlp())


def test_output_is_a_view_of_an_input() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        x = torch.randn(3, 4, requires_grad=True)
        base = x * 1
        view, y = run(base)
        shared = view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
        (view.sum() + y.sum()).backward()
        return [shared, x.grad, _gradients(module)]

    _same(program, Function(lambda w, x: (x[1:], (x * w).exp()), (4,)))


def test_several_graphs_write_one_buffer() -> None:
    class Counting(nn.Module):
        total: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x.detach())
            y = self.weight * x * self.total
            torch._dynamo.graph_break()
            self.total.mul_(2)
            return y + self.total

    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        for k in range(3):
            run(torch.full((3,), float(k))).sum()
        return [module.total, run(torch.ones(3))]

    _same(program, Counting())


def test_batch_norm_between_training_and_evaluation() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        seen: list[Any] = []
        for training in (True, False, True):
            module.train(training)
            y = run(torch.randn(6, 4))
            y.square().sum().backward()
            seen += [y, dict(module.named_buffers())]
        return [*seen, _gradients(module)]

    torch.manual_seed(1)
    _same(program, nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()))


def test_custom_autograd_function() -> None:
    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # pyright: ignore
            (x,) = ctx.saved_tensors
            return g * (x.abs() < 2)

    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        run(torch.randn(3, 4) * 3).sum().backward()
        return _gradients(module)

    _same(program, Function(lambda w, x: Clipped.apply(x * w).sin(), (4,)))


def test_no_grad_and_inference_mode_after_training() -> None:
    def program(run: Callable[..., Any], module: nn.Module) -> Any:
        x = torch.randn(5, 4)
        run(x).sum().backward()
        with torch.no_grad():
            first = run(x)
        with torch.inference_mode():
            second = run(x).clone()
        return [first, first.requires_grad, second, _gradients(module)]

    _same(program, _mlp())


@pytest.mark.rotates(2, each="fused_names")
@pytest.mark.parametrize("fused_names", [("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
                                         ("Adam", {"lr": 0.01}), ("AdamW", {"lr": 0.01, "amsgrad": True}),
                                         ("RMSprop", {"lr": 0.01})])  # fmt: skip
@pytest.mark.parametrize("foreach", [True, False])
def test_compiled_optimizer(fused_names: tuple[str, dict[str, Any]], foreach: bool) -> None:
    name, arguments = fused_names
    torch._dynamo.reset()
    modules = [_mlp(), _mlp()]
    optimizers = [getattr(torch.optim, name)(m.parameters(), foreach=foreach, **arguments) for m in modules]
    step = torch.compile(optimizers[1].step, backend="inductile")
    for seed in range(3):
        for module, optimizer in zip(modules, (optimizers[0].step, step), strict=True):
            torch.manual_seed(seed)
            module.zero_grad()
            module(torch.randn(5, 4)).square().mean().backward()
            optimizer()
    for expected, got in zip(modules[0].parameters(), modules[1].parameters(), strict=True):
        torch.testing.assert_close(got, expected)


def test_compiled_training_loop_lowers_the_loss() -> None:
    torch._dynamo.reset()
    module = _mlp()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    run = torch.compile(module, backend="inductile")
    x = torch.randn(32, 4)
    target = torch.stack([x.sum(1), x.prod(1)], 1)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(run(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3
