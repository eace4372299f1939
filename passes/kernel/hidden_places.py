"""Where along an axis a condition can hold, from the index expressions that it compares."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf
from typing import Any, ClassVar, cast

from typing_extensions import override
from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.scalar import CONVERSIONS, number_of
from ...dialects.sym import ONE, ZERO, Expr, Ranges, as_expr, ceildiv, simplify, smax, smin, symbol
from ...records import dataclass
from ..analysis.loops import loops_around
from .tiles import is_grid, tile_of
from .transforms import range_of, set_range

#: by arith's predicate of signed integers: the one that holds where it does not
_OPPOSITE = {0: 1, 1: 0, 2: 5, 3: 4, 4: 3, 5: 2}
#: where hardly an axis reaches
BEHIND_ALL = 1 << 24
_EQUAL, _LESS, _AT_MOST, _MORE, _AT_LEAST = 0, 2, 3, 4, 5


@dataclass(frozen=True)
class Stretch:
    """Places `lo <= axis < hi`; None: no bound is known."""

    lo: Expr | None = None
    hi: Expr | None = None

    def common(self, other: Stretch) -> Stretch:
        """The places of both."""
        return Stretch(_both(smax, self.lo, other.lo), _both(smin, self.hi, other.hi))

    def hull(self, other: Stretch) -> Stretch:
        """A stretch that has the places of either."""
        return Stretch(_either(smin, self.lo, other.lo), _either(smax, self.hi, other.hi))


def _both(join: Callable[..., Expr], one: Expr | None, other: Expr | None) -> Expr | None:
    return other if one is None else one if other is None else join(one, other)


def _either(join: Callable[..., Expr], one: Expr | None, other: Expr | None) -> Expr | None:
    return None if one is None or other is None else join(one, other)


@dataclass(frozen=True)
class TileOfRows:
    """The tile that a row is in.

    axis: of the rows
    rows: how many a tile has
    """

    axis: str
    rows: int

    def widest(self, bound: Expr, is_upper: bool) -> Expr | None:
        """A bound that holds for all rows of the tile, and is the same for all of them."""
        found = bound.coefficient(self.axis)
        factor = None if found is None else found.as_int()
        if factor is None:
            return None
        rest = bound - symbol(self.axis) * factor
        if self.axis in rest.free_symbols:
            return None
        first = symbol(self.axis) // as_expr(self.rows) * self.rows
        row = first + (self.rows - 1) if (factor > 0) == is_upper else first
        return rest + row * factor


def bounded(op: kernel.ReduceOp, seen: Stretch, ranges: Ranges) -> bool:
    """Let a reduction run only through the steps that have something of a stretch; whether that changed its bounds."""
    known = Ranges.of_axes(((loop.axis.data, loop.hi.data) for loop in loops_around(op)), ranges)
    axis, lo, hi = range_of(op)
    step = as_expr(tile_of(op))
    if seen.lo is not None and lo is ZERO:
        lo = simplify(smax(seen.lo, ZERO) // step * step, known)
    if seen.hi is not None:
        hi = simplify(smin(hi, simplify(ceildiv(seen.hi, step) * step, known)), known)
    if lo is op.lo.data and hi is op.hi.data:
        return False
    set_range(op, (axis, lo, hi))
    return True


@dataclass(frozen=True)
class Places:
    """Looks for places along one axis.

    axis:   along which
    widest: a bound as one that holds for all rows of a tile: (expression, whether it is an upper bound) -> expression,
            or None where there is none
    """

    axis: str
    widest: Callable[[Expr, bool], Expr | None]
    #: what stands for all places; results have `common` and `hull`
    anywhere: ClassVar[Any] = Stretch()

    def seen(self, x: SSAValue) -> Any:
        """Where a number can be above -inf: not where a `select` says that it is."""
        op = x.owner
        if isinstance(op, CONVERSIONS):
            return self.seen(cast(Operation, op).operands[0])
        if not isinstance(op, arith.SelectOp):
            return self.anywhere
        return self._chosen(op, is_lowest, self.seen)

    def counts(self, x: SSAValue) -> Any:
        """Where a number that is summed can be other than 0, apart from NaN: a factor or a choice says so.

        exp(x - m) is 0 where x is -inf.
        """
        op = x.owner
        if isinstance(op, (*CONVERSIONS, arith.NegfOp)):
            return self.counts(cast(Operation, op).operands[0])
        if isinstance(op, arith.MulfOp):
            return self.counts(op.lhs).common(self.counts(op.rhs))
        if isinstance(op, arith.DivfOp):
            return self.counts(op.lhs)
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            return self.counts(op.lhs).hull(self.counts(op.rhs))
        if isinstance(op, math.ExpOp):
            return self._seen_beside(op.operand)
        if not isinstance(op, arith.SelectOp):
            return self.anywhere
        return self._chosen(op, is_zero, self.counts)

    def _chosen(self, op: arith.SelectOp, hides: Callable[[SSAValue], bool], look: Callable[[SSAValue], Any]) -> Any:
        """Where a choice is needed: not where it is the number that `hides`."""
        condition, yes, no = op.operands
        if hides(yes) or hides(no):
            return self.where(condition, hides(no)).common(look(yes if hides(no) else no))
        return look(yes).hull(look(no))

    def _seen_beside(self, x: SSAValue) -> Any:
        """Where a number can be above -inf from which another one is subtracted."""
        op = x.owner
        if isinstance(op, CONVERSIONS):
            return self._seen_beside(cast(Operation, op).operands[0])
        return self._seen_beside(op.lhs) if isinstance(op, arith.SubfOp) else self.seen(x)

    def where(self, condition: SSAValue, holds: bool) -> Any:
        """Where a condition can hold, or fail to."""
        op = condition.owner
        if isinstance(op, arith.CmpiOp):
            return self.compared(op, holds)
        if isinstance(op, arith.XOrIOp):
            for one, other in (op.operands, reversed(op.operands)):
                if number_of(other) is not None:
                    return self.where(one, holds != bool(number_of(other)))
        if isinstance(op, arith.AndIOp | arith.OrIOp):
            left, right = (self.where(each, holds) for each in op.operands)
            return left.common(right) if isinstance(op, arith.AndIOp) == holds else left.hull(right)
        return self.told(condition, holds)

    def told(self, condition: SSAValue, holds: bool) -> Any:
        """Where a condition that is no comparison can hold, or fail to: anywhere."""
        return self.anywhere

    def compared(self, op: arith.CmpiOp, holds: bool) -> Any:
        """Where a comparison of index expressions can hold, or fail to."""
        left, right = _expression(op.lhs), _expression(op.rhs)
        predicate = op.predicate.value.data
        if left is None or right is None or predicate not in _OPPOSITE:
            return Stretch()
        difference = left - right
        if self.axis not in difference.free_symbols:
            return self._of_rows(difference, predicate if holds else _OPPOSITE[predicate])
        factor = difference.coefficient(self.axis)
        if factor is None or factor not in (ONE, -ONE):
            return Stretch()
        rest = difference - factor * symbol(self.axis)
        if self.axis in rest.free_symbols:
            return Stretch()
        predicate = predicate if holds else _OPPOSITE[predicate]
        if factor is ONE:  # axis + rest ~ 0
            place, kind = -rest, predicate
        else:  # rest - axis ~ 0: axis is on the other side
            place, kind = (
                rest,
                {_LESS: _MORE, _AT_MOST: _AT_LEAST, _MORE: _LESS, _AT_LEAST: _AT_MOST}.get(predicate, predicate),
            )
        return self._beside(place, kind)

    def _of_rows(self, difference: Expr, kind: int) -> Stretch:
        """Everywhere or nowhere: where `difference ~ 0` can hold for some row, which is not asked about the axis."""
        is_below = kind in (_LESS, _AT_MOST)
        if not is_below and kind not in (_MORE, _AT_LEAST):
            return Stretch()
        extreme = self.widest(difference, not is_below)
        if extreme is None:
            return Stretch()
        above = extreme if is_below else -extreme  # it holds for no row where this is above 0, or is 0
        above = above + 1 if kind in (_LESS, _MORE) else above
        return Stretch(smin(smax(above, ZERO), ONE) * BEHIND_ALL, None)

    def _beside(self, place: Expr, kind: int) -> Stretch:
        """Where `axis ~ place` holds."""
        lo = {_EQUAL: place, _AT_LEAST: place, _MORE: place + 1}.get(kind)
        hi = {_EQUAL: place + 1, _AT_MOST: place + 1, _LESS: place}.get(kind)
        return Stretch(
            None if lo is None else self.widest(lo, False),
            None if hi is None else self.widest(hi, True),
        )


@dataclass(frozen=True)
class Certainly:
    """Places `lo <= axis < hi` where something is certain; None: up to the end. Nowhere, if it is not known where."""

    lo: Expr | None = None
    hi: Expr | None = None
    is_nowhere: bool = False

    def common(self, other: Certainly) -> Certainly:
        """The places of both."""
        if self.is_nowhere or other.is_nowhere:
            return NOWHERE
        return Certainly(_both(smax, self.lo, other.lo), _both(smin, self.hi, other.hi))

    def hull(self, other: Certainly) -> Certainly:
        """Places of either: all of them where both reach to the same end, else those of one."""
        if self.is_nowhere or other.is_nowhere:
            return other if self.is_nowhere else self
        if self.lo is None and other.lo is None:
            return Certainly(None, _either(smax, self.hi, other.hi))
        if self.hi is None and other.hi is None:
            return Certainly(_either(smin, self.lo, other.lo), None)
        return self


NOWHERE = Certainly(is_nowhere=True)


@dataclass(frozen=True)
class CertainPlaces(Places):
    """Looks for places along one axis where a condition holds for all rows of a tile.

    widest: a bound as one beyond which none of the rows' bounds is
    """

    anywhere: ClassVar[Any] = NOWHERE

    @override
    def compared(self, op: arith.CmpiOp, holds: bool) -> Any:
        """Where a comparison of index expressions holds, or fails to."""
        found = super().compared(op, holds)
        known = [bound for bound in (found.lo, found.hi) if bound is not None]
        return Certainly(found.lo, found.hi) if len(known) == 1 else NOWHERE


def needed_places(op: kernel.ReduceOp, places: Places) -> Any:
    """The places that a reduction needs; None where its kind says nothing."""
    kinds = {c.data for c in op.combiners}
    looks = {"sum": places.counts, "max": places.seen, "softmax_sum": places.seen}
    look = looks.get(kinds.pop()) if len(kinds) == 1 else None
    if look is None:
        return None
    values = yielded(op.body)[:: 3 if op.combiners.data[0].data == "softmax_sum" else 1]
    return reduce(lambda found, more: found.hull(more), map(look, values))


def has_products(op: kernel.ReduceOp) -> bool:
    """Whether the body of a reduction has products, and they run on matrix units."""
    inner = [each for each in op.body.block.ops if each.regions]
    return bool(inner) and all(isinstance(each, kernel.ReduceOp) and each.mapping.data == "matrix" for each in inner)


def tiled_rows(op: kernel.ReduceOp) -> kernel.ForOp | None:
    """The loop around a reduction whose tiles are programs; None where there are several, or none."""
    rows = [each for each in loops_around(op) if isinstance(each, kernel.ForOp) and is_grid(each) and each.tile]
    return rows[0] if len(rows) == 1 else None


def is_zero(value: SSAValue) -> bool:
    """Whether a value is the constant 0."""
    return number_of(_unconverted(value)) == 0


def is_lowest(value: SSAValue) -> bool:
    """Whether a value is the constant -inf."""
    return number_of(_unconverted(value)) == -inf


def _unconverted(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, CONVERSIONS):
        value = cast(Operation, value.owner).operands[0]
    return value


def _expression(value: SSAValue) -> Expr | None:
    """An integer as an index expression; None where it is loaded."""
    op = value.owner
    if isinstance(op, arith.AddiOp | arith.SubiOp):
        left, right = map(_expression, op.operands)
        if left is None or right is None:
            return None
        return left + right if isinstance(op, arith.AddiOp) else left - right
    return kernel.index_of(value)
