"""`kernel-peel-lanes`: only the ends of an axis of lanes keep masks and clamps that nothing between them needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import filterfalse, product

from xdsl.dialects.arith import CmpiOp
from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.sym import Expr, Ranges, as_expr, simplify, smax, smin, symbol
from ...records import dataclass
from ..analysis.loops import flat_vector_loops, loops_in
from ..analysis.nests import widest_scalar
from ..counters import counter
from ..remarks import remark
from .conditions import difference_of, holds, split_at, take_condition
from .kernel_pass import KernelFacts, KernelPass
from .lane_indices import DIGITS, expr_of, has_atom, set_expr
from .pinned import is_pinned
from .scheduled import tiled_for_cpu
from .simplify_block import remove_dead

#: bytes of the lanes that an end takes, or a few times as many: what a common SIMD register holds
END_BYTES = 32
ENDS = (1, 2, 3, 4)
CLAMPS = ("min", "max")
#: most ops of a body that is there three times afterwards
MOST_OPS = 2000


class PeelLanes(KernelPass, kernels=tiled_for_cpu):
    """Run the ends of an axis of lanes by themselves, where the middle then needs no masks, choices or clamps.

    level:         kernel
    precondition:  kernels are scheduled for a CPU, by `kernel-choose-threads`
    guarantee:     the same values. On a CPU, a flat loop of lanes whose conditions on its axis, and `min` and `max` of
                   it in indices, are decided for all points but a few at its ends, is three loops (two, where one end
                   needs nothing): the ends as before, and the middle without them. Ends and middle are whole SIMD
                   registers where the length of the axis is known, but for ends of few points that load an element at
                   a time. So are the rows around loops of lanes, where
                   comparisons decide masks in them.

        kernel.for i1 in 0 to 128 map vector tile 16 {
          ... %inside: 0 <= i1 - 1
          %a = kernel.load %x[128*i0 + i1 - 1] if %inside else %zero
          kernel.store %a, %y[128*i0 + i1]  kernel.yield
        }
    becomes
        kernel.for i1 in 0 to 8 map vector tile 16 { ... as before ... }
        kernel.for i1 in 8 to 128 map vector tile 16 {
          %a = kernel.load %x[128*i0 + i1 - 1]
          kernel.store %a, %y[128*i0 + i1]  kernel.yield
        }
    """

    name = "kernel-peel-lanes"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Peel in every kernel that is scheduled for a CPU."""
        ranges = facts.ranges
        for loop in filterfalse(is_pinned, flat_vector_loops(function)):
            _peel(loop, _open_in(loop), max(END_BYTES // widest_scalar(loop), 1), ranges, self.name)
        for loop in filterfalse(is_pinned, _rows(function)):
            _peel(loop, _open_in(loop), 1, ranges, self.name)


@dataclass
class Decided:
    """What is known at all points of a stretch of an axis.

    conditions: comparisons and their values; exprs: indices with fewer clamps; complete: whether nothing is left open
    """

    conditions: dict[Operation, bool] = field(default_factory=dict)
    exprs: dict[Operation, Expr] = field(default_factory=dict)
    complete: bool = True


def _rows(function: kernel.FuncOp) -> list[kernel.ForOp]:
    """The serial loops whose bodies hold a loop of lanes."""
    loops = [loop for loop in loops_in(function.body.block) if isinstance(loop, kernel.ForOp)]
    return [loop for loop in loops if loop.mapping.data == "serial" and any(map(_is_lanes, loop.body.block.ops))]


def _is_lanes(op: Operation) -> bool:
    return isinstance(op, kernel.ForOp) and op.mapping.data == "vector"


def _open_in(loop: kernel.ForOp) -> list[Operation]:
    """The ops of a loop that ask for a place on its axis. In a loop of rows those are comparisons."""
    flat = _is_lanes(loop)
    return [op for op in loop.body.block.ops if (flat or isinstance(op, CmpiOp)) and _depends(op, loop.axis.data)]


def _peel(loop: kernel.ForOp, open_ops: list[Operation], lanes: int, ranges: Ranges, name: str) -> None:
    """Split a loop where the largest middle in which everything is decided begins and ends, if there is one."""
    if not open_ops or sum(1 for _ in loop.walk()) > MOST_OPS:
        return
    lo, hi = loop.lo.data, loop.hi.data
    trips = (hi - lo).as_int()
    fine = _gathers_at_ends(loop, open_ops)
    for before, behind in ends(lanes, fine):
        if trips is not None:
            behind += (trips - before - behind) % lanes if behind and not fine else 0
            if trips - before - behind < max(before, behind, 2 * lanes):
                continue
        if not _decide(loop, open_ops, lo + before, hi - lo - before - behind, ranges).complete:
            continue
        if counter(name):
            remark("passed", name, loop, "ends by themselves")
            _split(loop, before, behind, ranges)
        return


def _gathers_at_ends(loop: kernel.ForOp, open_ops: list[Operation]) -> bool:
    """Whether ends would load an element at a time, as clamped indices do, so that they should be short.

    A row of 64 points that is padded by one at both ends, by copies of these, is 1, 64 and 1 points then, rather than
    8, 48 and 10. Lanes along a quotient begin where one does.
    """
    axis, exprs = loop.axis.data, list(filter(None, map(expr_of, loop.body.block.ops)))
    clamped = all(isinstance(op, kernel.LoadOp | kernel.StoreOp) for op in open_ops)
    return clamped and not any(has_atom(expr, axis, DIGITS) for expr in exprs)


def ends(lanes: int, fine: bool = False) -> Iterator[tuple[int, int]]:
    """How many points to try before and behind the middle, few first; `fine`: also less than fill the lanes."""
    sizes = sorted({0, *(count * lanes for count in ENDS), *(ENDS if fine else ())})
    pairs = [pair for pair in product(sizes, sizes) if any(pair)]
    yield from sorted(pairs, key=sum)


def _depends(op: Operation, axis: str) -> bool:
    """Whether an op compares an axis, or clamps it in an index."""
    if isinstance(op, CmpiOp):
        difference = difference_of(op)
        return difference is not None and axis in difference.free_symbols
    expr = expr_of(op)
    return expr is not None and has_atom(expr, axis, CLAMPS)


def _decide(loop: kernel.ForOp, open_ops: list[Operation], start: Expr, length: Expr, ranges: Ranges) -> Decided:
    """What is known of ops at `length` points of an axis from `start` on."""
    axis = loop.axis.data
    facts = Ranges.of_axes([(axis, length)], ranges)
    shifted, back = {axis: symbol(axis) + start}, {axis: symbol(axis) - start}
    decided = Decided()
    for op in open_ops:
        expr = difference_of(op) if isinstance(op, CmpiOp) else expr_of(op)
        assert expr is not None
        simpler = simplify(expr.subs(shifted), facts)
        if isinstance(op, CmpiOp):
            value = holds(op, simpler, facts)
            decided.complete &= value is not None
            if value is not None:
                decided.conditions[op] = value
        else:
            decided.complete &= not has_atom(simpler, axis, CLAMPS)
            decided.exprs[op] = simpler.subs(back)
    return decided


def _split(loop: kernel.ForOp, before: int, behind: int, ranges: Ranges) -> None:
    """Split a loop into its ends and the middle, in the order of the axis."""
    lo, hi = loop.lo.data, loop.hi.data
    start, end = lo + before, hi - behind
    if (hi - lo).as_int() is None:  # the ends may meet
        start = smin(start, hi) if before else lo
        end = smax(start, end) if behind else hi
    length = hi - lo
    # bounds, and what is known of the points: the least distance from the beginning, and how many there are at most
    known = length.as_int()
    last = (before, length - before) if known is None else (known - behind, as_expr(behind))
    parts = [
        ((lo, start), 0, as_expr(before)),
        ((start, end), before, length - before - behind),
        ((end, hi), *last),
    ]
    parts = [part for part in parts if part[0][0] is not part[0][1]]
    for (_, first, most), part in zip(parts, split_at(loop, [bounds for bounds, *_ in parts]), strict=True):
        _resolve(part, _decide(part, _open_in(part), lo + first, most, ranges))


def _resolve(loop: kernel.ForOp, decided: Decided) -> None:
    """Leave out of a loop what is decided in it."""
    for op, expr in decided.exprs.items():
        set_expr(op, expr)
    for op, value in decided.conditions.items():
        take_condition(op.results[0], value)
    remove_dead(loop.body.block)
