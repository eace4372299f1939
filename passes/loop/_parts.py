"""What a kernel can sum over its rows, beside what it computes of them."""

from __future__ import annotations

from collections.abc import Iterable

from ...machines import GpuTarget, Target
from ..analysis.sizes import Sizes
from ._alignment import Alignment
from ._groups import Group, Groups


def objection_to_sums(
    groups: Groups, left: Group, right: Group, alignment: Alignment, estimates: Sizes, target: Target
) -> str | None:
    """Why the points of a part cannot be run one after the other, if scatters of two groups sum over axes; a reason.

    All must sum over the same parts. On a GPU there must be parts for every other processor at least, and what is
    inside of such a point, the row and its sums, must fit a program.
    """
    nodes = [*left.nodes, *right.nodes]
    found = [(node, parts) for node in nodes if (parts := groups.parts_of(node))]
    if not found:
        return None

    def common(axes: Iterable[int]) -> set[int]:
        return {alignment.pairs.get(axis, axis) for axis in axes}

    parts = {alignment.pairs.get(axis, axis): each for axis, each in found[0][1].items()}
    if any({alignment.pairs.get(axis, axis): each for axis, each in own.items()} != parts for _, own in found):
        return "they sum over different axes or parts of them"
    if not parts.keys() <= alignment.parallel:
        return "what one sums over is not parallel in the other"
    inner = common((*left.axes, *right.axes)) - alignment.parallel
    if not isinstance(target, GpuTarget) or not inner:
        return None
    counts = (parts[axis].count if axis in parts else groups.sizes[axis] for axis in alignment.parallel)
    if objection := objection_to_parts(estimates.product(counts), target):
        return objection
    if any(len(common(groups.axes_of(node)) & inner) > 1 for node in nodes):
        return "a row has more than one axis"
    lengths = [groups.sizes[axis].as_int() for axis in inner]
    if any(length is None or length > target.most_sums for length in lengths):
        return "a row does not fit a program"
    own = (common(groups.axes_of(node)) & inner for node, _ in found)
    elements = sum(estimates.product(groups.sizes[axis] for axis in each) for each in own)
    return objection_to_length(elements, target)


def objection_to_parts(programs: int, target: GpuTarget) -> str | None:
    """Why so many parts, each one of which a program runs, keep too little of a GPU busy; a reason."""
    return f"only {programs} parts would run in parallel" if programs * 2 < target.processors else None


def objection_to_length(elements: int, target: GpuTarget) -> str | None:
    """Why one program cannot keep so many sums; a reason."""
    return "the sums do not fit a program" if elements > target.most_sums else None
