"""Launching Triton kernels from host programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...dialects import kernel
from ...dialects.aten.types import TensorType
from ...passes.kernel.launch_facts import ranges_of
from ..host.constants import Constants
from ..host.expressions import expression
from ..host.launchers import Launch, Launcher
from .bound import BoundKernel, is_interpreting, warm_up
from .kernel import TritonKernel
from .kernel_emitter import emit_kernel
from .loading import load_functions
from .source import file_text
from .targets import TritonTarget, target_named


def bind(function: kernel.FuncOp) -> Callable[..., None]:
    """A callable that runs one kernel: `launch(*buffers, *symbols)`. Compiles it for the target that it names."""
    source = emit_kernel(function, ranges_of(function))
    bound = bind_sources([source], [_target_of(function)])[0]

    def launch(*arguments: Any) -> None:
        values = dict(zip(source.symbols, arguments[source.buffers :], strict=True))
        bound(source.programs(values), source.needs_wide_index(values), *arguments)

    return launch


def bind_sources(sources: Sequence[TritonKernel], targets: Sequence[TritonTarget]) -> list[BoundKernel]:
    """Load kernels and make them callable."""
    if is_interpreting():
        from .interpreter import install

        install()
    functions = load_functions(sources)
    return [BoundKernel(*each) for each in zip(sources, targets, functions, strict=True)]


def _target_of(function: kernel.FuncOp) -> TritonTarget:
    assert function.target is not None
    return target_named(function.target.data)


class TritonLauncher:
    """Compiles the Triton kernels of one program and writes its launches."""

    needs_tensors = True

    def __init__(self) -> None:
        self._kernels: dict[str, BoundKernel] = {}

    def compile(self, functions: Sequence[kernel.FuncOp]) -> None:
        """Emit, load and compile kernels. One whose integers decide about its code is compiled when it is launched."""
        sources = [emit_kernel(function, ranges_of(function)) for function in functions]
        bound = bind_sources(sources, list(map(_target_of, functions)))
        warm_up(bound)
        for function, each in zip(functions, bound, strict=True):
            self._kernels[function.sym_name.data] = each

    @property
    def sources(self) -> dict[str, str]:
        """All kernels as one Python file."""
        return {"kernels.py": file_text(bound.source for bound in self._kernels.values())}

    def write(self, launches: Sequence[Launch], constants: Constants) -> list[str]:
        """One line a launch."""
        return [self._line(launch, constants) for launch in launches]

    def _line(self, launch: Launch, constants: Constants) -> str:
        bound = self._kernels[launch.function.sym_name.data]
        source = bound.source
        texts = {s: t if t.isidentifier() else f"({t})" for s, t in zip(source.symbols, launch.integers, strict=True)}
        programs = expression(source.grid, texts)
        wide = "False"
        if source.chooses_index:
            longest = ", ".join(expression(extent, texts) for extent in dict.fromkeys(source.extents))
            wide = f"max({longest}, 0) > 0x7FFFFFFF"
        call = constants.bind("launch", bound)
        arguments = ", ".join([programs, wide, *_on_one_device(launch, constants), *launch.integers])
        return f"{call}({arguments})  # {source.name}"


def _on_one_device(launch: Launch, constants: Constants) -> list[str]:
    """The tensors' names; a tensor in the CPU's memory, which eager allows where it has no dimensions, is moved."""
    devices = [v.type.device if isinstance(v.type, TensorType) else "cpu" for v in launch.buffers]
    elsewhere = sorted({d for d in devices if d != "cpu"})
    if not elsewhere or "cpu" not in devices:
        return list(launch.tensors)
    device = constants.bind("device", torch.device(elsewhere[0]))
    return [
        f"{name}.to({device})" if where == "cpu" else name for name, where in zip(launch.tensors, devices, strict=True)
    ]


def make_launcher(config: Any = None) -> Launcher:
    """A launcher for the Triton kernels of one program."""
    return TritonLauncher()
