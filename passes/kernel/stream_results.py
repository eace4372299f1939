"""The pass `kernel-stream-results`."""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from ...dialects.machine import targets_of
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.functions import kernels_of
from ..analysis.launches import launches_in, written_by
from ..analysis.lifetimes import Lifetimes, viewed
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import bytes_of
from ..counters import counter


@dataclass(frozen=True)
class KernelStreamResults(ModulePass):
    """Mark the kernels whose results need not stay in the GPU's cache.

    Level: kernel, with the host programs that launch the kernels.

    Precondition: `kernel-merge-launches`, since what is one launch and what it writes is final then.
    Guarantee: a kernel is `streams` if each of its launches touches more bytes than the cache holds and nothing in its
    program reads what it writes afterwards. Nothing else changes. A target may let such results make room for what is
    read: they go to memory as they come, not in the way of other reads. On an H200, ms without and with it: softmax
    0.0347 and 0.0322, its backward 0.0503 and 0.0476, silu(a) * b 0.127 and 0.125, relu of a cat 0.0339 and 0.0325; but
    for a kernel with a sum over its result behind it 0.0826 and 0.0861.

        kernel.func @f(%x: !kernel.buffer<f32, 67108864>, %y: !kernel.buffer<f32, 67108864>) { ... }
        ...
        host.launch @f(%x, %y)
        host.return %y
    becomes
        kernel.func @f(%x: !kernel.buffer<f32, 67108864>, %y: !kernel.buffer<f32, 67108864>) streams { ... }
    """

    name = "kernel-stream-results"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Mark kernels of the module."""
        target = targets_of(op).main
        if not isinstance(target, GpuTarget):
            return
        kernels = kernels_of(op)
        launches: dict[str, list[tuple[host.FuncOp, host.LaunchOp]]] = defaultdict(list)
        for program, launch in launches_in(op):
            launches[launch.kernel.root_reference.data].append((program, launch))
        programs = [program for program in op.body.block.ops if isinstance(program, host.FuncOp)]
        orders = {program: (Lifetimes(program.body.block), Sizes.of_function(program)) for program in programs}
        for name, places in launches.items():
            function = kernels.get(name)
            if function is None or function.streams is not None:
                continue
            ends = (_ends_in(function, launch, *orders[program], target) for program, launch in places)
            if all(ends) and counter(self.name):
                function.properties["streams"] = UnitAttr()


def _ends_in(
    function: kernel.FuncOp, launch: host.LaunchOp, lifetimes: Lifetimes, sizes: Sizes, target: GpuTarget
) -> bool:
    """Whether a launch is larger than the cache, and what it writes is the end of the program for its memory."""
    touched = {value: value.type for value in launch.buffers if isinstance(value.type, TensorType)}
    if sum(sizes.of(bytes_of(type_)) for type_ in touched.values()) <= target.cache_bytes:
        return False
    return all(_is_only_returned(viewed(value), launch, lifetimes) for value in written_by(launch, function))


_ENDS = (host.ReturnOp, host.FreeOp)


def _is_only_returned(value: SSAValue, launch: host.LaunchOp, lifetimes: Lifetimes) -> bool:
    """Whether nothing but a return uses a value or a view of it behind a launch."""
    for use in value.uses:
        user = use.operation
        if isinstance(user, host.ViewOp):
            if not _is_only_returned(user.results[0], launch, lifetimes):
                return False
        elif lifetimes.position[user] > lifetimes.position[launch] and not isinstance(user, _ENDS):
            return False
    return True
