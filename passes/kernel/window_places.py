"""Where the largest or smallest element of a window that is written out stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel, scalar
from ...dialects.loop import yielded
from ...dialects.sym import Expr, as_expr
from ...records import dataclass
from ..analysis.loops import Loop

#: monoid -> the comparison by which an element that is a number is before what was found
EXTREMES = {"argmax": "ogt", "argmin": "olt"}
#: the place of an element that is none
NOWHERE = (1 << 63) - 1
#: the number of the predicate `slt`
_BELOW = 2
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


@dataclass(frozen=True)
class _Place:
    """What an element yields as its place.

    index:    the place
    mask:     the condition without which it is nowhere
    inverted: whether the place of a NaN is inverted, so that the last one of a window counts instead of the first
    """

    index: kernel.IndexOp
    mask: SSAValue | None
    inverted: bool


def _place_of(value: SSAValue, place: SSAValue) -> _Place | None:
    """The place of an element whose value is given; None for other places."""
    plain = _without_inversion(value, place)
    owner, mask = (plain or place).owner, None
    if isinstance(owner, arith.SelectOp):
        if not _is_number(owner.rhs, NOWHERE):
            return None
        mask, owner = owner.cond, owner.lhs.owner
    if not isinstance(owner, kernel.IndexOp) or owner.dynamic:
        return None
    return _Place(owner, mask, plain is not None)


def _without_inversion(value: SSAValue, place: SSAValue) -> SSAValue | None:
    """p of `isnan(value) ? ~p : p`."""
    choice = place.owner
    if not isinstance(choice, arith.SelectOp):
        return None
    asked, inverse = choice.cond.owner, choice.lhs.owner
    if not isinstance(asked, scalar.FunctionOp) or asked.name != "scalar.isnan" or asked.operands[0] is not value:
        return None
    if not isinstance(inverse, arith.XOrIOp) or inverse.lhs is not choice.rhs:
        return None
    return choice.rhs if _is_number(inverse.rhs, -1) else None


def restored_place(found: SSAValue) -> SSAValue | None:
    """p of `found < 0 ? ~found : found`, where nothing else uses what was found."""
    users = {use.operation for use in found.uses}
    choices = [op for op in users if isinstance(op, arith.SelectOp) and _without_sign(op) is found]
    if len(choices) != 1:
        return None
    choice = choices[0]
    return choice.result if users == {choice, choice.cond.owner, choice.lhs.owner} else None


def _without_sign(choice: arith.SelectOp) -> SSAValue | None:
    """v of `v < 0 ? ~v : v`."""
    sign, inverse, value = choice.cond.owner, choice.lhs.owner, choice.rhs
    if not isinstance(sign, arith.CmpiOp) or sign.predicate.value.data != _BELOW or sign.lhs is not value:
        return None
    if not isinstance(inverse, arith.XOrIOp) or inverse.lhs is not value:
        return None
    return value if _is_number(sign.rhs, 0) and _is_number(inverse.rhs, -1) else None


def _is_number(value: SSAValue, number: int) -> bool:
    return isinstance(value.owner, arith.ConstantOp) and value.owner.value == IntegerAttr(number, i64)


def has_rising_places(chain: Sequence[kernel.ReduceOp]) -> bool:
    """Whether the places that a chain of an `argmax` yields rise from point to point by constants."""
    place = _place_of(*yielded(chain[-1].body))
    if place is None or (place.inverted and restored_place(chain[0].results[1]) is None):
        return False
    exprs = [place.index.expr.data.subs(point) for point in window_points(chain)]
    steps = [(after - before).as_int() for before, after in pairwise(exprs)]
    known = [step for step in steps if step is not None]
    return len(known) == len(steps) and all(step > 0 for step in known) and sum(known) <= FARTHEST


def find_extreme(monoid: str, elements: Sequence[tuple[SSAValue, ...]], insert: Inserter) -> tuple[SSAValue, SSAValue]:
    """The largest or smallest of (value, place) pairs, whose places rise, and where it stands.

    A NaN is before all numbers, and the first of equal elements counts; where the places of NaNs are inverted, the last
    NaN does, and `restored_place` is what it is then. As places rise, an element that comes later never wins a tie; the
    first one whose mask holds is found before any is looked at, for it may be an infinity that is before nothing. What
    a lane carries of the place is its distance from the first one, a constant of 32 bits. NaNs are looked for apart:
    no comparison waits for them, and GCC 12 keeps to lanes.
    """
    known = [place for element in elements if (place := _place_of(*element)) is not None]
    base = known[0].index
    distances = [(each.index.expr.data - base.expr.data).as_int() or 0 for each in known]
    found = _first_place([each.mask for each in known], distances, insert)
    best = elements[0][0]
    for (value, _), distance in zip(elements[1:], distances[1:], strict=True):
        before = insert(arith.CmpfOp(value, best, EXTREMES[monoid]))
        best = insert(arith.SelectOp(before, value, best))
        found = insert(arith.SelectOp(before, insert.number(distance, i32), found))
    nan_at = insert.number(-1, i32)
    in_turn = zip(elements, distances, strict=True)
    for (value, _), distance in in_turn if known[0].inverted else reversed(list(in_turn)):
        own = insert(arith.CmpfOp(value, value, "uno"))
        nan_at = insert(arith.SelectOp(own, insert.number(distance, i32), nan_at))
    some_nan = insert(arith.CmpiOp(nan_at, insert.number(0, i32), "sge"))
    best = insert(arith.SelectOp(some_nan, insert.number(nan, best.type), best))
    found = insert(arith.SelectOp(some_nan, nan_at, found))
    total = insert(arith.AddiOp(base.results[0], insert(arith.ExtSIOp(found, i64))))
    if any(each.mask is None for each in known):
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
