"""The pass `kernel-overlap-launches`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...dialects.effects import is_pure
from ...dialects.machine import targets_of
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.functions import kernels_of
from ..analysis.launches import LaunchSizes
from ..analysis.loops import Loop
from ..analysis.slices import backward_slice
from ..counters import counter
from .gpu_steps import programs_of
from .overlapping import constants_of, followers_of, may_overlap, programs_in


@dataclass(frozen=True)
class KernelOverlapLaunches(ModulePass):
    """Let launches begin before those in front have ended (programmatic dependent launch).

    Level: kernel.

    Precondition: behind all passes that move or tile what a kernel does; nothing is freed yet.
    Guarantee: with the option, kernels for a GPU that can do so (`GpuTarget.overlaps`), of which launches follow one
    another with nothing but allocations in between, have a `kernel.await` in front of all that each program writes, and
    of all that it reads but inputs that nothing in the program writes, such as weights: what a body loads of those
    outside of its reductions stands in front of the await. Whoever launches decides whether a launch may begin early:
    it has to follow one of the same program (`backends/triton/runs.py`). Kernels of very many programs stay as they
    are. A `kernel.release` says when the launch behind may begin: at once, but where that one alone has fewer programs
    than the GPU has processors. Then those behind it would begin, too, and read beside this one: the release stands
    behind what the program loads. By hand that took 1 us less for each layer of a decoding step.

        kernel.for i0 in 0 to 2048 map grid { %v = kernel.load %x[i0] ... }
    becomes
        kernel.for i0 in 0 to 2048 map grid { kernel.release  kernel.await  %v = kernel.load %x[i0] ... }
    """

    name = "kernel-overlap-launches"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    overlap_launches: bool = False
    late_release: bool = True
    """Whether launches in front of small ones release them behind their loads; else at once, as others do."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every kernel that is launched beside another one."""
        target = targets_of(op).main
        if not self.overlap_launches or not isinstance(target, GpuTarget) or not target.overlaps:
            return
        kernels, sizes, constants, followers = kernels_of(op), LaunchSizes(op), constants_of(op), followers_of(op)
        for name in sorted(followers.keys() & kernels.keys()):
            function = kernels[name]
            if function.num_warps is None or not may_overlap(function, sizes, target.processors):
                continue
            if counter(self.name):
                is_small = programs_of(function, sizes.of(function)) < target.processors
                late = self.late_release and not is_small
                late = late and _any_is_small(followers[name], kernels, sizes, target.processors)
                for block in programs_in(function):
                    _await_in(block, constants.get(name, set()))
                    _release_in(block, late)


def _any_is_small(names: Collection[str], kernels: Mapping[str, kernel.FuncOp], sizes: LaunchSizes, most: int) -> bool:
    """Whether one of some kernels leaves processors without a program."""
    known = [kernels[name] for name in names if name in kernels]
    return any(programs_of(function, sizes.of(function)) < most for function in known)


def _await_in(block: Block, constants: Collection[SSAValue]) -> None:
    """Insert an await in front of all of a block but loads of constants, and what those need."""
    ops = list(block.ops)
    early: set[Operation] = set()
    for op in ops:
        local = isinstance(op, kernel.LocalOp) or is_pure(op) or _reads_constants(op, constants)
        if local and all(not isinstance(v.owner, Operation) or v.owner in early or v.owner.parent is not block
                         for v in _used_by(op)):  # fmt: skip
            early.add(op)
    wanted = [op for op in ops if op in early and _reads_constants(op, constants)]
    needed = set(backward_slice((v for op in wanted for v in (*op.results, *_used_by(op))), early.__contains__))
    wait = kernel.AwaitOp.create(location=ops[0].location)
    block.insert_op_before(wait, ops[0])
    for op in ops:
        if op in needed or op in wanted:
            op.detach()
            block.insert_op_before(op, wait)


def _used_by(op: Operation) -> list[SSAValue]:
    """What an op and those inside use."""
    return [value for each in op.walk() for value in each.operands]


def _reads_constants(op: Operation, constants: Collection[SSAValue]) -> bool:
    """Whether an op loads a constant, or is a loop that does nothing but keep what it loads of constants."""
    if isinstance(op, kernel.LoadOp):
        return op.buffer in constants
    if not isinstance(op, kernel.ForOp):
        return False
    inner = [each for each in op.walk() if each is not op and not isinstance(each, kernel.YieldOp)]
    stores = [each for each in inner if isinstance(each, kernel.StoreOp)]
    loads = [each for each in inner if isinstance(each, kernel.LoadOp)]
    others = [each for each in inner if not isinstance(each, kernel.LoadOp | kernel.StoreOp)]
    is_local = all(isinstance(each.buffer.owner, kernel.LocalOp) for each in stores)
    return bool(loads) and is_local and all(each.buffer in constants for each in loads) and all(map(is_pure, others))


def _release_in(block: Block, late: bool) -> None:
    """Insert a release: at the beginning of a block, or behind what its last reduction loads."""
    loops = [op for op in block.ops if isinstance(op, Loop)]
    first, last = block.first_op, block.last_op
    assert first is not None and last is not None
    release = kernel.ReleaseOp.create(location=first.location)
    if not late:
        block.insert_op_before(release, first)
    elif loops and loops[-1].mapping.data == "vector" and isinstance(loops[-1], kernel.ReduceOp):
        body = loops[-1].body.block
        assert body.last_op is not None
        body.insert_op_before(release, body.last_op)
    else:
        block.insert_op_before(release, last)
