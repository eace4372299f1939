"""What a nest may compute of numbers that lie in the CPU's memory, where eager computes them."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import math
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import scalar
from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, IndexOp, LoadOp, ReduceOp
from ...dialects.machine import target_at
from ...machines import GpuTarget, Target
from ._accesses import loads_in
from ._bodies import nest_of
from ._splice import Site

#: functions that every device computes to the same bits; arithmetic and comparisons are exact as well
_EXACT: frozenset[type[Operation]] = frozenset({
    IndexOp, LoadOp,
    math.AbsFOp, math.AbsIOp, math.CeilOp, math.CopySignOp, math.CountLeadingZerosOp, math.CountTrailingZerosOp,
    math.CtPopOp, math.FloorOp, math.FmaOp, math.IPowIOp, math.RoundEvenOp, math.RoundOp, math.SqrtOp, math.TruncOp,
    *scalar.CONVERSIONS, *(op for op in scalar.FUNCTION_OPS.values() if op.FUNCTION.exact),
})  # fmt: skip
#: functions with steps, whose results are floats
_STEPS: frozenset[type[Operation]] = frozenset({
    math.CeilOp, math.FloorOp, math.RoundEvenOp, math.RoundOp, math.TruncOp,
    *(op for op in scalar.FUNCTION_OPS.values() if op.FUNCTION.steps),
})  # fmt: skip


def device_of(nest: Operation) -> str:
    """The device whose memory the results of a nest lie in."""
    return cast(TensorType, nest.results[0].type).device


def target_of(nest: Operation) -> Target:
    """The machine that a nest, or an ATen op between nests, will run on."""
    return target_at(nest, device_of(nest))


def has_matrix_units(nest: Operation) -> bool:
    """Whether the machine that a nest runs on computes reductions of products by tiles."""
    target = target_of(nest)
    return isinstance(target, GpuTarget) and bool(target.matrix_units)


def objection_across_devices(producer: GenerateOp, site: Site) -> str | None:
    """Why a producer must not be computed by a reader on another device; None where it may be.

    A kernel may read single numbers of the CPU's memory, nothing larger. What they are rounded to differs between
    devices where a function is not exact, and a decision takes another way for the slightest difference:
    `int(16 ** 0.5)` is 4 or 3. So what decides is computed where eager computes it.
    """
    if device_of(producer) == device_of(nest_of(site.block)):
        return None
    if any(cast(TensorType, load.operands[0].type).shape for load in loads_in(producer)):
        return "its sources lie on another device"
    rounded = _Rounded()
    if rounded.follow(producer.body.block) and not rounded.decides:
        rounded.values.update(result for load in site.loads for result in load.results)
        rounded.follow(nest_of(site.block).regions[0].block)
    return "a decision depends on how its device rounds" if rounded.decides else None


class _Rounded:
    """The values of bodies that devices round to different bits, and whether a decision depends on one of them."""

    def __init__(self) -> None:
        self.values: set[SSAValue] = set()
        self.decides = False

    def follow(self, block: Block) -> bool:
        """Follow the values through the ops of a block and of its reductions; whether it yields one of them."""
        for op in block.ops:
            yielded = [self.follow(region.block) for region in op.regions]
            used = any(yielded) or any(value in self.values for value in op.operands)
            floats = [result for result in op.results if isinstance(result.type, AnyFloat)]
            self.decides |= used and (type(op) in _STEPS or len(floats) < len(op.results))
            if used or not _is_exact(op):
                self.values.update(floats)
        last = block.last_op
        return last is not None and any(value in self.values for value in last.operands)


def _is_exact(op: Operation) -> bool:
    return type(op) in _EXACT or isinstance(op, ReduceOp) or op.name.startswith("arith.")
