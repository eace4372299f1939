"""Where the largest or smallest element of a window that is written out stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import Expr, as_expr
from ..analysis.loops import Loop

#: monoid -> the comparison by which an element that is a number is before what was found
EXTREMES = {"argmax": "ogt", "argmin": "olt"}
#: the place of an element that is none
NOWHERE = (1 << 63) - 1
#: the largest distance of places in a window
FARTHEST = (1 << 31) - 1


class Inserter:
    """Inserts ops in front of one, with its location."""

    def __init__(self, before: Operation) -> None:
        self.before = before

    def __call__(self, op: Operation) -> SSAValue:
        """Insert an op; its result."""
        block = self.before.parent
        assert block is not None
        op.location = self.before.location
        block.insert_op_before(op, self.before)
        return op.results[0]

    def number(self, value: float, type_: Attribute) -> SSAValue:
        """Insert a constant."""
        made = FloatAttr(value, type_) if isinstance(value, float) else IntegerAttr(value, type_)  # pyright: ignore
        return self(arith.ConstantOp(made))


def window_points(chain: Sequence[kernel.ReduceOp]) -> list[dict[str, Expr]]:
    """The values of the axes of a chain at each of its points, in order."""
    ranges = [_values(op) for op in chain]
    names = [op.axis.data for op in chain]
    return [dict(zip(names, map(as_expr, point), strict=True)) for point in product(*ranges)]


def _values(op: Loop) -> range:
    lo, hi = op.lo.data.as_int(), op.hi.data.as_int()
    assert lo is not None and hi is not None
    return range(lo, hi)


def _place_of(value: SSAValue) -> tuple[kernel.IndexOp, SSAValue | None] | None:
    """The index that a yielded place is, and the condition without which it is nowhere; None for other places."""
    owner = value.owner
    mask = None
    if isinstance(owner, arith.SelectOp):
        last = owner.rhs.owner
        if not isinstance(last, arith.ConstantOp) or last.value != IntegerAttr(NOWHERE, i64):
            return None
        mask, owner = owner.cond, owner.lhs.owner
    return (owner, mask) if isinstance(owner, kernel.IndexOp) and not owner.dynamic else None


def has_rising_places(chain: Sequence[kernel.ReduceOp]) -> bool:
    """Whether the places that a chain of an `argmax` yields rise from point to point by constants."""
    _, value = yielded(chain[-1].body)
    place = _place_of(value)
    if place is None:
        return False
    exprs = [place[0].expr.data.subs(point) for point in window_points(chain)]
    steps = [(after - before).as_int() for before, after in pairwise(exprs)]
    known = [step for step in steps if step is not None]
    return len(known) == len(steps) and all(step > 0 for step in known) and sum(known) <= FARTHEST


def find_extreme(monoid: str, elements: Sequence[tuple[SSAValue, ...]], insert: Inserter) -> tuple[SSAValue, SSAValue]:
    """The largest or smallest of (value, place) pairs, whose places rise, and where it stands.

    A NaN is before all numbers, and the first of equal elements counts. As places rise, an element that comes later
    never wins a tie; the first one whose mask holds is found before any is looked at, for it may be an infinity that
    is before nothing. What a lane carries of the place is its distance from the first one, a constant of 32 bits. Only
    elements are asked whether they are NaN: of what was found, which is one or the other, GCC 12 would ask both on
    paths of their own and use no lanes.
    """
    places = [_place_of(place) for _, place in elements]
    known = [place for place in places if place is not None]
    base = known[0][0]
    distances = [(index.expr.data - base.expr.data).as_int() or 0 for index, _ in known]
    found = _first_place([mask for _, mask in known], distances, insert)
    best = elements[0][0]
    true = insert.number(1, i1)
    nan = insert(arith.CmpfOp(best, best, "uno"))
    for (value, _), distance in zip(elements[1:], distances[1:], strict=True):
        before = insert(arith.CmpfOp(value, best, EXTREMES[monoid]))
        own = insert(arith.CmpfOp(value, value, "uno"))
        taken = insert(arith.OrIOp(before, insert(arith.AndIOp(own, insert(arith.XOrIOp(nan, true))))))
        nan = insert(arith.OrIOp(nan, own))
        best = insert(arith.SelectOp(taken, value, best))
        found = insert(arith.SelectOp(taken, insert.number(distance, i32), found))
    total = insert(arith.AddiOp(base.results[0], insert(arith.ExtSIOp(found, i64))))
    if any(mask is None for _, mask in known):
        return best, total
    some = insert(arith.CmpiOp(found, insert.number(0, i32), "sge"))
    return best, insert(arith.SelectOp(some, total, insert.number(NOWHERE, i64)))


def _first_place(masks: Sequence[SSAValue | None], distances: Sequence[int], insert: Inserter) -> SSAValue:
    """The distance of the first element whose mask holds; -1 where none does."""
    certain = next((k for k, mask in enumerate(masks) if mask is None), len(masks))
    first = insert.number(distances[certain] if certain < len(masks) else -1, i32)
    for mask, distance in reversed(list(zip(masks[:certain], distances[:certain], strict=True))):
        assert mask is not None
        first = insert(arith.SelectOp(mask, insert.number(distance, i32), first))
    return first
