"""What the launches in a module tell about a kernel: on what device it runs and how large its symbols are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from ...dialects.raw import ops_of
from ...machines import HOST, in_host_memory
from .effects import written_buffers
from .sizes import Sizes


def launches_in(module: ModuleOp) -> Iterator[tuple[host.FuncOp, host.LaunchOp]]:
    """All launches, each with the program that it is in."""
    for function in module.body.block.ops:
        if isinstance(function, host.FuncOp):
            for op in ops_of(function.body.block):
                if type(op) is host.LaunchOp:  # `isinstance` takes far longer, and most ops are no launches
                    yield function, op


class LaunchSizes:
    """Estimates of the symbols of all kernels of a module, looked up when a kernel has symbols."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module

    @cached_property
    def _found(self) -> dict[str, Sizes]:
        return launch_sizes(self.module)

    def of(self, function: kernel.FuncOp) -> Sizes:
        """The estimates for one kernel."""
        return self._found.get(function.sym_name.data, Sizes()) if function.symbols.data else Sizes()


def launch_sizes(module: ModuleOp) -> dict[str, Sizes]:
    """Kernel name -> estimates of its symbols, from the hints of the function that launches it first."""
    symbols = {f.sym_name.data: f.symbols.data for f in module.body.block.ops if isinstance(f, kernel.FuncOp)}
    found: dict[str, Sizes] = {}
    hints: dict[host.FuncOp, Sizes] = {}
    for function, launch in launches_in(module):
        name = launch.kernel.root_reference.data
        if name in found or name not in symbols:
            continue
        if function not in hints:
            hints[function] = Sizes.of_function(function)
        found[name] = passed_sizes(launch, [s.data for s in symbols[name]], hints[function])
    return found


def passed_sizes(launch: host.LaunchOp, symbols: Sequence[str], sizes: Sizes) -> Sizes:
    """Estimates of a kernel's symbols in one launch, by those of the program that launches it."""
    passed = dict(zip(symbols, launch.symbols.data, strict=True))
    guesses = [name for name, value in passed.items() if sizes.is_guess(value)]
    return Sizes({name: sizes.of(value) for name, value in passed.items()}, guesses)


def may_fail(launch: host.LaunchOp, kernels: Mapping[str, kernel.FuncOp]) -> bool:
    """Whether a launch may report an error, as that of a kernel which is not known may."""
    function = kernels.get(launch.kernel.root_reference.data)
    return function is None or (function.errors is not None and len(function.errors.data) > 0)


def written_by(launch: host.LaunchOp, function: kernel.FuncOp | None) -> list[SSAValue]:
    """The buffers that a launch of a kernel writes; all of them where the kernel is not known."""
    if function is None:
        return list(launch.buffers)
    stored = written_buffers(function.body.block)
    return [v for v, argument in zip(launch.buffers, function.body.block.args, strict=False) if argument in stored]


def cpu_kernels(module: ModuleOp) -> set[str]:
    """Names of the kernels that are launched on CPU tensors."""
    return {launch.kernel.root_reference.data for _, launch in launches_in(module) if on_cpu(launch)}


def device_of(buffers: Sequence[SSAValue]) -> str:
    """The device that a launch runs on: the one of its buffers that is not the CPU's memory, which it falls back to."""
    devices = {v.type.device for v in buffers if isinstance(v.type, TensorType)}
    return min((device for device in devices if not in_host_memory(device)), default=HOST)


def on_cpu(launch: host.LaunchOp) -> bool:
    """Whether all buffers of a launch are tensors on the CPU."""
    types = [value.type for value in launch.buffers]
    return all(isinstance(t, TensorType) and in_host_memory(t.device) for t in types)
