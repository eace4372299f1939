"""The pass `kernel-load-in-lanes`."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, UnitAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...machines import GpuTarget
from ..analysis.effects import is_local, written_buffers
from ..analysis.loops import loops_in
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu

#: elements that one instruction loads, where rows are as many apart
SIDE_BY_SIDE = 4
_FLOATS = (BFloat16Type, Float16Type, Float32Type)


class KernelLoadInLanes(KernelPass, kernels=all_for_gpu):
    """Let each lane load what it uses, where what scores are made of lies as no wide load wants it.

    Level: kernel.

    Precondition: `kernel-map-softmax-sums`, `kernel-map-chained-products`, so that loops have their tiles.
    Guarantee: on a target where that was measured to be faster, loads of floats for a tile of rows and steps, in the
    body of a reduction on matrix units around the products of its scores, are `in_lanes` if one instruction cannot load
    several: a table that is read by the distance of rows and steps, or at loaded places. Otherwise the lanes of a warp
    load what lies side by side and pass it on through shared memory, because what matrix units make lies in the lanes
    in another way. Loads of what the kernel stores stay as they are. It changes no value.

        %t = kernel.reduce softmax_sum i3 in 0 to 2048 map matrix tile 64 {
          %s = kernel.reduce sum ... map matrix ...   %b = kernel.load %bias[i3 - i1 + 2047] ... }
    becomes
        %t = kernel.reduce softmax_sum i3 in 0 to 2048 map matrix tile 64 {
          %s = kernel.reduce sum ... map matrix ...   %b = kernel.load in_lanes %bias[i3 - i1 + 2047] ... }
    """

    name = "kernel-load-in-lanes"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Mark the loads of one kernel."""
        if not isinstance(facts.target, GpuTarget) or not facts.target.loads_in_lanes:
            return
        written = written_buffers(function.body.block)
        for op in loops_in(function.body.block):
            if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "matrix":
                continue
            if not any(each.regions for each in op.body.block.ops):
                continue
            for load in op.body.block.ops:
                if _is_gathered(load, op) and _may_be(load, written) and counter(self.name):
                    load.properties["in_lanes"] = UnitAttr()
                    remark("passed", self.name, load, "each lane loads what it uses")


def _is_gathered(load: Operation, op: kernel.ReduceOp) -> bool:
    """Whether an op loads a tile of rows and steps of a reduction, element by element."""
    return isinstance(load, kernel.LoadOp) and lies_apart(load, op.axis.data, kernel.tiled_axes(op))


def lies_apart(load: kernel.LoadOp, along: str, others: Iterable[str]) -> bool:
    """Whether a load varies along an axis and another one, and what it loads does not lie as wide loads want it."""
    axes = kernel.axes_of(load.value)
    rows = [axis for axis in others if axis in axes and axis != along]
    if along not in axes or not rows:
        return False
    found = [load.map.data[0].coefficient(axis) for axis in (along, *rows)]
    steps = [None if each is None else each.as_int() for each in found]
    return bool(load.dynamic) or not any(
        step == 1 and all(other is not None and other % SIDE_BY_SIDE == 0 for other in steps[:k] + steps[k + 1 :])
        for k, step in enumerate(steps)
    )


def _may_be(load: Operation, written: set[SSAValue]) -> bool:
    """Whether each lane may load: a float of memory that nobody stores to, with 0 for outside, or no mask."""
    assert isinstance(load, kernel.LoadOp)
    if load.buffer in written or is_local(load.buffer) or load.box is not None or load.half is not None:
        return False
    return load.mask is None and isinstance(load.buffer.type.element, _FLOATS)  # pyright: ignore
