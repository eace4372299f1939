"""Launching Triton kernels from Python.

A kernel that checks its indices writes to a status word in pinned host memory, which the host reads before the next
launch of that kernel, and never waits for: like an assertion of eager's CUDA kernels, an error shows late. `check`
of a bound kernel raises at once what has been reported; whoever waits for the GPU anyway may call it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...dialects import kernel
from ...passes.kernel.launch_facts import ranges_of
from ..cpp.launch import kernel_error
from ..host.constants import Constants
from ..host.expressions import expression
from ..host.launchers import Launch, Launcher
from .kernel import TritonKernel
from .kernel_emitter import emit_kernel
from .loading import load_functions
from .source import file_text
from .targets import TritonTarget, target_named


def is_interpreting() -> bool:
    """Whether Triton runs kernels in its interpreter, on CPU tensors."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


class BoundKernel:
    """A kernel that can be called with the number of programs, its buffers and its integers."""

    def __init__(self, source: TritonKernel, target: TritonTarget, function: Any) -> None:
        import triton.language as tl

        self.source = source
        self._function = function
        self._options: dict[str, Any] = {
            **source.constexprs, "num_warps": source.num_warps, "num_stages": source.num_stages, **target.options,
        }  # fmt: skip
        self._widths = (tl.int32, tl.int64)
        self._status = _status_word() if source.errors else None

    def __call__(self, programs: int, wide: bool, *arguments: Any) -> None:
        """Launch on the current stream of the buffers' device. `wide`: a buffer needs 64-bit offsets.

        Raises what an earlier launch reported.
        """
        if self._status is not None:
            self.check()
            arguments = (*arguments, self._status)
        if not programs:
            return
        options = self._options
        if self.source.chooses_index:
            options = {**options, "INDEX": self._widths[wide]}
        device = arguments[0].device
        if device.type == "cpu" or device.index == torch.cuda.current_device():
            self._function[(programs,)](*arguments, **options)
        else:
            with torch.cuda.device(device):
                self._function[(programs,)](*arguments, **options)
        if device.type == "cpu" and self._status is not None:
            self.check()

    def check(self) -> None:
        """Raise the error that the kernel has reported so far, once."""
        assert self._status is not None
        code = int(self._status)
        if code:
            self._status.zero_()
            raise kernel_error(self.source.errors[code - 1])


def _status_word() -> torch.Tensor:
    return torch.zeros(1, dtype=torch.int32, pin_memory=torch.cuda.is_available() and not is_interpreting())


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
    return [
        BoundKernel(source, target, functions[source.name]) for source, target in zip(sources, targets, strict=True)
    ]


def _target_of(function: kernel.FuncOp) -> TritonTarget:
    assert function.target is not None
    return target_named(function.target.data)


class TritonLauncher:
    """Compiles the Triton kernels of one program and writes its launches."""

    needs_tensors = True

    def __init__(self) -> None:
        self._kernels: dict[str, BoundKernel] = {}

    def compile(self, functions: Sequence[kernel.FuncOp]) -> None:
        """Emit and load kernels; Triton compiles each when it is launched first."""
        sources = [emit_kernel(function, ranges_of(function)) for function in functions]
        for function, bound in zip(functions, bind_sources(sources, list(map(_target_of, functions))), strict=True):
            self._kernels[function.sym_name.data] = bound

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
            longest = ", ".join(expression(extent, texts) for extent in source.extents)
            wide = f"max({longest}, 0) > 0x7FFFFFFF"
        call = constants.bind("launch", bound)
        arguments = ", ".join([programs, wide, *launch.tensors, *launch.integers])
        return f"{call}({arguments})  # {source.name}"


def make_launcher() -> Launcher:
    """A launcher for the Triton kernels of one program."""
    return TritonLauncher()
