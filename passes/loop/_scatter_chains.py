"""Scatters that fill one tensor after another, as the pieces of a cat do."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ...dialects.loop import ScatterOp
from ...dialects.sym import Ranges, lower_expr, prove_lt, upper_expr


def chain_before(scatter: ScatterOp) -> Iterator[ScatterOp]:
    """The scatters whose results a scatter's destination is made of, last first."""
    owner = scatter.dest.owner
    while isinstance(owner, Operation) and type(owner) is ScatterOp:
        yield owner
        owner = owner.dest.owner


def are_disjoint(first: ScatterOp, second: ScatterOp, ranges: Ranges) -> bool:
    """Whether two scatters into one tensor write no common element, because some dimension keeps them apart."""
    inside_first = Ranges.of_axes(first.axes.data, ranges)
    inside_second = Ranges.of_axes(second.axes.data, ranges)
    for one, other in zip(first.map.data, second.map.data, strict=True):
        low, high = lower_expr(one, inside_first), upper_expr(one, inside_first)
        other_low, other_high = lower_expr(other, inside_second), upper_expr(other, inside_second)
        if low is None or high is None or other_low is None or other_high is None:
            continue
        if prove_lt(high, other_low, ranges) or prove_lt(other_high, low, ranges):
            return True
    return False
