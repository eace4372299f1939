"""The pass `kernel-hoist-invariants`."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import Ranges, bounds
from ..analysis.effects import is_invariant, written_buffers
from ..analysis.loops import flat_vector_loops
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import tiled_for_cpu


class KernelHoistInvariants(KernelPass, kernels=tiled_for_cpu):
    """Compute what is the same in every lane once, before the loop over the lanes (loop-invariant code motion).

    Level: kernel.

    Precondition: `kernel-choose-threads` for a CPU; other kernels stay as they are.
    Guarantee: no vector loop without loops inside computes what no lane changes. Loads move only out of loops that run
    at least once, and only from buffers that the kernel does not write. A C++ compiler would do that too if it could
    prove that the loop's stores leave the loaded memory alone.

        kernel.for i1 in 0 to 64 map vector tile 16 { %v = kernel.load %var[i0]  %r = math.rsqrt %v : f32 ... }
    becomes
        %v = kernel.load %var[i0]
        %r = math.rsqrt %v : f32
        kernel.for i1 in 0 to 64 map vector tile 16 { ... }
    """

    name = "kernel-hoist-invariants"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Move what no lane changes out of the flat vector loops of a kernel, in place."""
        ranges = facts.ranges
        written = written_buffers(function.body.block)
        for op in flat_vector_loops(function):
            _hoist(op, written, ranges)


def _hoist(loop: kernel.ForOp, written: set[SSAValue], ranges: Ranges) -> None:
    least, _ = bounds(loop.hi.data - loop.lo.data, ranges)
    runs, axis = least is not None and least >= 1, loop.axis.data
    inside: set[Operation] = set(loop.body.block.ops)
    moved: list[Operation] = []
    for op in loop.body.block.ops:
        stays = isinstance(op, kernel.LoadOp) and not runs  # it may be outside then
        if not stays and all(v.owner not in inside for v in op.operands) and is_invariant(op, {axis}, written):
            inside.discard(op)
            moved.append(op)
    if all(not op.operands for op in moved) or not counter(KernelHoistInvariants.name):
        return  # constants and indices alone: they cost nothing where they are
    parent = loop.parent
    assert parent is not None
    for op in moved:
        op.detach()
        parent.insert_op_before(op, loop)
