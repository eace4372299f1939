"""What a kernel can sum over its rows, beside what it computes of them."""

from __future__ import annotations

from ...dialects.loop import Parts, ScatterOp
from ...machines import GpuTarget, Target
from ..analysis.sizes import Sizes
from ._alignment import Alignment
from ._dependences import NO_AXIS, Node
from ._groups import Group, Groups


def objection_to_sums(
    groups: Groups, left: Group, right: Group, alignment: Alignment, estimates: Sizes, target: Target
) -> str | None:
    """Why the points of a part cannot be run one after the other, if scatters of two groups sum over axes; a reason.

    All must sum over the same parts, and what is inside of such a point, the row and its sums, must fit a program.
    """
    sums = [node for node in (*left.nodes, *right.nodes) if _is_sum(node)]
    if not sums:
        return None
    found = [_parts_of(groups, node, alignment.pairs) for node in sums]
    if any(each != found[0] for each in found):
        return "they sum over different axes or parts of them"
    if not found[0].keys() <= alignment.parallel:
        return "what one sums over is not parallel in the other"
    if not isinstance(target, GpuTarget):
        return None
    inner = {axis for group in (left, right) for axis in group.axes} - alignment.pairs.keys() - alignment.parallel
    rows = [groups.sizes[axis].as_int() for axis in inner]
    if any(row is None or row > target.most_sums for row in rows):
        return "a row does not fit a program"
    places = ({groups.place(node, k) for k in range(node.rank)} for node in sums)
    own = ({alignment.pairs.get(axis, axis) for axis in each} & inner for each in places)
    elements = sum(estimates.product(groups.sizes[axis] for axis in each) for each in own)
    return "the sums do not fit a program" if inner and elements > target.most_sums else None


def _is_sum(node: Node) -> bool:
    return type(node.op) is ScatterOp and node.op.from_zero is not None


def _parts_of(groups: Groups, node: Node, pairs: dict[int, int]) -> dict[int, Parts]:
    """The fused axes that a scatter sums over, and in which parts; `pairs` gives axes of one group for the other's."""
    assert isinstance(node.op, ScatterOp)
    numbers = {name: groups.place(node, k) for k, name in enumerate(node.op.axes.names)}
    summed = {numbers[name]: parts for name, parts in node.op.summed.items()}
    return {pairs.get(axis, axis): parts for axis, parts in summed.items() if axis != NO_AXIS}
