"""Graphs for a GPU on a machine without one: everything but running.

The backend here takes graphs through the pipelines of several targets and emits kernels and host programs; the graph
itself is run by torch. Under a `FakeTensorMode`, tensors "on the GPU" have sizes and no memory; autograd needs a GPU
even for those, so graphs of CPU tensors can be moved in the IR instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from ...dialects import host
from ...dialects.machine import set_targets
from ...lowering.fx_import import ImportedGraph, import_graph
from ...lowering.fx_private import without_modes
from ...passes.common.moving import devices_in, move_tensors
from ..compile_graph import choose_passes, eager_callable, report_layouts, with_torch_flags
from ..compiled import GraphReport
from ..config import Config
from ..run_passes import run_passes
from ..torch_compile import compile_dynamo_graph
from .kernel import TritonKernel
from .source import emit


class OfflineBackend:
    """A Dynamo backend that compiles every graph for each target and keeps what it emitted.

    move_to:  the device that graphs of CPU tensors are compiled for, if any
    kernels:  (target, kernel) of all graphs
    programs: (kind of the graph, target, Python text of its host program)
    modules:  (kind of the graph, target, the IR of both)
    """

    def __init__(self, targets: Sequence[str], move_to: str = "", options: dict[str, Any] | None = None) -> None:
        self.targets = tuple(targets)
        self.move_to = move_to
        self.config = Config.resolve(None, options)
        self.kernels: list[tuple[str, TritonKernel]] = []
        self.programs: list[tuple[str, str, str]] = []
        self.modules: list[tuple[str, str, ModuleOp]] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        """Compile one Dynamo graph; the callable runs it through torch."""
        return compile_dynamo_graph(graph, inputs, self.config, self._compile)

    def _compile(self, kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        config = with_torch_flags(self.config)
        for target in self.targets:
            imported = self._lowered(graph, inputs, target, config, kind)
            self.modules.append((kind, target, imported.module))
            self.kernels += [(target, each) for each in emit(imported.module)]
            with without_modes():
                self.programs.append((kind, target, program_text(imported.module, imported.references)))
            if kind == "forward" and target == self.targets[0]:
                report_layouts(imported, inputs)  # the backward graph is compiled for what this target returns
        return eager_callable(graph)

    def _lowered(
        self,
        graph: torch.fx.GraphModule,
        inputs: Sequence[Any],
        target: str,
        config: Config,
        kind: str,
    ) -> ImportedGraph:
        def load() -> ImportedGraph:
            imported = import_graph(graph, inputs)
            if self.move_to:
                move_tensors(imported.module, dict.fromkeys(devices_in(imported.module), self.move_to))
            set_targets(imported.module, [target])
            return imported

        return run_passes(load, lambda module: choose_passes(config), config, GraphReport(kind))


def program_text(module: ModuleOp, references: Any = None) -> str:
    """The Python text of a module's host program; its kernels for a GPU are emitted and not compiled."""
    from ..host.program import emitter_of

    functions = [op for op in module.ops if isinstance(op, host.FuncOp)]
    return emitter_of(functions[0], module, None, references or {}).source()


def on_fake_gpu(module: torch.nn.Module, mode: Any) -> None:
    """Replace a module's parameters and buffers by fake ones on a GPU, in place; shared ones stay shared."""
    fakes: dict[int, torch.Tensor] = {}

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in fakes:
            with mode:
                made = fake_like(tensor)
                is_parameter = isinstance(tensor, torch.nn.Parameter)
                fakes[id(tensor)] = torch.nn.Parameter(made, tensor.requires_grad) if is_parameter else made
        return fakes[id(tensor)]

    # old tensors are kept until the end, so that no identity is reused
    old = [t for each in module.modules() for t in (*each._parameters.values(), *each._buffers.values())]
    for each in module.modules():
        for own in (each._parameters, each._buffers):
            for name, tensor in own.items():
                if tensor is not None:
                    own[name] = fake(tensor)  # pyright: ignore[reportArgumentType]
    del old


def fake_like(tensor: torch.Tensor) -> torch.Tensor:
    """Under a fake mode, a tensor of the same layout on a GPU."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda:0")
