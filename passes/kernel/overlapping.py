"""Which kernels may wait by themselves for the launch in front, and what they may read before they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.effects import Effect, effect_of
from ..analysis.functions import kernels_of
from ..analysis.launches import LaunchSizes
from ..analysis.lifetimes import Lifetimes
from ..analysis.memory_order import HostMemory
from .gpu_steps import programs_of
from .tiles import is_grid

#: programs of a processor from which on a launch waits for the one in front: an H200 starts programs that wait by
#: themselves at the rate of one in 1.24 ns, others in 0.75. 32,000 programs of one row of 4 bits took 39.6 us, and
#: 25.9; 8,000 of four rows of 8 bits 30.5 and 21.0
MOST_PROGRAMS = 32


def followers_of(module: ModuleOp) -> Mapping[str, set[str]]:
    """Kernels that follow one another somewhere, with nothing but allocations between: those behind each of them."""
    found: dict[str, set[str]] = {}
    for function in module.ops:
        last: str | None = None
        for op in function.body.block.ops if isinstance(function, host.FuncOp) else ():
            if isinstance(op, host.LaunchOp):
                name = op.kernel.root_reference.data
                if last is not None:
                    found.setdefault(last, set()).add(name)
                    found.setdefault(name, set())
                last = name
            elif not isinstance(op, host.EmptyOp | host.ViewOp | host.FreeOp):
                last = None
    return found


def may_overlap(function: kernel.FuncOp, sizes: LaunchSizes, processors: int) -> bool:
    """Whether programs of a kernel may wait by themselves: they are not too many, and nests hold all that they do."""
    return programs_of(function, sizes.of(function)) <= MOST_PROGRAMS * processors and bool(programs_in(function))


def programs_in(function: kernel.FuncOp) -> list[Block]:
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


def constants_of(module: ModuleOp) -> dict[str, set[SSAValue]]:
    """Kernel -> its buffers that are inputs which nothing in the program writes, as weights, in all its launches."""
    kernels, found = kernels_of(module), dict[str, set[SSAValue]]()
    for name, values in _constants(module, kernels):
        found[name] = found[name] & values if name in found else values
    return found


def _constants(module: ModuleOp, kernels: Mapping[str, kernel.FuncOp]) -> Iterator[tuple[str, set[SSAValue]]]:
    for function in module.ops:
        if not isinstance(function, host.FuncOp):
            continue
        block = function.body.block
        memory = HostMemory(Lifetimes(block), kernels)
        inputs = set(block.args).difference(*(memory.of(op).written for op in block.ops))
        for op in block.ops:
            name = op.kernel.root_reference.data if isinstance(op, host.LaunchOp) else ""
            if isinstance(op, host.LaunchOp) and name in kernels:
                arguments = kernels[name].body.block.args
                pairs = zip(op.buffers, arguments, strict=True)
                yield name, {own for value, own in pairs if memory.roots((value,)) <= inputs}
