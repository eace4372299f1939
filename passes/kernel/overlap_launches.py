"""The pass `kernel-overlap-launches`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.effects import Effect, effect_of
from ...dialects.machine import targets_of
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.functions import kernels_of
from ..analysis.launches import LaunchSizes
from ..counters import counter
from .gpu_steps import programs_of
from .tiles import is_grid

#: programs of a processor from which on a launch waits for the one in front: an H200 starts programs that wait by
#: themselves at the rate of one in 1.24 ns, others in 0.75. 32,000 programs of one row of 4 bits took 39.6 us, and 25.9
MOST_PROGRAMS = 64


@dataclass(frozen=True)
class KernelOverlapLaunches(ModulePass):
    """Let launches begin before those in front have ended (programmatic dependent launch).

    Level: kernel.

    Precondition: behind all passes that move or tile what a kernel does; nothing is freed yet.
    Guarantee: with the option, kernels for a GPU that can do so (`GpuTarget.overlaps`), of which launches follow one
    another with nothing but allocations in between, have a `kernel.await` in front of all that each program reads and
    writes. Whoever launches decides whether a launch may begin early: it has to follow one of the same program
    (`backends/triton/runs.py`). Kernels of very many programs stay as they are. To read weights in front of the await
    was slower: a 1.1B Llama took 0.83 ms a token in 16 bits, where it takes 0.80, and 0.82 with launches apart.

        kernel.for i0 in 0 to 2048 map grid { %v = kernel.load %x[i0] ... }
    becomes
        kernel.for i0 in 0 to 2048 map grid { kernel.await  %v = kernel.load %x[i0] ... }
    """

    name = "kernel-overlap-launches"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    overlap_launches: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every kernel that is launched beside another one."""
        target = targets_of(op).main
        if not self.overlap_launches or not isinstance(target, GpuTarget) or not target.overlaps:
            return
        kernels, sizes = kernels_of(op), LaunchSizes(op)
        for function in (kernels[name] for name in sorted(_neighbours(op) & kernels.keys())):
            few = programs_of(function, sizes.of(function)) <= MOST_PROGRAMS * target.processors
            if few and function.num_warps is not None and (blocks := _blocks(function)) and counter(self.name):
                for block in blocks:
                    first = block.first_op
                    assert first is not None
                    block.insert_op_before(kernel.AwaitOp.create(location=first.location), first)


def _neighbours(module: ModuleOp) -> set[str]:
    """Kernels that follow one another somewhere."""
    found: set[str] = set()
    for function in module.ops:
        last: str | None = None
        for op in function.body.block.ops if isinstance(function, host.FuncOp) else ():
            if isinstance(op, host.LaunchOp):
                name = op.kernel.root_reference.data
                found |= set() if last is None else {last, name}
                last = name
            elif not isinstance(op, host.EmptyOp | host.ViewOp | host.FreeOp):
                last = None
    return found


def _blocks(function: kernel.FuncOp) -> list[Block]:
    """Where the programs of each nest begin, or of a kernel that has none on the grid; none for what waits already, and
    where statements beside nests touch memory."""
    block = function.body.block
    nests = [op for op in block.ops if is_grid(op)]
    if any(isinstance(op, kernel.AwaitOp) for op in function.walk()):
        return []
    if not nests:
        return [block]
    if any(effect_of(op) is not Effect.NONE for op in block.ops if op not in nests):
        return []
    return [_innermost(nest) for nest in nests]


def _innermost(nest: Operation) -> Block:
    """The body of the innermost loop of the grid."""
    block = nest.regions[0].block
    inner = next((op for op in block.ops if is_grid(op)), None)
    return block if inner is None else _innermost(inner)
