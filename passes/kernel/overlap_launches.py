"""The pass `kernel-overlap-launches`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.effects import Effect, effect_of, has_side_effect
from ...dialects.machine import targets_of
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.functions import kernels_of
from ..analysis.launches import LaunchSizes
from ..analysis.lifetimes import Lifetimes
from ..analysis.loops import Loop, is_loop
from ..analysis.memory_order import HostMemory
from ..counters import counter
from .gpu_steps import programs_of
from .tiles import extent_of, is_grid

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
    (`backends/triton/runs.py`). Kernels of very many programs stay as they are. With `read_ahead` loads of inputs of
    the host program that nothing in it writes, such as weights, stand in front of the await, in the first loop of the
    body where that runs in lanes, and what that loop does not need moves behind it.

        kernel.for i0 in 0 to 2048 map grid { %v = kernel.load %x[i0] ... }
    becomes
        kernel.for i0 in 0 to 2048 map grid { kernel.await  %v = kernel.load %x[i0] ... }
    """

    name = "kernel-overlap-launches"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    overlap_launches: bool = False
    read_ahead: bool = False
    """Read inputs that no launch writes, such as weights, in front of the await; else all stands behind it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every kernel that is launched beside another one."""
        target = targets_of(op).main
        if not self.overlap_launches or not isinstance(target, GpuTarget) or not target.overlaps:
            return
        kernels, sizes = kernels_of(op), LaunchSizes(op)
        constants = _constants(op) if self.read_ahead else {}
        for function in (kernels[name] for name in sorted(_neighbours(op) & kernels.keys())):
            few = programs_of(function, sizes.of(function)) <= MOST_PROGRAMS * target.processors
            if few and function.num_warps is not None and (blocks := _blocks(function)) and counter(self.name):
                arguments = function.body.block.args
                early = {arguments[number] for number in constants.get(function.sym_name.data, ())}
                for block in blocks:
                    _wait_in(block, early)


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


def _constants(module: ModuleOp) -> dict[str, set[int]]:
    """Kernel -> numbers of the buffers that are inputs which nothing in the program writes, in each of its launches."""
    kernels = kernels_of(module)
    found: dict[str, set[int]] = {}
    for function in module.ops:
        if not isinstance(function, host.FuncOp):
            continue
        block = function.body.block
        memory = HostMemory(Lifetimes(block), kernels)
        inputs = set(block.args) - {root for op in block.ops for root in memory.of(op).written}
        for op in block.ops:
            if isinstance(op, host.LaunchOp):
                name = op.kernel.root_reference.data
                numbers = {k for k, value in enumerate(op.buffers) if memory.roots((value,)) <= inputs}
                found[name] = found[name] & numbers if name in found else numbers
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


def _wait_in(block: Block, constants: Collection[SSAValue]) -> None:
    """Insert an await: in the first loop of a block, behind what that reads of constants, else in the block."""
    ops = list(block.ops)
    loop = next((op for op in ops if is_loop(op)), None)
    if loop is not None and (loads := _may_wait_in(loop, constants)):
        late = _late(ops[: ops.index(loop)], constants)
        inside = {value.owner for each in loop.walk() for value in each.operands}
        if inside.isdisjoint(late) and not any(map(has_side_effect, late)):
            _move_behind(late, loop)
            _insert(loop.body.block, loads)
            return
    outside = [op for op in ops if isinstance(op, kernel.LoadOp) and _is_early(op, block, constants)]
    _insert(block, outside)


def _may_wait_in(loop: Loop, constants: Collection[SSAValue]) -> list[kernel.LoadOp]:
    """Loads of constants in a loop in lanes that surely runs."""
    runs = extent_of(loop).as_int()
    if loop.mapping.data != "vector" or not runs or getattr(loop, "within", ()):
        return []
    block = loop.body.block
    return [op for op in block.ops if isinstance(op, kernel.LoadOp) and _is_early(op, block, constants)]


def _is_early(op: kernel.LoadOp, block: Block, constants: Collection[SSAValue]) -> bool:
    """Whether a load of a block reads a constant at a place that needs nothing of the block."""
    return op.buffer in constants and all(
        not isinstance(value.owner, Operation) or value.owner.parent is not block for value in op.operands
    )


def _late(ops: Sequence[Operation], constants: Collection[SSAValue]) -> set[Operation]:
    """Those of some ops that touch other memory than constants, and what uses their results."""
    late: set[Operation] = set()
    for op in ops:
        if isinstance(op, kernel.LocalOp):
            continue
        reads = effect_of(op) is not Effect.NONE and not (isinstance(op, kernel.LoadOp) and op.buffer in constants)
        if reads or any(value.owner in late for value in op.operands):
            late.add(op)
    return late


def _move_behind(ops: Collection[Operation], place: Operation) -> None:
    """Let ops of a block stand behind one of its ops, in their order."""
    block = place.parent
    assert block is not None
    last = place
    for op in [each for each in block.ops if each in ops]:
        op.detach()
        block.insert_op_after(op, last)
        last = op


def _insert(block: Block, loads: Sequence[kernel.LoadOp]) -> None:
    """An await in front of all of a block but loads, which stand in front of it."""
    first = block.first_op
    assert first is not None
    wait = kernel.AwaitOp.create(location=first.location)
    block.insert_op_before(wait, first)
    for load in loads:
        load.detach()
        block.insert_op_before(load, wait)
