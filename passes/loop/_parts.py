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
    inner = {axis for group in (left, right) for axis in group.axes} - alignment.pairs.keys() - alignment.parallel
    if not isinstance(target, GpuTarget) or not inner:
        return None
    counts = (found[0][axis].count if axis in found[0] else groups.sizes[axis] for axis in alignment.parallel)
    if (programs := estimates.product(counts)) * 2 < target.processors:
        return f"only {programs} parts would run in parallel"
    rows = [_axes_of(groups, node, alignment.pairs) & inner for node in (*left.nodes, *right.nodes)]
    if any(len(row) > 1 for row in rows):
        return "a row has more than one axis"
    lengths = [groups.sizes[axis].as_int() for axis in inner]
    if any(length is None or length > target.most_sums for length in lengths):
        return "a row does not fit a program"
    own = (_axes_of(groups, node, alignment.pairs) & inner for node in sums)
    elements = sum(estimates.product(groups.sizes[axis] for axis in each) for each in own)
    return "the sums do not fit a program" if elements > target.most_sums else None


def _axes_of(groups: Groups, node: Node, pairs: dict[int, int]) -> set[int]:
    """The fused axes that a node and its reductions run along."""
    places = (groups.place(node, axis) for axis in range(len(node.sizes)))
    return {pairs.get(axis, axis) for axis in places}


def _is_sum(node: Node) -> bool:
    return type(node.op) is ScatterOp and node.op.from_zero is not None


def _parts_of(groups: Groups, node: Node, pairs: dict[int, int]) -> dict[int, Parts]:
    """The fused axes that a scatter sums over, and in which parts; `pairs` gives axes of one group for the other's."""
    assert isinstance(node.op, ScatterOp)
    numbers = {name: groups.place(node, k) for k, name in enumerate(node.op.axes.names)}
    summed = {numbers[name]: parts for name, parts in node.op.summed.items()}
    return {pairs.get(axis, axis): parts for axis, parts in summed.items() if axis != NO_AXIS}
