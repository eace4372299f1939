"""What schedules for GPUs may do with a kernel: which nests are independent, what may move, what must stay serial."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.machine import targets_of
from ...dialects.sym import ZERO
from ...machines import GpuTarget, target_named
from ...machines.lookup import usual_gpu
from ..analysis.effects import independent_nests
from ..analysis.loops import Loop, is_loop, loops_in, named_in_bounds, ops_in
from .transforms import perfect_chain


def is_innermost(op: Loop) -> bool:
    """Whether no loop is nested in a loop."""
    return not any(True for region in op.regions for _ in loops_in(region.block))


def is_serial(function: kernel.FuncOp) -> bool:
    """Whether one program has to run a whole kernel."""
    return any(must_be_serial(op) for op in ops_in(function))


def box_of(op: kernel.ForOp) -> list[kernel.ForOp]:
    """The loops of a perfect nest whose iterations may be spread over programs, outermost first.

    All of them, where they start at 0 and none says how far another one runs; else the outermost alone.
    """
    chain = perfect_chain(op)
    is_box = named_in_bounds(chain).isdisjoint(loop.axis.data for loop in chain)
    return chain if is_box and all(loop.lo.data is ZERO for loop in chain) else [op]


def flat_nests(function: kernel.FuncOp, suits: Callable[[list[kernel.ForOp]], bool]) -> list[list[kernel.ForOp]]:
    """The nests of a kernel that programs of a GPU may share out, have no loops in their bodies, and suit a rewrite."""
    block = function.body.block
    nests = [box_of(op) for op in block.ops if isinstance(op, kernel.ForOp)]
    found = [chain for chain in nests if not any(map(is_loop, chain[-1].body.block.ops)) and suits(chain)]
    if not found or is_serial(function):
        return []
    apart = independent_nests(block)
    return [chain for chain in found if chain[0] in apart]


def must_be_serial(op: object) -> bool:
    """Whether a store keeps its kernel to one program: its order matters, or the GPU has no such atomic operation."""
    if type(op) is not kernel.StoreOp:
        return False
    return op.ordered is not None or (op.atomic is not None and not has_atomic(op))


def has_atomic(op: kernel.StoreOp) -> bool:
    """Whether the GPU combines in memory what a store combines."""
    element = op.buffer.type.element  # pyright: ignore[reportAttributeAccessIssue]
    kind, atomics = op.kind.data, _gpu_of(op).atomics
    if isinstance(element, IntegerType):
        return kind != "mul" and element.width.data >= atomics["integer"]
    what = {"add": "sum", "amax": "extremum", "amin": "extremum"}.get(kind)
    return what is not None and element.bitwidth >= atomics[what]  # pyright: ignore[reportAttributeAccessIssue]


def _gpu_of(op: Operation) -> GpuTarget:
    """The GPU that a kernel is scheduled for, or will be; the usual one for a kernel of which nothing says it."""
    above = op.parent_op()
    while above is not None and not isinstance(above, kernel.FuncOp):
        above = above.parent_op()
    if above is None:
        return usual_gpu()
    module = above.parent_op()
    named = None if above.target is None else target_named(above.target.data)
    target = targets_of(module).main if named is None and module is not None else named
    return target if isinstance(target, GpuTarget) else usual_gpu()
