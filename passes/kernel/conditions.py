"""Comparisons of indices: where along an axis they change, what they are in a stretch of it, and code without them.

What index-set splitting and thread coarsening share: a loop is cut where comparisons change, and each part is written
without those that have one value in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from xdsl.dialects.arith import AndIOp, CmpiOp, OrIOp, SelectOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, Ranges, as_expr, prove_le, prove_lt
from ..analysis.loops import Loop
from .simplify_block import remove_dead
from .transforms import set_range

#: `a < b`, `a <= b`, `a > b`, `a >= b` as `sign*(a - b) + offset < 0`: (sign, offset) by the number of the predicate
_SIGNED = {2: (1, 0), 3: (1, -1), 4: (-1, 0), 5: (-1, -1)}

Condition = tuple[int, bool]


def difference_of(op: Operation) -> Expr | None:
    """Left minus right of an ordered comparison of indices; None for other ops."""
    if not isinstance(op, CmpiOp) or op.predicate.value.data not in _SIGNED:
        return None
    left, right = kernel.index_of(op.lhs), kernel.index_of(op.rhs)
    return None if left is None or right is None else left - right


def below_zero(op: CmpiOp, difference: Expr) -> Expr:
    """What is below 0 where a comparison with this difference holds."""
    sign, offset = _SIGNED[op.predicate.value.data]
    return difference * sign + offset


def holds(op: CmpiOp, difference: Expr, facts: Ranges) -> bool | None:
    """Whether a comparison holds at all points, or at none; None if neither is known."""
    below = below_zero(op, difference)
    if prove_lt(below, ZERO, facts):
        return True
    return False if prove_le(ZERO, below, facts) else None


def condition_on(op: Operation, loop: Loop) -> Condition | None:
    """Where a comparison changes along an axis, and whether it is true below; None if something else decides too."""
    difference, axis = difference_of(op), loop.axis.data
    coefficient = None if difference is None else difference.coefficient(axis)
    if difference is None or coefficient is None or coefficient.as_int() not in (1, -1):
        return None
    assert isinstance(op, CmpiOp)
    below = below_zero(op, difference)
    rest = below.subs({axis: ZERO}).as_int()
    if rest is None:
        return None
    step = below.coefficient(axis)
    return (-rest, True) if step is not None and step.as_int() == 1 else (rest + 1, False)


def resolve_conditions(block: Block, loop: Loop, start: int, end: int | None = None) -> None:
    """Fold the conditions of a block on an axis that runs over [start, end), or from `start` to where the loop ends.

    A condition compares the axis with a bound. One that has a single value on the whole range takes it, and the masks,
    selections and logic that it decides go. Without `end` every condition takes its value at `start`.
    """
    for op in list(block.ops):
        condition = condition_on(op, loop)
        if condition is not None and (end is None or not start < condition[0] < end):
            take_condition(op.results[0], (start < condition[0]) == condition[1])
    remove_dead(block)


def resolve_numbers(block: Block) -> None:
    """Fold the comparisons of a block that compare numbers, as they do once an axis is written out."""
    for op in list(block.ops):
        difference = difference_of(op)
        if difference is not None and difference.is_constant:
            assert isinstance(op, CmpiOp)
            take_condition(op.result, holds(op, difference, Ranges()) is True)


def take_condition(condition: SSAValue, true: bool) -> None:
    """Resolve masks, selections and logic that a condition of known value decides."""
    for use in list(condition.uses):
        user = use.operation
        place = user.parent  # the block, or one in it
        if place is None:  # another use of the condition in it has decided it
            continue
        if isinstance(user, SelectOp) and use.index == 0:
            _replace(place, user, user.lhs if true else user.rhs)
        elif isinstance(user, kernel.LoadOp) and user.mask is condition and user.other is not None:
            if true:
                load = kernel.LoadOp.of(user.buffer, user.map, tuple(user.dynamic), location=user.location)
                place.insert_op_before(load, user)
                _replace(place, user, load.results[0])
            else:
                _replace(place, user, user.other)
        elif isinstance(user, AndIOp | OrIOp):
            other = user.rhs if user.lhs is condition else user.lhs
            if isinstance(user, AndIOp) == true and other is not condition:  # true and x, false or x
                _replace(place, user, other)
            else:
                take_condition(user.result, true)


def _replace(block: Block, op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    block.erase_op(op)


def split_at(loop: kernel.ForOp, ranges: Iterable[tuple[Expr, Expr]]) -> list[kernel.ForOp]:
    """Let loops over some ranges, one after the other, stand in place of one loop; its iterations are theirs."""
    block = loop.parent
    assert block is not None
    parts: list[kernel.ForOp] = []
    for lo, hi in ranges:
        parts.append(loop.clone())
        set_range(parts[-1], (loop.axis.data, lo, hi))
        block.insert_op_before(parts[-1], loop)
    block.erase_op(loop)
    return parts


def pieces(bounds: Iterable[int]) -> list[tuple[Expr, Expr]]:
    """The ranges between numbers in order."""
    return [(as_expr(start), as_expr(end)) for start, end in pairwise(bounds)]
