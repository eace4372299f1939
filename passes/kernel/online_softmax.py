"""The pass `kernel-online-softmax`."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import symbol
from ..analysis.effects import written_buffers
from ..analysis.loops import loops_in
from ..common.locations import merged
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_tiled_for_gpu
from .simplify_block import is_pure, remove_dead
from .tiles import is_persistent, is_tiled


class KernelOnlineSoftmax(KernelPass, kernels=free_tiled_for_gpu):
    """Take a maximum and the sum of exponentials relative to it in one pass over a row instead of two.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU; other kernels stay as they are.
    Guarantee: no such two reductions loop over tiles of one row beside each other; in registers two passes cost
    nothing, and stay. `logsumexp` counts an element that equals an infinite maximum as 1, where exp(inf - inf) is NaN;
    %z is 0, or NaN where %m is not finite. Milakov, Gimelshein, Online normalizer calculation for softmax, 2018.

        %m = kernel.reduce max r0 in 0 to n map vector tile 4096 { ... kernel.yield %v }
        %s = kernel.reduce sum r0 in 0 to n map vector tile 4096 { ... %d = arith.subf %v, %m
          %e = math.exp %d  kernel.yield %e }
    becomes
        %m, %t = kernel.reduce logsumexp r0 in 0 to n map vector tile 4096 { ... kernel.yield %v, %one }
        %z = arith.subf %m, %m
        %s = arith.addf %t, %z
    """

    name = "kernel-online-softmax"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Join such reductions where they loop over tiles; in registers two passes cost nothing."""
        ranges = facts.ranges
        block = function.body.block
        written = written_buffers(block)
        for op in list(loops_in(block)):
            if isinstance(op, kernel.ReduceOp) and is_tiled(op) and not is_persistent(op, ranges):
                highest = _maximum_of(op, written)
                if highest is not None and counter(KernelOnlineSoftmax.name):
                    _join(highest, op)
        remove_dead(block)


def _maximum_of(total: kernel.ReduceOp, written: set[SSAValue]) -> kernel.ReduceOp | None:
    """The reduction that finds the maximum which `total` subtracts before it sums exponentials."""
    if [c.data for c in total.combiners] != ["sum"] or _stores(total):
        return None
    exponential = yielded(total.body)[0].owner
    if not isinstance(exponential, math.ExpOp):
        return None
    difference = exponential.operand.owner
    if not isinstance(difference, arith.SubfOp):
        return None
    highest = difference.rhs.owner
    if not isinstance(highest, kernel.ReduceOp) or highest.parent is not total.parent or _stores(highest):
        return None
    alike = (highest.lo, highest.hi, highest.tile, highest.mapping) == (total.lo, total.hi, total.tile, total.mapping)
    if [c.data for c in highest.combiners] != ["max"] or not alike:
        return None
    names = {total.axis.data: symbol(highest.axis.data)}
    same = _is_same(yielded(highest.body)[0], difference.lhs, names, written)
    return highest if same else None


def _stores(op: kernel.ReduceOp) -> bool:
    return any(isinstance(inner, kernel.StoreOp | kernel.AssertOp) for inner in op.walk())


def _is_same(left: SSAValue, right: SSAValue, names: dict, written: set[SSAValue]) -> bool:  # pyright: ignore[reportMissingTypeArgument]
    """Whether two values in two loops are computed alike; `names` gives the axis of the right one for the left."""
    if left is right:
        return True
    one, other = left.owner, right.owner
    if isinstance(one, Block) or isinstance(other, Block) or type(one) is not type(other):
        return False
    if isinstance(one, kernel.LoadOp) and isinstance(other, kernel.LoadOp):
        alike = other.map.data[0].subs(names) is one.map.data[0] and one.buffer not in written
    elif isinstance(one, kernel.IndexOp) and isinstance(other, kernel.IndexOp):
        alike = other.expr.data.subs(names) is one.expr.data
    else:
        alike = is_pure(one) and not one.regions and one.properties == other.properties
    if not alike or len(one.operands) != len(other.operands):
        return False
    return all(_is_same(a, b, names, written) for a, b in zip(one.operands, other.operands, strict=True))


def _join(highest: kernel.ReduceOp, total: kernel.ReduceOp) -> None:
    """Replace both by one reduction in the place of the first."""
    parent, last = highest.parent, highest.body.block.last_op
    assert parent is not None and last is not None
    value = last.operands[0]
    one = arith.ConstantOp.create(properties={"value": FloatAttr(1.0, value.type)}, result_types=(value.type,))  # pyright: ignore
    body = highest.body.block
    highest.body.detach_block(body)
    body.insert_op_before(one, last)
    last.operands = (value, one.results[0])
    joint = kernel.ReduceOp.of(
        highest.axis.data, highest.lo.data, highest.hi.data, ["logsumexp"], Region(body),
        highest.mapping.data, location=merged((highest.location, total.location)),
    )  # fmt: skip
    if highest.tile is not None:
        joint.properties["tile"] = highest.tile
    m, s = joint.results
    m.name_hint, s.name_hint = highest.results[0].name_hint or "highest", "total"
    zero = _binary(arith.SubfOp, m, m)
    fixed = _binary(arith.AddfOp, s, zero.results[0])
    for op in (joint, zero, fixed):
        parent.insert_op_before(op, highest)
    fixed.results[0].name_hint = total.results[0].name_hint
    highest.results[0].replace_all_uses_with(m)
    total.results[0].replace_all_uses_with(fixed.results[0])
    parent.erase_op(highest)
    parent.erase_op(total)


def _binary(kind: type[arith.SubfOp | arith.AddfOp], left: SSAValue, right: SSAValue) -> Operation:
    return kind.create(operands=(left, right), result_types=(left.type,))
