"""Training steps, and inference, with the layouts and kernels of a GPU, in Triton's interpreter, against eager.

Convolutions run on the CPU; everything around them is what an H100 would be given.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from xdsl.ir import SSAValue

from inductile.backends.compile_graph import report_layouts
from inductile.backends.compiled import CompiledGraph, GraphReport
from inductile.backends.config import Config
from inductile.backends.host import build
from inductile.backends.torch_compile import compile_dynamo_graph
from inductile.dialects import host
from inductile.dialects.aten import AtenOp, TensorType
from inductile.dialects.sym import ONE
from inductile.lowering.fx_import import import_graph
from inductile.lowering.fx_private import without_modes
from inductile.passes.kernel.gpu_blocks import GpuBlocks
from inductile.passes.loop import split_reductions

from .joined import lowered


class Interpreted:
    """A Dynamo backend for a GPU that is not there; `programs` are those of forward and backward, `text` all IR."""

    def __init__(self, blocks: GpuBlocks | None = None) -> None:
        self.blocks = blocks
        self.programs: list[host.FuncOp] = []
        self.text = ""

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        return compile_dynamo_graph(graph, inputs, Config(), self._compile)

    def _compile(self, kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> CompiledGraph:
        imported = import_graph(graph, inputs)
        imported.module = lowered(imported.module, blocks=self.blocks)
        self.text += str(imported.module)
        self.programs += [op for op in imported.module.ops if isinstance(op, host.FuncOp)]
        with without_modes():
            compiled = CompiledGraph(build(imported.module), imported, GraphReport(kind))
        if kind == "forward":
            report_layouts(imported, inputs)
        return compiled

    def images(self) -> list[TensorType]:
        """The types of what convolutions read and write, weights apart."""
        found: list[TensorType] = []
        for op in self._convolutions():
            values = [*op.operands[: 1 + op.packet.endswith("backward")], op.results[0]]
            found += [value.type for value in values if isinstance(value.type, TensorType)]
        return found

    def weights(self) -> list[SSAValue]:
        """The weights that convolutions read."""
        return [op.operands[1 + op.packet.endswith("backward")] for op in self._convolutions()]

    def _convolutions(self) -> list[AtenOp]:
        ops = [op for program in self.programs for op in program.body.block.ops]
        return [op for op in ops if isinstance(op, AtenOp) and op.packet.startswith("convolution")]


class Pooled(nn.Module):
    """Statistics of columns long enough to be cut, a pool, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(4, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.deep, self.deep_norm = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.head = nn.Conv2d(16, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        x = F.relu(x + self.deep_norm(self.deep(x)))
        return self.head(x).mean((2, 3))


def _gradients(module: nn.Module, call: Callable[..., torch.Tensor], x: torch.Tensor) -> dict[str, torch.Tensor]:
    x = x.clone().requires_grad_()
    call(x).float().square().sum().backward()
    found = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    assert x.grad is not None
    return found | {"input": x.grad} | {name: value.clone() for name, value in module.named_buffers()}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_convolutions(training: bool, dynamic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_reductions, "MIN_COLUMN", 32)  # each program takes the interpreter milliseconds
    monkeypatch.setattr(split_reductions, "PART_OF_COLUMN", 16)
    monkeypatch.setattr(split_reductions, "ROWS_OF_RESULT", 1)
    monkeypatch.setattr(split_reductions, "FEW_PROGRAMS", 1)
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = Pooled().train(training)
    twin, exact = copy.deepcopy(module), copy.deepcopy(module).double()
    x = torch.randn(2, 4, 12, 12)
    backend = Interpreted()
    if dynamic:
        torch._dynamo.mark_dynamic(x, 0)
    got = _gradients(twin, torch.compile(twin, backend=backend), x)
    expected = _gradients(module, module, x)
    for name, value in _gradients(exact, exact, x.double()).items():
        assert got[name].stride() == expected[name].stride(), name
        limit = 1e-5 * value.double().norm() + 1e-4  # the gradient of a bias in front of a norm is 0
        assert (got[name].double() - value).norm() < limit, name
    images = backend.images()
    assert len(images) == 15 and all(not type_.is_contiguous for type_ in images)
    weights = [cast(TensorType, value.type) for value in backend.weights()]
    assert len(weights) == 6 and all(type_.strides[1] is ONE for type_ in weights)
    # for each norm, parts and what joins them
    assert backend.text.count("kernel.reduce [sum, welford]") == (4 if training else 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("arranged", [False, True])
def test_weights_in_inference(arranged: bool, dtype: torch.dtype) -> None:
    """A contiguous weight of several points is copied in front of its convolution, unless it has channels last."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = Pooled().eval().to(dtype)
    if arranged:
        module = module.to(memory_format=torch.channels_last)
    x = torch.randn(2, 4, 8, 8, dtype=dtype)
    backend = Interpreted()
    with torch.no_grad():
        got = torch.compile(module, backend=backend)(x)
        expected = copy.deepcopy(module).double()(x.double())
    assert got.dtype is dtype and (got.double() - expected).norm() < 64 * torch.finfo(dtype).eps * expected.norm()
    made = [value for value in backend.weights() if isinstance(value.owner, host.EmptyOp)]
    assert len(made) == (0 if arranged else 2)
    assert all(cast(TensorType, value.type).strides[1] is ONE for value in backend.weights())
