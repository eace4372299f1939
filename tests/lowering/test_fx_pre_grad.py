"""Passes on Dynamo's graph: what they change, and that writes to parameters are noticed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from inductile.errors import UserError
from inductile.lowering import fx_attention_heads, fx_attention_masks, fx_numbers, fx_pre_grad, pre_grad
from inductile.passes.remarks import Remark, collecting


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


def _reasons(remarks: list[Remark], name: str) -> list[str]:
    return [remark.reason for remark in remarks if remark.pass_name == name]


def _norm(module: nn.Module) -> nn.Module:
    """Statistics and weights that are not the trivial ones."""
    torch.manual_seed(0)
    for child in module.modules():
        if isinstance(child, nn.modules.batchnorm._BatchNorm):
            for tensor in (child.running_mean, child.running_var, child.weight, child.bias):
                nn.init.uniform_(tensor, 0.5, 1.5)  # pyright: ignore[reportArgumentType]
    return module.eval()


def _fold(module: nn.Module, x: torch.Tensor) -> tuple[Callable[..., torch.Tensor], list[str]]:
    """The compiled module, compared with eager, and what the pass said."""
    compiled: Any = torch.compile(module, backend="inductile", options={"pre_grad": "fold-batch-norm"})
    with torch.no_grad(), collecting() as remarks:
        torch.testing.assert_close(compiled(x), module(x))
    return compiled, _reasons(remarks, "fold-batch-norm")


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_batch_norm_is_folded(dimensions: int, bias: bool) -> None:
    convolution = [nn.Conv1d, nn.Conv2d, nn.Conv3d][dimensions - 1](2, 4, 3, bias=bias)
    norm = [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d][dimensions - 1](4)
    _, reasons = _fold(_norm(nn.Sequential(convolution, norm, nn.ReLU())), torch.randn(2, 2, *[5] * dimensions))
    assert len(reasons) == 1
    assert "is folded into" in reasons[0]


def test_writes_to_parameters_are_noticed() -> None:
    module = _norm(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)))
    x = torch.randn(2, 2, 5, 5)
    compiled, reasons = _fold(module, x)
    assert "is folded" in reasons[0]
    changes: list[Callable[[nn.Conv2d, nn.BatchNorm2d], Any]] = [
        lambda conv, norm: conv.weight.mul_(2),
        lambda conv, norm: norm.running_mean.add_(1),  # pyright: ignore[reportOptionalMemberAccess]
        lambda conv, norm: norm.load_state_dict({name: t + 1 for name, t in norm.state_dict().items()}),
        lambda conv, norm: setattr(conv, "weight", nn.Parameter(torch.randn(4, 2, 3, 3))),
        lambda conv, norm: norm.bias.copy_(torch.arange(4.0)),
    ]
    for change in changes:
        with torch.no_grad():
            change(*module)  # pyright: ignore
            torch.testing.assert_close(compiled(x), module(x))


def test_training_step_between_two_evaluations() -> None:
    module = _norm(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)))
    compiled: Any = torch.compile(module, backend="inductile", options={"pre_grad": "fold-batch-norm"})
    x = torch.randn(2, 2, 5, 5)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(2):
        module.eval()
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), module(x))
        module.train()
        compiled(x).square().mean().backward()
        optimizer.step()


def test_what_is_not_folded() -> None:
    x = torch.randn(2, 2, 5, 5)
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
    _norm(norm)

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = conv, norm

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.conv(x)
            return self.norm(y) + y

    class Twice(Shared):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(self.conv(x)) + self.norm(self.conv(x + 1))

    class Scaled(Shared):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = nn.functional.conv2d(x, self.conv.weight * 2, self.conv.bias)
            return self.norm(y)

    for module, reason in (
        (Shared(), "something else reads the convolution"),
        (Twice(), "a weight is used elsewhere too"),
        (Scaled(), "a weight is computed in the graph"),
        (nn.Sequential(nn.ReLU(), nn.BatchNorm2d(2)), "no convolution is before it"),
        (nn.Sequential(conv, nn.BatchNorm2d(4, affine=False)), "a weight is computed in the graph"),
    ):
        torch._dynamo.reset()
        _, reasons = _fold(module.eval(), x)
        assert any(reason in each for each in reasons), (reason, reasons)


def test_nothing_is_folded_where_gradients_are_on() -> None:
    module = _norm(nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)))
    compiled: Any = torch.compile(module, backend="inductile", options={"pre_grad": "fold-batch-norm"})
    x = torch.randn(2, 2, 5, 5)
    with collecting() as remarks:
        compiled(x).sum().backward()
    assert _reasons(remarks, "fold-batch-norm") == []
    assert module[0].weight.grad is not None  # pyright: ignore


def test_dropout_in_evaluation_goes_away() -> None:
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        assert fx_pre_grad.run_pre_grad(graph, inputs, "remove-identities") == []
        graphs.append(graph)
        return graph

    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 3), nn.Dropout1d(0.1), nn.AlphaDropout()).eval()
    x = torch.randn(2, 3)
    for each in (module, nn.Sequential(nn.Dropout(0), nn.Linear(3, 3), nn.Dropout1d(0.0))):  # in training too
        torch._dynamo.reset()  # else a second probability is a symbol
        torch.testing.assert_close(torch.compile(each, backend=backend)(x), each(x))
        assert not any("dropout" in str(node.target) for node in graphs[-1].graph.nodes)
    module.train()
    torch.compile(module, backend=backend)(x)
    assert sum("dropout" in str(node.target) for node in graphs[-1].graph.nodes) == 3


def test_output_that_is_an_argument_stays_one() -> None:
    run: Any = torch.compile(lambda x: nn.functional.dropout(x, 0.5, training=False), backend="inductile")
    x = torch.randn(3)
    y = run(x)
    y.add_(1)
    assert torch.equal(x, y)


def test_names() -> None:
    modules = {
        "prove-attention-masks": fx_attention_masks, "group-attention-heads": fx_attention_heads,
        "settle-numbers": fx_numbers,
    }  # fmt: skip
    for name, module in modules.items():
        assert module.__name__.endswith(pre_grad.PRE_GRAD[name].module)
    assert pre_grad.PRE_GRAD.keys() == fx_pre_grad._FUNCTIONS.keys()
    assert pre_grad.pre_grad_names("") == []
    with pytest.raises(UserError, match="did you mean 'fold-batch-norm'"):
        pre_grad.pre_grad_names("fold-batchnorm")


def test_listing_shows_the_phase_without_loading_torch() -> None:
    script = "import sys, inductile.tools.opt as o; o.main(['--print-pipeline']); assert 'torch' not in sys.modules"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "pre-grad: " in shown.stdout
    assert "remove-identities" in shown.stdout
    assert "lowering/fx_pre_grad.py" in shown.stdout
    assert "graph-partition" in shown.stdout
