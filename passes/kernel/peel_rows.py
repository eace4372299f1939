"""`kernel-peel-rows`: only the first and last rows keep the masks that the rows between them do not need."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from xdsl.dialects.arith import CmpiOp
from xdsl.ir import Block, Region

from ...dialects import kernel
from ...dialects.raw import ops_in
from ...dialects.sym import ONE, ZERO, Atom, Expr, Ranges, as_expr, simplify, smax, smin, symbol
from ...records import dataclass
from ..analysis.loops import Loop, fresh_axis, kernel_names, loops_in, nested_axes
from ..counters import counter
from ..remarks import remark
from .conditions import difference_of, holds, pieces, split_at, take_condition
from .kernel_pass import KernelFacts, KernelPass
from .lane_indices import atoms_on, expr_of, set_expr
from .peel_lanes import ends
from .scheduled import tiled_for_cpu
from .simplify_block import remove_dead

#: most ops of a body that is there three times afterwards
MOST_OPS = 1000
#: fewest rows between the ends
LEAST_ROWS = 2
#: no axis has this name
ROW = "row"


class PeelRows(KernelPass, kernels=tiled_for_cpu):
    """Run the first and the last rows of lanes by themselves, where the middle then needs no masks.

    level:         kernel
    precondition:  `kernel-peel-lanes` is done; other kernels than those for a CPU stay as they are
    guarantee:     the same values, every iteration once. A loop around loops of lanes, at any depth, whose conditions
                   on its axis are decided for all rows but a few at its ends is three loops. Threads that take rows of
                   several images at once, so that the row is `i0 mod 56`, choose among three loops that run once or
                   not at all. Conditions that also depend on a lane are none that rows decide.

        kernel.for i0 in 0 to 224 map parallel { kernel.for i1 in 0 to 64 map vector tile 16 {
          ... %inside: 0 <= i0 mod 56 - 1
          %a = kernel.load %x[64*i0 + i1 - 64] if %inside else %zero ... } }
    becomes
        kernel.for i0 in 0 to 224 map parallel {
          kernel.for i2 in i0 mod 56 to min(i0 mod 56 + 1, 1) { kernel.for i1 in 0 to 64 map vector tile 16 { %zero } }
          kernel.for i2 in max(i0 mod 56, 1) to i0 mod 56 + 1 { kernel.for i1 in 0 to 64 map vector tile 16 {
            %a = kernel.load %x[64*i0 + i1 - 64] ... } } }
    """

    name = "kernel-peel-rows"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Peel in every kernel that is scheduled for a CPU."""
        ranges, names = facts.ranges, kernel_names(function)
        loops = [loop for loop in loops_in(function.body.block) if isinstance(loop, kernel.ForOp)]
        for loop in reversed(loops):  # inner ones first
            rows = _rows_of(loop)
            cut = _cut(rows, ranges) if rows is not None else None
            if rows is not None and cut is not None and counter(self.name):
                remark("passed", self.name, loop, "first and last rows by themselves")
                _split(rows, cut, ranges, names)


@dataclass(frozen=True)
class _Rows:
    """The rows that a loop visits: from `first` up to `last`. `row` is the loop's axis, or a remainder of it."""

    loop: kernel.ForOp
    row: Atom
    first: int
    last: int


def _rows_of(loop: kernel.ForOp) -> _Rows | None:
    """What the conditions in a loop around lanes take for the row; None if they test no row, or several expressions."""
    inner = [each for region in loop.regions for each in loops_in(region.block)]
    if loop.mapping.data not in ("serial", "parallel") or not any(_is_lanes(each) for each in inner):
        return None
    axis, found = loop.axis.data, list[Expr]()
    for count, op in enumerate(ops_in(loop)):
        if count > MOST_OPS:
            return None
        difference = difference_of(op)
        if difference is not None and axis in difference.free_symbols:
            found.append(difference)
    remainders = {atom for difference in found for atom in atoms_on(difference, axis, ("mod",))}
    lo, hi = loop.lo.data.as_int(), loop.hi.data.as_int()
    if len(remainders) == 1:
        (row,) = remainders
        size = row.args[1].as_int()
        whole = lo == 0 and hi is not None and size is not None and size > 0 and hi % size == 0
        if size is None or not whole or row.args[0] is not symbol(axis):
            return None
        return None if any(axis in _bounds_of(each) for each in inner) else _Rows(loop, row, 0, size)
    if not found or remainders or lo is None or hi is None or any(axis in _bounds_of(each) for each in inner):
        return None
    return _Rows(loop, _atom(axis), lo, hi)


def _bounds_of(loop: Loop) -> frozenset[str]:
    return loop.lo.data.free_symbols | loop.hi.data.free_symbols


def _is_lanes(op: Loop) -> bool:
    return op.mapping.data == "vector"


