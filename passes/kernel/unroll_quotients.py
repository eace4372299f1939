"""`kernel-unroll-quotients`: lanes along `i floordiv 2` rather than `i`, so that what they load lies side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import filterfalse

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Ranges, as_expr, simplify, symbol
from ..analysis.loops import flat_vector_loops, substitute_axes
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .lane_indices import DIGITS, common_divisor, expr_of, has_atom, set_expr
from .pinned import is_pinned
from .scheduled import tiled_for_cpu
from .transforms import append_body, set_range

#: fewest lanes that are left
LEAST_LANES = 8
#: most ops of what the body becomes
MOST_OPS = 600


class UnrollQuotients(KernelPass, kernels=tiled_for_cpu):
    """Compute neighbours that read one place, or whose remainder decides, by one lane of a CPU.

    level:         kernel
    precondition:  kernels are scheduled for a CPU (`kernel-choose-threads`); none clamps indices (`kernel-peel-lanes`)
    guarantee:     the same values. A flat loop of lanes of known length, indices of which have quotients or remainders
                   of its axis by a small constant `k` and none other, runs over `i floordiv k`: its body is there once
                   for each remainder, and every index is linear in the axis, so that a C++ compiler loads and stores
                   whole registers and shuffles them. Points that are left at the end have a loop by themselves.

        kernel.for i1 in 0 to 128 map vector tile 16 {
          %a = kernel.load %x[64*i0 + i1 floordiv 2]  kernel.store %a, %y[128*i0 + i1]  kernel.yield
        }
    becomes
        kernel.for i1 in 0 to 64 map vector tile 16 {
          %a = kernel.load %x[64*i0 + i1]  kernel.store %a, %y[128*i0 + 2*i1]
          %b = kernel.load %x[64*i0 + i1]  kernel.store %b, %y[128*i0 + 2*i1 + 1]  kernel.yield
        }
    """

    name = "kernel-unroll-quotients"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Unroll in every kernel that is scheduled for a CPU."""
        ranges = facts.ranges
        for loop in filterfalse(is_pinned, flat_vector_loops(function)):
            count = _divisor(loop)
            if count is not None and _is_linear_then(loop, count, ranges) and counter(self.name):
                remark("passed", self.name, loop, "one lane for each quotient", divisor=count)
                _unroll(_without_rest(loop, count), count, ranges)


def _accesses(loop: kernel.ForOp) -> list[Operation]:
    return [op for op in loop.body.block.ops if expr_of(op) is not None]


def _divisor(loop: kernel.ForOp) -> int | None:
    """The constant by which indices divide the axis of a loop; None where none is, or the loop is too short for it."""
    axis, trips = loop.axis.data, (loop.hi.data - loop.lo.data).as_int()
    ops = list(loop.body.block.ops)
    loads = [expr for op in ops if isinstance(op, kernel.LoadOp) and (expr := expr_of(op)) is not None]
    count = common_divisor(loads, axis)
    if trips is None or count is None:
        return None
    fits = trips >= count * LEAST_LANES and count * len(ops) <= MOST_OPS
    return count if fits and not any(map(_prevents, ops)) else None


def _prevents(op: Operation) -> bool:
    return isinstance(op, kernel.AssertOp | kernel.LocalOp)


def _is_linear_then(loop: kernel.ForOp, count: int, ranges: Ranges) -> bool:
    """Whether every index is linear in the axis once a lane takes `count` points."""
    axis = loop.axis.data
    facts = _facts(loop, count, ranges)
    return all(
        not has_atom(simplify(expr.subs(_point(loop, count, rest)), facts), axis, (*DIGITS, "min", "max"))
        for op in _accesses(loop)
        if (expr := expr_of(op)) is not None and not isinstance(op, kernel.IndexOp)
        for rest in range(count)
    )


def _facts(loop: kernel.ForOp, count: int, ranges: Ranges) -> Ranges:
    trips = (loop.hi.data - loop.lo.data).as_int() or 0
    return Ranges.of_axes([(loop.axis.data, as_expr(trips // count))], ranges)


def _point(loop: kernel.ForOp, count: int, rest: int) -> dict:
    """What the axis is at one of the points that a lane takes."""
    return {loop.axis.data: symbol(loop.axis.data) * count + loop.lo.data + rest}


def _without_rest(loop: kernel.ForOp, count: int) -> kernel.ForOp:
    """The loop over as many points as fill all lanes, in front of one over those that are left."""
    axis, lo, hi = loop.axis.data, loop.lo.data, loop.hi.data
    rest = ((hi - lo).as_int() or 0) % count
    if rest:
        block = loop.parent
        assert block is not None
        behind = loop.clone()
        set_range(behind, (axis, hi - rest, hi))
        block.insert_op_after(behind, loop)
        set_range(loop, (axis, lo, hi - rest))
    return loop


def _unroll(loop: kernel.ForOp, count: int, ranges: Ranges) -> None:
    facts = _facts(loop, count, ranges)
    body = loop.body.block
    copies = [_clone(body) for _ in range(count - 1)]
    points = [_point(loop, count, rest) for rest in range(count)]
    for block, point in zip([body, *copies], points, strict=True):
        substitute_axes(block, point)
        for op in block.ops:
            expr = expr_of(op)
            if expr is not None:
                set_expr(op, simplify(expr, facts))
    for block in copies:
        append_body(body, block)
    set_range(loop, (loop.axis.data, ZERO, (loop.hi.data - loop.lo.data) // count))


def _clone(body: Block) -> Block:
    mapping: dict[SSAValue, SSAValue] = {}
    ops: Sequence[Operation] = [op.clone(mapping) for op in body.ops]
    return Block(list(ops))
