"""The pass `kernel-group-elements`."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from ...dialects import kernel
from ...dialects.sym import Ranges
from ...machines import GpuTarget
from ..analysis.loops import Loop, loops_around, ops_in
from ..analysis.nests import element_bytes
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .pinned import has_pinned
from .scheduled import all_for_gpu
from .tiles import is_persistent, is_tiled, tile_of
from .transforms import reduction_chain

#: lanes that are worth keeping accumulators for, those of a warp
LEAST_LANES = 32


class KernelGroupElements(KernelPass, kernels=all_for_gpu):
    """Let a thread combine the neighbours that it loads at once before it takes them into its accumulator.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU whose target has a function for it, with the loops that are to stay; others
    stay as they are.
    Guarantee: a reduction `logsumexp` of single elements along the innermost axis of the tile, in several steps, has a
    `group`: so many neighbours as one instruction loads have one maximum and one sum, rescaled once instead of one by
    one. Each step keeps at least a warp of accumulators.

        %m, %s = kernel.reduce logsumexp r0 in 0 to n map vector tile 1024 { ... kernel.yield %v, %one }
    becomes, for float32,
        %m, %s = kernel.reduce logsumexp r0 in 0 to n map vector tile 1024 group 4 { ... kernel.yield %v, %one }
    """

    name = "kernel-group-elements"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Group elements in every kernel for a GPU that can."""
        if facts.target.groups_elements and not has_pinned(function):
            _group(function, facts.target, facts.ranges)


def _group(function: kernel.FuncOp, target: GpuTarget, ranges: Ranges) -> None:
    reductions = [op for op in ops_in(function) if type(op) is kernel.ReduceOp]
    rank = max((_dims(op) for op in ops_in(function) if isinstance(op, Loop)), default=0)
    passed_on = set[kernel.ReduceOp]()
    for op in reductions:
        chain = reduction_chain(op)
        inner = chain[-1]
        if op in passed_on or (len(chain) == 1 and is_persistent(op, ranges)):
            continue
        passed_on.update(chain[1:])
        count = _neighbours(inner, target) if is_tiled(inner) and _dims(inner) == rank else 1
        if inner.group is None and count > 1 and counter(KernelGroupElements.name):
            inner.properties["group"] = IntegerAttr(count, i64)


def _dims(op: Loop) -> int:
    """Dimensions of the tile in which the body of a loop runs."""
    return sum(map(is_tiled, (*loops_around(op), op)))


def _neighbours(op: kernel.ReduceOp, target: GpuTarget) -> int:
    """Neighbours that one instruction loads, if they may be combined first; else 1."""
    buffers = [load.buffer.type for load in ops_in(op) if isinstance(load, kernel.LoadOp)]
    sizes = [element_bytes(type_) for type_ in buffers if isinstance(type_, kernel.BufferType) and not type_.local]
    if not sizes or not kernel.groupable(op):
        return 1
    count = target.vector_bytes // min(sizes)
    return count if tile_of(op) >= count * LEAST_LANES else 1
