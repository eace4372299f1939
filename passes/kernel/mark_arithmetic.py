"""The pass `kernel-mark-arithmetic`."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import StringAttr, f32
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ..analysis.loops import Loop, loops_around
from ..counters import counter
from .approximate import may_approximate
from .float_ranges import is_at_least_one, is_lost_when_tiny
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import is_tiled


class KernelMarkArithmetic(KernelPass, kernels=all_for_gpu):
    """Mark quotients and exponentials that a GPU may compute with fewer instructions, by what is known of operands.

    Level: kernel.

    Precondition: `kernel-tile`, behind all passes that change scalars; a target with functions for them.
    Guarantee: the ops stay, with a mark. A correctly rounded division has a branch for each element. Where one divisor
    is for many elements (`divisor = "shared"`) its reciprocal is taken once, and where it is at least 1, or NaN
    (`divisor = "at_least_one"`), no operand needs scaling: 0.500001 units in the last place instead of 0.5. Quotients
    of fewer elements than the kernel's tile has are too few to matter. An approximate exponential that is only added to
    a constant of at least 1 may be 0 where it is below the normal numbers (`tiny = "zero"`).

        kernel.for i1 in 0 to 4096 map vector tile 4096 { %q = arith.divf %e, %sum : f32 ... }
    becomes
        kernel.for i1 in 0 to 4096 map vector tile 4096 { %q = arith.divf %e, %sum {divisor = "shared"} : f32 ... }
    """

    name = "kernel-mark-arithmetic"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Mark the ops of a kernel."""
        if not facts.target.has_functions:
            return
        ops = [op for op in function.walk() if isinstance(op, arith.DivfOp | math.ExpOp) and op.results[0].type == f32]
        rank = max((_rank(op) for op in function.body.block.ops if isinstance(op, Loop)), default=0) if ops else 0
        for op in ops:
            if isinstance(op, arith.DivfOp):
                self._mark(op, kernel.DIVISOR, _divisor(op, max(rank, 1)))
            elif may_approximate(op) and is_lost_when_tiny(op.results[0]):
                self._mark(op, kernel.TINY, "zero")

    def _mark(self, op: Operation, mark: str, value: str | None) -> None:
        if value is not None and counter(self.name):
            op.attributes[mark] = StringAttr(value)


def _divisor(op: arith.DivfOp, rank: int) -> str | None:
    """What is known of the divisor of a quotient of as many elements as a tile of so many dimensions has."""
    if _is_combination(op):
        return None
    tiled = {loop.axis.data for loop in loops_around(op) if is_tiled(loop)}
    divisor = _axes_of(op.rhs) & tiled
    quotient = (_axes_of(op.lhs) & tiled) | divisor
    if len(quotient) < rank:
        return None
    if divisor != quotient:
        return "shared"
    return "at_least_one" if is_at_least_one(op.rhs) else None


def _axes_of(value: SSAValue) -> frozenset[str]:
    """The axes along which a number varies; a running value of a scan does along the scan's."""
    found = kernel.axes_of(value)
    if isinstance(value.owner, Block) and isinstance(scan := value.owner.parent_op(), kernel.ScanOp):
        return found | {scan.axis.data}
    return found


def _is_combination(op: Operation) -> bool:
    """Whether an op combines two values of a reduction or scan, of which a function is made."""
    loop = op.parent_op()
    return isinstance(loop, kernel.ReduceOp | kernel.ScanOp) and op.parent_region() is loop.combine


def _rank(op: Loop) -> int:
    """Dimensions of the tile of a loop with all that is nested in it; steps of matrix units are none."""
    if op.mapping.data == "matrix":
        return 0
    inner = (_rank(each) for region in op.regions for each in region.block.ops if isinstance(each, Loop))
    return is_tiled(op) + max(inner, default=0)
