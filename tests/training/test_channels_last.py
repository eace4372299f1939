"""Training with convolutions whose channels lie side by side in forward and backward: nobody outside sees it.

The layout is chosen for GPUs; here the same pass is told to choose it on the CPU.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from xdsl.dialects.builtin import ModuleOp

from inductile.backends import compile_graph as compiling
from inductile.backends import host
from inductile.dialects.aten import AtenOp, TensorType
from inductile.dialects.sym import ONE
from inductile.lowering.fx_private import report_output_strides
from inductile.lowering.pipeline import pipeline_string

_PASS = "loop-channels-last"
OPTIONS: dict[str, Any] = {"pipeline": pipeline_string("default").replace(_PASS, f"{_PASS}{{training_on_cpu=true}}")}

Context = Callable[[], AbstractContextManager[Any]]


class Block(nn.Module):
    """A residual block behind a pooled stem, with grouped and one-point windows, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.wide = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.wide_norm = nn.BatchNorm2d(16)
        self.deep = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.narrow = nn.Conv2d(16, 8, 1)
        self.head = nn.Linear(8, 4)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """The image in front of the head."""
        x = nn.functional.max_pool2d(torch.relu(self.norm(self.stem(x))), 2)
        y = self.narrow(torch.relu(self.deep(torch.relu(self.wide_norm(self.wide(x))))))
        return torch.relu(x + y)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.features(x).mean((2, 3)))


class Returning(Block):
    """What backward needs is returned as well, itself and as a view."""

    def forward(self, x: torch.Tensor) -> Any:
        y = self.wide(x.tanh().repeat(1, 3, 1, 1)[:, :8])
        z = self.narrow(torch.relu(y))
        return y, z.flatten(2), torch.relu(z).sin()


class Broken(Block):
    """Two graphs."""

    def forward(self, x: torch.Tensor) -> Any:
        x = self.features(x)
        torch._dynamo.graph_break()
        return self.narrow(self.wide(x).exp())


class Checkpointed(Block):
    """A region that backward runs again."""

    def forward(self, x: torch.Tensor) -> Any:
        y = checkpoint(lambda x: torch.relu(self.deep(self.wide(x).tanh())), self.stem(x), use_reentrant=False)
        return self.narrow(torch.relu(self.wide_norm(y)))  # pyright: ignore


class Strided(Block):
    """Backward reads what is saved through views."""

    def forward(self, x: torch.Tensor) -> Any:
        y = self.wide(torch.relu(self.norm(self.stem(x))))
        rows = y.flatten(2).transpose(1, 2)
        return (rows @ rows.transpose(1, 2)).softmax(-1) @ rows


def module(kind: type[Block] = Block) -> Block:
    """The same parameters each time."""
    torch.manual_seed(3)
    return kind()


def images(count: int = 2, size: int = 16) -> torch.Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(count + size))


class Trainee:
    """A module, run by `call`, with its optimizer."""

    def __init__(self, kind: type[Block], compiled: bool, **arguments: Any) -> None:
        self.module = module(kind)
        self.call: Any = torch.compile(self.module, backend="inductile", **arguments) if compiled else self.module
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=0.05)

    def step(self, x: torch.Tensor, context: Context = nullcontext) -> dict[str, torch.Tensor]:
        """Train on an image; what users see of the step: outputs, gradients, parameters and buffers."""
        x = x.clone().requires_grad_()
        self.optimizer.zero_grad(set_to_none=True)
        with context():
            outputs = tree_leaves(self.call(x))
        sum(out.float().square().mean() for out in outputs).backward()  # pyright: ignore
        seen = {f"output {k}": out.detach() for k, out in enumerate(outputs)}
        seen |= {f"gradient of {n}": p.grad for n, p in self.module.named_parameters() if p.grad is not None}
        assert x.grad is not None
        seen["gradient of the input"] = x.grad
        self.optimizer.step()
        return seen | {name: value.clone() for name, value in self.module.state_dict().items()}