def _atom(name: str) -> Atom:
    ((monomial, _),) = symbol(name).terms
    return monomial[0]


def _cut(rows: _Rows, ranges: Ranges) -> tuple[int, int] | None:
    """How many rows at either end to run by themselves; None where that does not decide all conditions on the row."""
    conditions = list(_conditions(rows.loop, rows.row))
    facts = _facts(rows.loop, ranges)
    for before, behind in ends(1) if conditions else ():
        start, end = rows.first + before, rows.last - behind
        enough = end - start >= max(before, behind, LEAST_ROWS)
        if enough and all(_value(*each, rows.row, (start, end), facts) is not None for each in conditions):
            return before, behind
    return None


def _conditions(loop: kernel.ForOp, row: Atom) -> Iterator[tuple[CmpiOp, Expr]]:
    """The comparisons in a loop that depend on the row and on no lane, and what they compare with zero."""
    lanes = {each.axis.data for region in loop.regions for each in loops_in(region.block) if _is_lanes(each)}
    for op in loop.walk():
        difference = difference_of(op)
        if difference is not None and (row,) in difference.table and lanes.isdisjoint(difference.free_symbols):
            assert isinstance(op, CmpiOp)
            yield op, difference


def _facts(loop: kernel.ForOp, ranges: Ranges) -> Ranges:
    """What is known of the axes inside of a loop."""
    inner = nested_axes(loop).items()
    return Ranges.of_axes([(name, hi) for name, (lo, hi) in inner if lo is ZERO], ranges)


def _value(op: CmpiOp, difference: Expr, row: Atom, stretch: tuple[int, int], facts: Ranges) -> bool | None:
    """The value of a comparison in a stretch of rows; None where it has several, or that is not known."""
    start, end = stretch
    facts = Ranges.of_axes([(ROW, as_expr(end - start))], facts)
    return holds(op, _replaced(difference, row, symbol(ROW) + start), facts)


def _replaced(expr: Expr, row: Atom, by: Expr) -> Expr:
    """An expression with another one in place of a factor."""
    total = ZERO
    for monomial, coefficient in expr.terms:
        term = as_expr(coefficient)
        for atom in monomial:
            term = term * (by if atom is row else atom.expr)
        total = total + term
    return total


def _split(rows: _Rows, cut: tuple[int, int], ranges: Ranges, names: set[str]) -> None:
    """Write a loop as the ends and the middle, in order."""
    is_axis = rows.row.kind == "symbol" and rows.loop.mapping.data == "serial"
    target = rows.loop if is_axis else _one_row(rows, names)
    axis, lo, hi = target.axis.data, target.lo.data, target.hi.data
    points = (rows.first, rows.first + cut[0], rows.last - cut[1], rows.last)
    stretches = [(start, end) for start, end in pairwise(points) if start != end]
    if is_axis:
        places = pieces([rows.first, *(end for _, end in stretches)])
    else:  # one row is in front of none, and behind none, of all rows
        places = [
            (
                lo if start == rows.first else smax(lo, as_expr(start)),
                hi if end == rows.last else smin(hi, as_expr(end)),
            )
            for start, end in stretches
        ]
    for (start, end), part in zip(stretches, split_at(target, places), strict=True):
        facts = _facts(part, ranges)
        for op, difference in list(_conditions(part, _atom(axis))):
            value = _value(op, difference, _atom(axis), (start, end), facts)
            if value is not None:
                take_condition(op.results[0], value)
        remove_dead(part.body.block)


def _one_row(rows: _Rows, names: set[str]) -> kernel.ForOp:
    """Put the body of a loop into a loop over the one row that it is, and name the places by that one's axis.

    `i0 == 56*(i0 floordiv 56) + i0 mod 56`: what is known of the row bounds the places, too.
    """
    body, own, axis = rows.loop.body.block, symbol(rows.loop.axis.data), fresh_axis(names)
    row, place = rows.row.expr, symbol(axis)
    if rows.row.kind != "symbol":
        place = own // rows.last * rows.last + place
    end = body.last_op
    assert end is not None
    inside = [op for op in body.ops if op is not end]
    for op in inside:
        op.detach()
    block = Block([*inside, kernel.YieldOp.create()])
    facts = Ranges.of_axes([(axis, as_expr(rows.last))])
    for op in block.walk():
        expr = expr_of(op)
        if expr is not None and rows.loop.axis.data in expr.free_symbols:
            replaced = _replaced(expr, rows.row, symbol(axis))
            set_expr(op, simplify(replaced.subs({rows.loop.axis.data: place}), facts))
    loop = kernel.ForOp.of(axis, row, row + ONE, Region(block), location=rows.loop.location)
    body.insert_op_before(loop, end)
    return loop
