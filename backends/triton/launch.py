"""Launching Triton kernels from host programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from ...dialects import kernel
from ...dialects.aten.types import TensorType
from ...dialects.sym import Ranges
from ...machines import in_host_memory
from ...passes.analysis.launch_facts import LaunchFacts
from ...passes.analysis.launches import LaunchSizes, device_of
from ..host import runtime
from ..host.constants import Constants
from ..host.expressions import expression
from ..host.gpu import gpu
from ..host.launchers import Launch, Launcher
from .bound import BoundKernel, DeviceKernel, compile_for_files, is_interpreting, warm_up
from .kernel import MAX_INDEX, TritonKernel
from .kernel_emitter import emit_kernel
from .runs import MAX_ARGUMENTS, MAX_INTEGERS, MAX_LAUNCHES, SCRATCH, RunLaunch, is_possible, run_kernel, write_run
from .source import file_text
from .targets import TritonTarget, triton_target


def bind(function: kernel.FuncOp) -> Callable[..., None]:
    """A callable that runs one kernel: `launch(*buffers, *symbols)`. Compiles it for the target that it names."""
    (source,) = _emit([function])
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
    return [BoundKernel(*each) for each in zip(sources, targets, strict=True)]


def _emit(functions: Sequence[kernel.FuncOp]) -> list[TritonKernel]:
    """Kernels of one module as text, each with what its launches there say of its integers."""
    module = functions[0].parent_op() if functions else None
    if not isinstance(module, ModuleOp):
        return [emit_kernel(function, Ranges()) for function in functions]
    facts, sizes = LaunchFacts(module), LaunchSizes(module)
    return [replace(emit_kernel(each, facts.of(each)), hints=sizes.of(each).seen) for each in functions]


def _target_of(function: kernel.FuncOp) -> TritonTarget:
    assert function.target is not None
    return triton_target(function.target.data)


class TritonLauncher:
    """Compiles the Triton kernels of one program, at most `jobs` at once (0: one a core), and writes its launches."""

    def __init__(self, jobs: int = 0) -> None:
        self._jobs = jobs
        self._kernels: dict[str, BoundKernel] = {}
        self._ahead = False
        self.needs_tensors = is_interpreting()

    def compile(self, functions: Sequence[kernel.FuncOp]) -> None:
        """Emit, load and compile kernels. One whose integers decide about its code is compiled when it is launched."""
        sources = _emit(functions)
        bound = bind_sources(sources, list(map(_target_of, functions)))
        if self._ahead:
            compile_for_files(bound, self._jobs)
        else:
            warm_up(bound, self._jobs)
        for function, each in zip(functions, bound, strict=True):
            self._kernels[function.sym_name.data] = each

    def prepare_for_files(self) -> None:
        """Compile for a process of another machine: nothing is loaded here, and launches rely on no device of here."""
        self._ahead = True

    @property
    def kernels(self) -> dict[str, BoundKernel]:
        """What was compiled, by name."""
        return dict(self._kernels)

    @property
    def sources(self) -> dict[str, str]:
        """All kernels as one Python file."""
        return {"kernels.py": file_text(bound.source for bound in self._kernels.values())}

    @property
    def checks(self) -> list[Callable[[], None]]:
        """Of each kernel that may report an error, what raises the one that it has reported so far."""
        return [bound.check for bound in self._kernels.values() if bound.source.errors]

    def write(self, launches: Sequence[Launch], constants: Constants) -> list[str]:
        """Lines that make the launches, as many as can be in one call; more where tensors have to be moved."""
        lines: list[str] = []
        run: list[RunLaunch] = []
        for launch in launches:
            member = self._member(launch)
            if run and (member is None or len(run) == MAX_LAUNCHES):
                lines += write_run(run, constants)
                run = []
            if member is None:
                lines += self._lines(launch, constants)
            else:
                run.append(member)
        return lines + (write_run(run, constants) if run else [])

    def _member(self, launch: Launch) -> RunLaunch | None:
        """A launch as one of a run; None where Python has to look at more than addresses, or to move something."""
        bound = self._kernels[launch.function.sym_name.data]
        device = device_of(launch.buffers)
        kinds = [value.type for value in launch.buffers]
        here = all(isinstance(kind, TensorType) and kind.device == device for kind in kinds)
        short = len(kinds) + len(launch.integers) < MAX_ARGUMENTS - SCRATCH and len(launch.integers) <= MAX_INTEGERS
        if self.needs_tensors or not here or device != launch.current or not short:
            return None
        on_device = bound.on(torch.device(device).index or 0)
        scratch = _scratch(on_device, self._ahead)
        if scratch is None:
            return None
        programs, longest = map(launch.share, _grid_texts(bound.source, launch))
        integers = tuple(map(launch.share, launch.integers))
        return RunLaunch(
            on_device, programs, launch.pointers, integers, longest, scratch, bound.source.descriptor_bytes > 0
        )

    def _lines(self, launch: Launch, constants: Constants) -> list[str]:
        bound = self._kernels[launch.function.sym_name.data]
        source = bound.source
        programs, longest = _grid_texts(source, launch)
        is_wide = f"{longest} > {MAX_INDEX}" if source.chooses_index else "False"
        numbers = list(map(launch.share, [programs, is_wide]))
        integers = map(launch.share, launch.integers)
        if self.needs_tensors:
            call = constants.bind("launch", bound)
            return [f"{call}({', '.join([*numbers, *launch.tensors, *integers])})  # {source.name}"]
        device = device_of(launch.buffers)
        on_device = bound.on(torch.device(device).index or 0)
        moved, pointers = _on_one_device(launch, device, constants)
        stream = "stream" if device == launch.current else f"current_stream({on_device.device})"
        arguments = [stream, *numbers, *pointers, *integers]
        call = on_device if self._ahead else on_device.entry()
        line = f"{constants.bind('launch', call)}({', '.join(arguments)})  # {source.name}"
        if device != launch.current:
            constants.fixed("current_stream", gpu(torch.device(device).type).current_stream)
            guard = constants.fixed("guard", gpu(torch.device(device).type).module.device)
            line = f"with {guard}({constants.bind('device', torch.device(device))}): {line}"
        return [*moved, line, *([f"del {', '.join(m.partition(' ')[0] for m in moved)}"] if moved else [])]


def _scratch(kernel: DeviceKernel, ahead: bool) -> int | None:
    """Null addresses behind the arguments of a kernel; None where C cannot launch it.

    ahead: whether it is to be launched by another process, of a machine with such a device
    """
    if ahead:
        return None if run_kernel() is None else kernel.kernel.likely_scratch()
    if not kernel.kernel.target.is_here or not is_possible():
        return None
    kernel.load_likely()
    return next((direct.scratch for direct in kernel.directs.values()), None)


def _grid_texts(source: TritonKernel, launch: Launch) -> tuple[str, str]:
    """Texts of the number of programs, and of the length of the longest buffer where it decides about offsets."""
    texts = {s: t if t.isidentifier() else f"({t})" for s, t in zip(source.symbols, launch.integers, strict=True)}
    lengths = dict.fromkeys(expression(extent, texts) for extent in source.extents)
    longest = f"max({', '.join(lengths)}, 0)" if source.chooses_index else "0"
    return expression(source.grid, texts), longest


def _on_one_device(launch: Launch, device: str, constants: Constants) -> tuple[list[str], list[str]]:
    """Lines that copy what lies in the CPU's memory, which eager allows where it has no dimensions; all addresses."""
    lines: list[str] = []
    pointers: list[str] = []
    for value, name, pointer in zip(launch.buffers, launch.tensors, launch.pointers, strict=True):
        moves = isinstance(value.type, TensorType) and in_host_memory(value.type.device)
        if moves and not in_host_memory(device):
            move = constants.fixed("to_device", runtime.to_device)
            name, original = f"moved{len(lines)}", name
            lines.append(f"{name} = {move}({original}, {constants.bind('device', torch.device(device))})")
            pointer = f"{name}.data_ptr()"
        pointers.append(pointer)
    return lines, pointers


def make_launcher(config: Any = None, checked: bool = False) -> Launcher:
    """A launcher for the Triton kernels of one program."""
    return TritonLauncher(0 if config is None else config.compile_threads)