def check(
    kind: type[Block] = Block,
    *,
    context: Context = nullcontext,
    sizes: tuple[tuple[int, int], ...] = ((2, 16),) * 3,
    atol: float = 2e-5,
    **arguments: Any,
) -> None:
    """Assert that steps of a compiled module are eager's, values and strides."""
    torch._dynamo.reset()
    eager, ours = Trainee(kind, False), Trainee(kind, True, **({"options": OPTIONS} | arguments))
    for size in sizes:
        expected, got = eager.step(images(*size), context), ours.step(images(*size), context)
        assert expected.keys() == got.keys()
        for name, value in expected.items():
            assert got[name].stride() == value.stride(), f"{name}: {got[name].stride()}, eager {value.stride()}"
            torch.testing.assert_close(got[name], value, rtol=1e-3, atol=atol, msg=lambda t, n=name: f"{n}: {t}")


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The strides that AOTAutograd is told of, a list for each forward graph that has others than eager."""
    told: list[Any] = []

    def report(strides: Any) -> None:
        told.append(list(strides))
        real(strides)

    real = report_output_strides
    monkeypatch.setattr(compiling, "report_output_strides", report)
    yield told


@pytest.mark.once("asks what a compile tells AOTAutograd")
@pytest.mark.rotates(2)
@pytest.mark.parametrize("kind", [Block, Returning, Broken, Checkpointed, Strided])
def test_steps_are_those_of_eager(kind: type[Block], reports: list[Any]) -> None:
    check(kind)
    assert any(strides is not None for each in reports for strides in each)


@pytest.mark.once("asks what a compile tells AOTAutograd")
@pytest.mark.rotates(2)
@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_that_change(dynamic: bool, reports: list[Any]) -> None:
    sizes = ((2, 16), (3, 16), (2, 24)) if dynamic else ((2, 16), (2, 24))
    check(sizes=sizes, dynamic=dynamic)
    assert len(reports) == (1 if dynamic else 2)  # strides of unknown sizes ask for no new graph


@pytest.mark.once("asks what a compile tells AOTAutograd")
def test_autocast(reports: list[Any]) -> None:
    check(context=partial(torch.autocast, "cpu", torch.bfloat16), atol=2e-2)
    assert reports


@pytest.mark.once("asks what a compile tells AOTAutograd")
def test_torch_splits_the_graph(reports: list[Any]) -> None:
    check(options=OPTIONS | {"partition": "torch"})
    assert reports


@pytest.mark.once("counts compiles")
def test_each_compile_reports(reports: list[Any]) -> None:
    """What a compile takes from the cache is described as well."""
    check()
    check()
    assert len(reports) == 2 and reports[0] == reports[1]


@pytest.mark.once("asks what a compile tells AOTAutograd")
def test_nothing_is_reported_on_a_cpu_by_default(reports: list[Any]) -> None:
    check(options={})
    assert not reports


def _lost(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that keeps values and drops strides, as a file may."""
    return torch.tensor(tensor.tolist(), dtype=tensor.dtype)


@pytest.mark.once("asks what a compile tells AOTAutograd")
def test_hooks_that_lose_strides(reports: list[Any]) -> None:
    check(context=lambda: torch.autograd.graph.saved_tensors_hooks(_lost, lambda tensor: tensor))
    assert reports


def _fail_in(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    real = compiling._compile

    def compile_(graph: Any, inputs: Any, config: Any, what: str, *others: Any) -> Any:
        if what == kind:
            raise RuntimeError("on purpose")
        return real(graph, inputs, config, what, *others)

    monkeypatch.setattr(compiling, "_compile", compile_)


@pytest.mark.once("asks what a compile tells AOTAutograd")
@pytest.mark.rotates(2)
@pytest.mark.parametrize("kind", [Block, Strided])
def test_eager_takes_backward_over(kind: type[Block], monkeypatch: pytest.MonkeyPatch, reports: list[Any]) -> None:
    _fail_in(monkeypatch, "backward")
    with pytest.warns(UserWarning, match="on purpose"):
        check(kind, options=OPTIONS | {"on_error": "eager"})
    assert reports


@pytest.mark.once("asks what a compile tells AOTAutograd")
def test_eager_takes_forward_over(monkeypatch: pytest.MonkeyPatch, reports: list[Any]) -> None:
    _fail_in(monkeypatch, "forward")
    with pytest.warns(UserWarning, match="on purpose"):
        check(options=OPTIONS | {"on_error": "eager"})
    assert not reports


@pytest.mark.once("asks what a compile tells AOTAutograd")
@pytest.mark.rotates(2)
@pytest.mark.parametrize("kind", [Block, Strided])
def test_compiled_autograd(kind: type[Block], reports: list[Any]) -> None:
    with torch._dynamo.config.patch(compiled_autograd=True):
        check(kind)
    assert reports


@pytest.mark.once("looks at the IR of a compile")
def test_every_convolution_has_its_channels_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are neither read nor written in another layout, in forward and in backward."""
    convolutions: list[AtenOp] = []
    real = host.build

    def build(ir: ModuleOp, *args: Any, **options: Any) -> Any:
        convolutions.extend(op for op in ir.walk() if isinstance(op, AtenOp) and op.packet.startswith("convolution"))
        return real(ir, *args, **options)

    monkeypatch.setattr(host, "build", build)
    check(sizes=((2, 32),))
    assert len(convolutions) == 8
    for op in convolutions:
        images_of = [*op.operands[: 1 + op.packet.endswith("backward")], op.results[0]]
        types = [value.type for value in images_of if isinstance(value.type, TensorType)]
        assert all(type_.strides[1] is ONE and not type_.is_contiguous for type_ in types), str(op)


def test_twice_through_one_graph() -> None:
    """Backward may run again, over the same saved tensors."""
    torch._dynamo.reset()
    plain = module()
    ours = copy.deepcopy(plain)
    losses = [
        plain(images()).square().sum(),
        torch.compile(ours, backend="inductile", options=OPTIONS)(images()).square().sum(),
    ]
    for _ in range(2):
        for loss in losses:
            loss.backward(retain_graph=True)
    for one, other in zip(plain.parameters(), ours.parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad, rtol=1e-3, atol=1e-5)
