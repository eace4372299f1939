"""The pass `kernel-fold-exponents`."""

from __future__ import annotations

from collections.abc import Callable
from math import e, inf, log2

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.kernel.contraction import tiled_axes
from ...dialects.scalar import number_of
from ...records import dataclass
from ..analysis.loops import loops_in
from ..counters import counter
from .approximate import APPROXIMATE
from .hidden_places import is_lowest
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .simplify_block import remove_dead


@dataclass(frozen=True)
class KernelFoldExponents(KernelPass, kernels=all_for_gpu):
    """Let one multiply-add make the exponent of a tile's elements, and one instruction its power of 2.

    Level: kernel.

    Precondition: `kernel-approximate`, which says what may be approximate, and `kernel-map-chained-products`.
    Guarantee: an approximate exp(x - m) in the body of a reduction with products on matrix units, with an m that varies
    along the rows of a tile alone, or along its steps, is exp2(x*log2(e) - m*log2(e)): the second product is one for
    each row, the first one a part of a multiply-add. A factor of x, such as the scale of scores, is multiplied with
    log2(e), also where a choice of -inf stands between. It is 0 where it is below the normal numbers of float32.
    The scale of the scores of a `softmax_sum` is a `factor` of it, and is multiplied with the maximum behind it.

        %y = arith.mulf %s, %scale   %x = arith.select %c, %lowest, %y   %d = arith.subf %x, %m
        %p = math.exp %d fastmath<afn>
    becomes
        %z = arith.select %c, %lowest, %s   %n = arith.mulf %m, %minus_log2_e
        %f = math.fma %z, %scale_times_log2_e, %n   %p = math.exp2 %f fastmath<afn>
    """

    name = "kernel-fold-exponents"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Fold the exponents of a kernel."""
        changed = False
        for loop in list(loops_in(function.body.block)):
            if isinstance(loop, kernel.ReduceOp) and any(isinstance(op, kernel.ReduceOp) for op in loop.body.block.ops):
                for op in [each for each in loop.body.block.ops if isinstance(each, math.ExpOp)]:
                    changed |= self._fold(op, loop)
                if {c.data for c in loop.combiners} == {"softmax_sum"} and loop.mapping.data == "matrix":
                    changed |= self._take_factor(loop)
        if changed:
            remove_dead(function.body.block)

    def _take_factor(self, loop: kernel.ReduceOp) -> bool:
        """Let the exponents of a sum over a softmax have the scale of its scores."""
        last = loop.body.block.last_op
        if loop.factor is not None or loop.init or last is None:
            return False

        def add(new: Operation) -> SSAValue:
            new.location = loop.location
            loop.body.block.insert_op_before(new, last)
            return new.results[0]

        found = [_without_factor(x, add) for x in last.operands[::3]]
        factor = found[0][1]
        if factor == 1 or any(each != factor for _, each in found) or not counter(self.name):
            return False
        for k, (x, _) in enumerate(found):
            last.operands[3 * k] = x
            number = arith.ConstantOp(FloatAttr(factor, f32))
            highest = arith.MulfOp(loop.results[3 * k], number.result)
            number.location = highest.location = loop.location
            loop.results[3 * k].replace_uses_with_if(highest.result, lambda use, own=highest: use.operation is not own)
            assert loop.parent is not None
            loop.parent.insert_ops_after([number, highest], loop)
        loop.properties["factor"] = FloatAttr(factor, f32)
        return True

    def _fold(self, op: math.ExpOp, loop: kernel.ReduceOp) -> bool:
        difference = op.operand.owner
        is_approximate = op.fastmath == APPROXIMATE and op.result.type == f32
        if not is_approximate or not isinstance(difference, arith.SubfOp):
            return False
        along = kernel.axes_of(difference.rhs) & {loop.axis.data, *tiled_axes(loop)}
        if len(along) > 1 or not counter(self.name):
            return False
        block = op.parent
        assert block is not None

        def add(new: Operation) -> SSAValue:
            new.location = op.location
            block.insert_op_before(new, op)
            return new.results[0]

        x, factor = _without_factor(difference.lhs, add)
        shift = add(arith.MulfOp(difference.rhs, _number(add, -log2(e))))
        exponent = add(math.FmaOp(x, _number(add, factor * log2(e)), shift))
        power = math.Exp2Op(exponent, APPROXIMATE)
        op.result.replace_all_uses_with(add(power))
        return True


Add = Callable[[Operation], SSAValue]


def _number(add: Add, value: float) -> SSAValue:
    return add(arith.ConstantOp(FloatAttr(value, f32)))


def _without_factor(x: SSAValue, add: Add) -> tuple[SSAValue, float]:
    """A number without a positive constant factor, and this."""
    op = x.owner
    if isinstance(op, arith.MulfOp):
        for one, other in (op.operands, reversed(op.operands)):
            factor = number_of(other)
            if factor is not None and 0 < factor < inf:
                return one, float(factor)
    if isinstance(op, arith.SelectOp):
        for place, lowest in ((1, op.lhs), (2, op.rhs)):
            if is_lowest(lowest):
                inner, factor = _without_factor(op.operands[3 - place], add)
                if factor == 1:
                    return x, 1.0
                choices = (lowest, inner) if place == 1 else (inner, lowest)
                return add(arith.SelectOp(op.cond, *choices)), factor
    return x, 1.0
