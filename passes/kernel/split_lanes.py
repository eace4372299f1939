"""The pass `kernel-split-lanes`, and what conditions and quotients change along an axis."""

from __future__ import annotations

from itertools import pairwise

from ...dialects import kernel
from ...dialects.sym import Atom, Ranges, as_expr, simplify, symbol
from ..analysis.loops import flat_vector_loops
from ..counters import counter
from .conditions import condition_on, pieces, resolve_conditions, split_at
from .kernel_pass import KernelFacts, KernelPass
from .lane_indices import DIGITS, atoms_on, expr_of, set_expr
from .pinned import is_pinned
from .scheduled import tiled_for_cpu

#: parts of a loop at most: each has the body once more
PARTS = 4


class KernelSplitLanes(KernelPass, kernels=tiled_for_cpu):
    """Split vector loops where conditions on their axis, and quotients of it, change (index-set splitting).

    Level: kernel.

    Precondition: `kernel-choose-threads` for a CPU; other kernels stay as they are.
    Guarantee: a vector loop of constant bounds that conditions cut into at most four parts, each long enough to fill
    the lanes, is these parts one after the other, without the conditions. Every iteration runs once, in order. So is
    one whose indices have `(i + c) mod n` or `floordiv n`, with the parts of one quotient each, of which one fills the
    lanes: `roll` copies two runs of neighbours where lanes would gather.

        kernel.for i0 in 0 to 128 map vector tile 16 {
          %i = kernel.index i0  %n = kernel.index 64  %c = arith.cmpi slt, %i, %n : i64
          %v = arith.select %c, %a, %b : f32 ... }
    becomes
        kernel.for i0 in 0 to 64 map vector tile 16 { ... %a ... }
        kernel.for i0 in 64 to 128 map vector tile 16 { ... %b ... }
    """

    name = "kernel-split-lanes"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Split the vector loops that have constant bounds where conditions on their axis, or quotients of it, change.

        The parts run one after the other in the order of the axis, so that every iteration runs once, as before.
        """
        ranges = facts.ranges
        for op in flat_vector_loops(function):
            if not is_pinned(op):
                _split(op, ranges)


def _split(op: kernel.ForOp, ranges: Ranges) -> None:
    lo, hi, tile = op.lo.data.as_int(), op.hi.data.as_int(), op.tile
    if lo is None or hi is None or tile is None:
        return
    bounds = _bounds(op, lo, hi, tile.value.data)
    if len(bounds) == 2 or not counter(KernelSplitLanes.name):
        return
    for (start, end), part in zip(pairwise(bounds), split_at(op, pieces(bounds)), strict=True):
        resolve_conditions(part.body.block, part, start, end)
        _resolve_digits(part, start, end, ranges)


def _bounds(op: kernel.ForOp, lo: int, hi: int, lanes: int) -> list[int]:
    """Where the parts of a loop begin and end."""
    conditions = {c[0] for inner in op.body.block.ops if (c := condition_on(inner, op)) is not None}
    bounds = {lo, hi, *(cut for cut in conditions if lo < cut < hi)}
    # A part that does not fill its lanes would be slower than masks.
    if any(end - start < lanes for start, end in pairwise(sorted(bounds))) or len(bounds) - 1 > PARTS:
        bounds = {lo, hi}
    # It is not slower than a load of one element a lane, which all have where a quotient is left.
    digits = bounds | _quotients_change(op, lo, hi)
    longest = max((end - start for start, end in pairwise(sorted(digits))), default=0)
    return sorted(digits if len(digits) - 1 <= PARTS and longest >= lanes else bounds)


def _quotients_change(op: kernel.ForOp, lo: int, hi: int) -> set[int]:
    """The points at which a quotient of the axis by a constant is another than at the point before; none of an axis
    that is stretched."""
    axis = op.axis.data
    found: set[int] = set()
    for inner in op.body.block.ops:
        expr = expr_of(inner)
        if expr is not None and axis in expr.free_symbols and not isinstance(inner, kernel.IndexOp):
            for atom in atoms_on(expr, axis, DIGITS):
                cuts = _cuts(atom, axis, lo, hi)
                if cuts is None:
                    return set()
                found |= cuts
    return found


def _cuts(atom: Atom, axis: str, lo: int, hi: int) -> set[int] | None:
    """Where the quotient of an atom changes between two points; None where that is not known, or it changes often."""
    dividend, divisor = atom.args[0], atom.args[1].as_int()
    coefficient = dividend.coefficient(axis)
    rest = dividend.subs({axis: as_expr(0)}).as_int()
    if divisor is None or divisor < 1 or coefficient is None or rest is None or coefficient.as_int() not in (1, -1):
        return None
    if coefficient.as_int() == 1:  # i + rest is a multiple of n
        first = lo + 1 + -(lo + 1 + rest) % divisor
    else:  # rest - i + 1 is one
        first = lo + 1 + (rest - lo) % divisor
    cuts = range(first, hi, divisor)
    return set(cuts) if len(cuts) < PARTS else None


def _resolve_digits(part: kernel.ForOp, start: int, end: int, ranges: Ranges) -> None:
    """Write the indices of a part without the quotients that are one number in it."""
    axis = part.axis.data
    facts = Ranges.of_axes([(axis, as_expr(end - start))], ranges)
    for op in part.body.block.ops:
        expr = expr_of(op)
        if expr is not None and any(True for _ in atoms_on(expr, axis, DIGITS)):
            shifted = simplify(expr.subs({axis: symbol(axis) + start}), facts)
            set_expr(op, shifted.subs({axis: symbol(axis) - start}))
