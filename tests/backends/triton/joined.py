"""Backward graphs whose sums of columns a kernel carries from row to row, as programs that run on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from inductile.backends.compile_graph import eager_callable
from inductile.backends.triton.offline import OfflineBackend
from inductile.dialects import host, kernel
from inductile.dialects.context import new_context
from inductile.lowering.fx_import import import_graph
from inductile.lowering.pipeline import named_passes
from inductile.passes.kernel.gpu_blocks import GpuBlocks
from inductile.passes.manager import PassManager
from inductile.passes.module.attach_target import AttachTarget

from ...passes.kernel.stages import on_cpu
from .support import in_blocks, parse

Tensor = torch.Tensor
Function = Callable[..., Tensor]


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def softmax_with_bias(x: Tensor, b: Tensor) -> Tensor:
    return (x + b).softmax(-1)


def two_scales(x: Tensor, v: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return ((x - x.mean(-1, keepdim=True)) * v).tanh() * w + b


def biased(x: Tensor, a: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(F.gelu(x + a), (x.shape[-1],), w, b)


#: function -> its arguments of one row
FUNCTIONS: dict[str, tuple[Function, int]] = {
    "layer_norm": (layer_norm, 2),
    "rms_norm": (rms_norm, 1),
    "softmax_with_bias": (softmax_with_bias, 1),
    "two_scales": (two_scales, 3),
    "biased": (biased, 3),
}


def inputs_of(shape: Sequence[int], vectors: int, dtype: torch.dtype) -> list[Tensor]:
    """Random inputs: rows, and vectors as long as a row."""
    generator = torch.Generator().manual_seed(0)
    shapes = [tuple(shape), *[(shape[-1],)] * vectors]
    return [torch.randn(s, generator=generator).to(dtype).requires_grad_() for s in shapes]


class Backward(OfflineBackend):
    """Keeps the backward graph, and what it is called with."""

    def __init__(self) -> None:
        super().__init__(["cuda:90"])
        self.module: ModuleOp | None = None
        self.arguments: list[Any] = []

    def _compile(self, kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        run = eager_callable(graph)
        if kind != "backward":
            return run
        imported = import_graph(graph, inputs)
        AttachTarget("cuda:90").apply(new_context(), imported.module)
        self.module = imported.module

        def kept(arguments: list[Any]) -> Any:
            self.arguments = [a.clone() if isinstance(a, Tensor) else a for a in arguments]
            return run(arguments)

        kept._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return kept


def captured(
    name: str, shape: Sequence[int], dtype: torch.dtype, dynamic: bool = False
) -> tuple[Backward, list[Tensor]]:
    """The backward graph of a function, at the aten level and on a GPU, and the gradients of eager in float64."""
    function, vectors = FUNCTIONS[name]
    inputs = inputs_of(shape, vectors, dtype)
    backend = Backward()
    torch._dynamo.reset()
    if dynamic:
        torch._dynamo.mark_dynamic(inputs[0], 0)
    result = torch.compile(function, backend=backend)(*inputs)
    tangent = torch.randn(result.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    result.backward(tangent)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    function(*exact).backward(tangent.double())
    gradients = [x.grad for x in exact]
    assert backend.module is not None and all(g is not None for g in gradients)
    return backend, gradients  # pyright: ignore[reportReturnType]


def lowered(module: ModuleOp, stop_after: str | None = None, blocks: GpuBlocks | None = None) -> ModuleOp:
    """A module as it comes out of the pipeline for an H100, with the types of tensors on the CPU."""
    passes = named_passes("default", "cuda:90", stop_after=stop_after)
    if blocks is not None:
        passes = in_blocks(passes, blocks)
    PassManager(passes).run(new_context(), module)
    module.verify()
    return parse(on_cpu(str(module)))


def launches(module: ModuleOp) -> list[str]:
    """Names of the kernels that a program launches, in order."""
    (program,) = (op for op in module.ops if isinstance(op, host.FuncOp))
    found = (op for op in program.body.block.ops if isinstance(op, host.LaunchOp))
    return [op.kernel.root_reference.data for op in found]


def joint(module: ModuleOp) -> list[kernel.FuncOp]:
    """The kernels that carry sums of columns from row to row."""
    return [op for op in module.ops if isinstance(op, kernel.FuncOp) and any(map(_carries_sums, op.walk()))]


def _carries_sums(op: Operation) -> bool:
    """Whether a loop that reduces rows stores to a local buffer which is there before it."""
    if not isinstance(op, kernel.ForOp) or not any(isinstance(inner, kernel.ReduceOp) for inner in op.walk()):
        return False
    stored = (inner.buffer.owner for inner in op.walk() if isinstance(inner, kernel.StoreOp))
    return any(isinstance(local, kernel.LocalOp) and not op.is_ancestor(local) for local in stored)
