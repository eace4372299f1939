"""Scatters that fill one tensor after another, as the pieces of a cat do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from ...dialects.access import is_dynamic_name
from ...dialects.loop import FusionOp, ScatterOp
from ...dialects.sym import Expr, Ranges, lower_expr, prove_lt, upper_expr


def chain_before(scatter: ScatterOp) -> Iterator[ScatterOp]:
    """The scatters whose results a scatter's destination is made of, last first."""
    owner = scatter.dest.owner
    while isinstance(owner, Operation) and type(owner) is ScatterOp:
        yield owner
        owner = owner.dest.owner


def are_disjoint(first: ScatterOp, second: ScatterOp, ranges: Ranges) -> bool:
    """Whether two scatters into one tensor write no common element, because some dimension keeps them apart."""
    return boxes_apart(first.map.data, first.axes.data, second.map.data, second.axes.data, ranges)


def continues(scatter: ScatterOp, fusion: FusionOp) -> list[ScatterOp]:
    """A scatter of a fusion and those behind it that go on in its result, which lie in the same memory."""
    later = [op for op in fusion.members if type(op) is ScatterOp]
    return [op for op in later if op is scatter or any(before is scatter for before in chain_before(op))]


def boxes_apart(
    first: Sequence[Expr],
    first_axes: Sequence[tuple[str, Expr]],
    second: Sequence[Expr],
    second_axes: Sequence[tuple[str, Expr]],
    ranges: Ranges,
) -> bool:
    """Whether two index maps reach no common element for all values of their axes, because their bounds along some
    dimension lie apart. A dimension whose index is loaded says nothing: `d0` is another number in each map."""
    inside_first = Ranges.of_axes(first_axes, ranges)
    inside_second = Ranges.of_axes(second_axes, ranges)
    for one, other in zip(first, second, strict=True):
        if any(map(is_dynamic_name, one.free_symbols | other.free_symbols)):
            continue
        low, high = lower_expr(one, inside_first), upper_expr(one, inside_first)
        other_low, other_high = lower_expr(other, inside_second), upper_expr(other, inside_second)
        if low is None or high is None or other_low is None or other_high is None:
            continue
        if prove_lt(high, other_low, ranges) or prove_lt(other_high, low, ranges):
            return True
    return False
