"""The pass `kernel-choose-threads`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr

from ...dialects import kernel
from ...dialects.sym import ZERO, smin
from ...machines import CpuTarget
from ..analysis.loops import Loop, kernel_names, named_in_bounds, substitute_axes
from ..analysis.nests import work_of_block
from ..analysis.sizes import Sizes
from ..counters import counter
from .cpu_lanes import parallel_loops
from .cpu_tiles import units
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import untiled_for_cpu
from .transforms import linearise, perfect_chain, range_of, rebuild_chain, set_mapping


class KernelChooseThreads(KernelPass, kernels=untiled_for_cpu):
    """Choose the loop of each nest that CPU threads share out, and the least work that is worth one more thread.

    Level: kernel.

    Precondition: behind `kernel-tile`; other kernels than for a CPU, and those that say their `target`, stay as they
    are.
    Guarantee: at most the outermost loop of a nest is `parallel`: as many of those that were are joined in it as feed
    every core, the others are serial. Its tile is the grain, the fewest iterations that a thread is given; a nest of
    less work than two grains is serial. `target` says that the kernel is scheduled.

        kernel.for i0 in 0 to 8 map parallel { kernel.for i1 in 0 to 1024 map parallel {
          kernel.for i2 in 0 to 64 map vector tile 16 { ... %x[65536*i0 + 64*i1 + i2] ... } } }
    becomes
        kernel.for i3 in 0 to 8192 map parallel tile 1024 {
          kernel.for i2 in 0 to 64 map vector tile 16 { ... %x[64*i3 + i2] ... } }
    """

    name = "kernel-choose-threads"
    optional: ClassVar[bool] = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Choose threads for every kernel for a CPU that has no target yet."""
        for nest in list(function.body.block.ops):
            if isinstance(nest, kernel.ForOp) and nest.mapping.data == "parallel" and not is_pinned(nest):
                _choose(function, nest, facts.target, facts.sizes)
        function.properties["target"] = StringAttr(facts.target.name)


def _choose(function: kernel.FuncOp, nest: kernel.ForOp, target: CpuTarget, sizes: Sizes) -> None:
    chain = parallel_loops(nest)
    total = _work(nest, len(chain), sizes)
    count = _loops_for_threads(chain, target, sizes)
    for loop in chain:
        set_mapping(loop, "serial")
    if not count:
        return
    outer = chain[0]
    if count > 1 and counter("kernel-choose-threads-join"):
        joined, values = linearise([range_of(loop) for loop in chain[:count]], kernel_names(function))
        (outer,) = rebuild_chain(chain[:count], [joined])
        substitute_axes(outer.body.block, values)
    grain = max(int(target.grain * sizes.trips(outer) / max(total, 1)), 1)
    trips = (outer.hi.data - outer.lo.data).as_int()
    if (trips is None or trips >= 2 * grain) and counter(KernelChooseThreads.name):
        set_mapping(outer, "parallel", grain if grain > 1 else None)


def _loops_for_threads(chain: Sequence[kernel.ForOp], target: CpuTarget, sizes: Sizes) -> int:
    """How many leading loops to run in threads: enough of them to feed every core."""
    count, axes = 1, set[str]()
    for position, loop in enumerate(chain):
        if loop.lo.data is not ZERO or not named_in_bounds([loop]).isdisjoint(axes):
            return position
        axes.add(loop.axis.data)
        count *= sizes.trips(loop)
        if count >= units(target):
            return position + 1
    return len(chain)


def _work(nest: kernel.ForOp, outer: int, sizes: Sizes) -> float:
    """The work of a nest whose first `outer` loops may run in threads."""
    chain = perfect_chain(nest)
    lanes = next((n for n, loop in enumerate(chain) if loop.mapping.data == "vector"), None)
    chain = chain[: outer if lanes is None else lanes + 1]
    return max(work_of_block(chain[-1].body.block, sizes), 0.5) * _points(chain, sizes)


def _points(loops: Sequence[Loop], sizes: Sizes) -> int:
    """How often the body of nested loops runs. The loop over the blocks of an axis and the loop within a block count as
    one loop over the whole axis, since the last block may be shorter.
    """
    trips: dict[str, int] = {}
    for loop in loops:
        blocks = next((axis for axis in trips if _size_of_block(loop, axis)), None)
        if blocks is None:
            trips[loop.axis.data] = sizes.trips(loop)
            continue
        count = trips.pop(blocks)
        last = Sizes({**sizes.values, blocks: count - 1}).trips(loop)
        trips[loop.axis.data] = (count - 1) * _size_of_block(loop, blocks) + last if count else 0
    return prod(trips.values())


def _size_of_block(loop: Loop, blocks: str) -> int:
    """The size of the blocks, of which a loop runs one for each value of the axis `blocks`; 0 if it runs none."""
    lo, hi = loop.lo.data, loop.hi.data
    step = lo.coefficient(blocks) if blocks in lo.free_symbols else None
    size = step.as_int() if step is not None else None
    return size if size is not None and size > 0 and smin(hi, lo + size) == hi else 0
