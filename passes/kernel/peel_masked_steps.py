"""The pass `kernel-peel-masked-steps`."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import Expr, Ranges, as_expr, ceildiv, prove_le, simplify, smax, smin
from ...records import dataclass
from ..analysis.loops import loops_around, loops_in
from ..analysis.sizes import Sizes
from ..counters import counter
from ..remarks import remark
from .conditions import take_condition
from .hidden_places import Certainly, CertainPlaces, TileOfRows, is_lowest, is_zero, tiled_rows
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .simplify_block import remove_dead
from .tiles import tile_of
from .transforms import range_of, set_range

#: steps without a mask that a tile in the middle of the rows has for each loop more, which fills its stages anew
LEAST_CLEAR = 4

#: a condition, and the value that it has in a step without a mask
Decided = tuple[SSAValue, bool]


@dataclass(frozen=True)
class KernelPeelMaskedSteps(KernelPass, kernels=all_for_gpu):
    """Run the steps of a sum on matrix units that a mask hides nothing of by themselves, without the mask.

    Level: kernel.

    Precondition: `kernel-bound-steps`, which leaves out steps that are hidden entirely, and
    `kernel-skip-hidden-steps`: what runs within loaded places stays as it is.
    Guarantee: the same values, every step once, in the same order. Where choices of -inf or 0 in the body of a
    reduction on matrix units are decided for all rows of a tile, in a stretch of whole steps that is
    known from index expressions, the reduction is two or three: that of the stretch has no such choices, and each goes
    on from what the one in front of it has (`init`). Not where a tile in the middle of the rows has fewer than
    `LEAST_CLEAR` steps for each of the new loops.

        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          %g = kernel.reduce sum i3 in 64*(i1 floordiv 64) to 512 map matrix tile 64 { %p = kernel.reduce sum i4 ...
            %c = arith.cmpi sgt, %i1, %i3   %x = arith.select %c, %zero, %p   ... } ... }
    becomes
        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          %a = kernel.reduce sum i3 in 64*(i1 floordiv 64) to 64*(i1 floordiv 64) + 64 map matrix tile 64 { ...
            %x = arith.select %c, %zero, %p   ... }
          %g = kernel.reduce sum init(%a) i3 in 64*(i1 floordiv 64) + 64 to 512 map matrix tile 64 { ... %p ... } ... }
    """

    name = "kernel-peel-masked-steps"
    peel_least: int = LEAST_CLEAR

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Peel the reductions of a kernel."""
        for op in list(loops_in(function.body.block)):
            if not isinstance(op, kernel.ReduceOp) or op.within or op.init or not _is_on_units(op):
                continue
            rows = tiled_rows(op)
            if rows is None:
                continue
            clear, decided = _clear_steps(op, rows)
            if not decided:
                continue
            parts = _parts(op, clear, facts.ranges)
            if not self._pays(parts, op, rows, facts.sizes) or not counter(self.name):
                continue
            steps = f"steps from {parts.first} to {parts.last} of {op.axis.data} have no mask"
            _peel(op, parts, decided)
            remark("passed", self.name, function, steps)

    def _pays(self, parts: _Parts, op: kernel.ReduceOp, rows: kernel.ForOp, sizes: Sizes) -> bool:
        """Whether a tile in the middle of the rows has enough steps without a mask."""
        middle = {rows.axis.data: as_expr(sizes.trips(rows) // 2)}
        steps = sizes.of(ceildiv((parts.last - parts.first).subs(middle), tile_of(op)))
        return parts.count > 1 and steps >= self.peel_least * (parts.count - 1)


@dataclass(frozen=True)
class _Parts:
    """A range cut in three: from `lo` to `first`, the stretch without a mask up to `last`, and from there to `hi`."""

    lo: Expr
    first: Expr
    last: Expr
    hi: Expr

    @property
    def ranges(self) -> list[tuple[Expr, Expr, bool]]:
        """Those that have steps, with whether they have no mask."""
        found = (self.lo, self.first, False), (self.first, self.last, True), (self.last, self.hi, False)
        return [each for each in found if each[0] is not each[1]]

    @property
    def count(self) -> int:
        """How many loops there are."""
        return len(self.ranges)


def _is_on_units(op: kernel.ReduceOp) -> bool:
    """Whether a reduction runs on matrix units, as do the products in its body."""
    inner = (each for each in op.body.block.ops if each.regions)
    return all(isinstance(each, kernel.ReduceOp) and each.mapping.data == "matrix" for each in (op, *inner))


def _clear_steps(op: kernel.ReduceOp, rows: kernel.ForOp) -> tuple[Certainly, list[Decided]]:
    """Where along a reduction's axis choices do not hide anything of a tile of rows, and what decides them there."""
    tile = TileOfRows(rows.axis.data, tile_of(rows))
    places = CertainPlaces(op.axis.data, lambda bound, is_upper: tile.widest(bound, not is_upper))
    found, decided = Certainly(), dict[SSAValue, bool]()
    for each in op.body.block.ops:
        if not isinstance(each, arith.SelectOp) or each.cond in decided:
            continue
        hidden = [_hides(each.lhs), _hides(each.rhs)]
        if hidden[0] == hidden[1] or op.axis.data not in kernel.axes_of(each.cond):
            continue
        clear = places.where(each.cond, holds=hidden[1])
        if not clear.is_nowhere:
            found = found.common(clear)
            decided[each.cond] = hidden[1]
    return found, list(decided.items())


def _hides(value: SSAValue) -> bool:
    return is_lowest(value) or is_zero(value)


def _parts(op: kernel.ReduceOp, clear: Certainly, ranges: Ranges) -> _Parts:
    """The range of a reduction in whole steps; a part that is known to be empty has equal ends."""
    known = Ranges.of_axes(((loop.axis.data, loop.hi.data) for loop in loops_around(op)), ranges)
    _, lo, hi = range_of(op)
    step = as_expr(tile_of(op))
    first, last = lo, hi
    if clear.lo is not None:
        first = simplify(ceildiv(simplify(clear.lo, known), step) * step, known)
        first = _least(_most(first, lo, known), hi, known)
    if clear.hi is not None:
        last = simplify(simplify(clear.hi, known) // step * step, known)
        last = _most(_least(last, hi, known), first, known)
    return _Parts(lo, first, last, hi)


def _most(one: Expr, other: Expr, known: Ranges) -> Expr:
    if prove_le(one, other, known):
        return other
    return one if prove_le(other, one, known) else smax(one, other)


def _least(one: Expr, other: Expr, known: Ranges) -> Expr:
    if prove_le(one, other, known):
        return one
    return other if prove_le(other, one, known) else smin(one, other)


def _peel(op: kernel.ReduceOp, parts: _Parts, decided: list[Decided]) -> None:
    """Let reductions over the parts, one after the other, stand in place of one."""
    block, ops = op.parent, list(op.body.block.ops)
    assert block is not None
    before: kernel.ReduceOp | None = None
    for lo, hi, is_clear in parts.ranges:
        part = op.clone()
        set_range(part, (op.axis.data, lo, hi))
        if before is not None:
            part.go_on_from(before.results)
        block.insert_op_before(part, op)
        if is_clear:
            copies = list(part.body.block.ops)
            for condition, value in decided:
                assert isinstance(condition.owner, Operation)
                copy = copies[ops.index(condition.owner)]
                take_condition(copy.results[0], value)
            remove_dead(part.body.block)
        before = part
    assert before is not None
    for old, new in zip(op.results, before.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    block.erase_op(op)
