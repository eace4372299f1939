"""What ops of a kernel read and write, and whether loops touch the same place only in the same iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, Ranges, bounds, prove_lt, symbol
from .loops import Bound, Loop, axes_between

#: what touches an element of a buffer
Access = kernel.LoadOp | kernel.StoreOp


@dataclass
class Effects:
    """Summary of an op with all that is nested in it."""

    uses: set[SSAValue] = field(default_factory=set)
    """Values used, own inner ones included."""
    reads: dict[SSAValue, list[kernel.LoadOp]] = field(default_factory=dict)
    writes: dict[SSAValue, list[kernel.StoreOp]] = field(default_factory=dict)

    @property
    def buffers(self) -> set[SSAValue]:
        """All buffers touched."""
        return self.reads.keys() | self.writes.keys()


def effects_of(op: Operation) -> Effects:
    """The effects of an op."""
    effects = Effects()
    _collect(op, effects)
    return effects


def _collect(op: Operation, effects: Effects) -> None:
    operands = op.operands
    effects.uses.update(operands)
    if type(op) is kernel.LoadOp:
        effects.reads.setdefault(operands[0], []).append(op)
    elif type(op) is kernel.StoreOp:
        effects.writes.setdefault(operands[1], []).append(op)
    for region in op.regions:
        for inner in region.block.ops:
            _collect(inner, effects)


def is_plain_store(op: kernel.StoreOp) -> bool:
    """Whether a store sets a place that no other iteration stores to, under no mask and at no dynamic index."""
    may_meet = op.atomic is not None or op.ordered is not None
    return op.mask is None and not op.dynamic and op.kind.data == "set" and not may_meet


def written_buffers(block: Block) -> set[SSAValue]:
    """Buffers that some store in a block, or nested in it, writes."""
    found: set[SSAValue] = set()
    for op in block.ops:
        if type(op) is kernel.StoreOp:
            found.add(op.operands[1])
        for region in op.regions:
            found |= written_buffers(region.block)
    return found


def conflicts(first: Effects, second: Effects) -> list[tuple[Access, Access]]:
    """Pairs of accesses to one buffer of which at least one writes."""
    pairs: list[tuple[Access, Access]] = []
    for buffer, stores in first.writes.items():
        others = [*second.reads.get(buffer, ()), *second.writes.get(buffer, ())]
        pairs.extend((store, other) for store in stores for other in others)
    for buffer, stores in second.writes.items():
        pairs.extend((load, store) for load in first.reads.get(buffer, ()) for store in stores)
    return pairs


def same_iterations(loops: Sequence[tuple[Loop, Loop]], pair: tuple[Access, ...]) -> bool:
    """Whether two accesses meet only at equal values of the axes of the loops around them, in any order of the axes.

    `loops` are pairs of loops over one range, outermost first, around the first access and around the second; each
    pair may be one loop that is around both. Axes are settled one by one: of the two indices `c*axis + rest`, the
    rests must differ by less than c, where axes that are settled already have one value in both. So the axis of the
    largest stride goes first, be its loop the outermost or not.
    """
    left, right = pair
    if left.dynamic or right.dynamic:
        return False
    if not loops:
        return True
    unsettled = {first.axis.data: (first.lo.data, first.hi.data) for first, _ in loops}
    inner, others = axes_between(left, loops[-1][0]), axes_between(right, loops[-1][1])
    names = {*unsettled, *inner, *others, *(second.axis.data for _, second in loops)}
    if any(not hi.free_symbols.isdisjoint(names) for axes in (unsettled, inner, others) for _, hi in axes.values()):
        return False
    apart = {name: symbol(f"{name}.inner") for name in others}
    joint = {second.axis.data: symbol(first.axis.data) for first, second in loops}
    indices = left.map.data[0], right.map.data[0].subs({**apart, **joint})
    around = {**inner, **{f"{name}.inner": bound for name, bound in others.items()}}
    while unsettled:
        settled = next((name for name in unsettled if _settles(name, unsettled, indices, around)), None)
        if settled is None:
            return False
        del unsettled[settled]
    return True


def _settles(
    axis: str, unsettled: Mapping[str, Bound], indices: tuple[Expr, Expr], around: Mapping[str, Bound]
) -> bool:
    """Whether two accesses that meet have one value of `axis`, whatever those of the other unsettled axes are.

    `around` are the axes inside of the loops in question, those of the two accesses under different names.
    """
    open_axes = {name: bound for name, bound in unsettled.items() if name != axis}
    own, other = indices[0], indices[1].subs({name: symbol(f"{name}.other") for name in open_axes})
    step = own.coefficient(axis)
    if step is None or step is ZERO or other.coefficient(axis) is not step:
        return False
    difference = own - other
    ranges = _ranges({**around, **open_axes, **{f"{name}.other": bound for name, bound in open_axes.items()}})
    return difference is ZERO or (ranges is not None and _within(difference, step, ranges))


def _ranges(axes: dict[str, Bound]) -> Ranges | None:
    if any(lo is not ZERO for lo, _ in axes.values()):
        return None
    return Ranges.of_axes((name, hi) for name, (_, hi) in axes.items())


def _within(difference: Expr, step: Expr, ranges: Ranges) -> bool:
    lo, hi = bounds(difference, ranges)
    size = step.as_int()
    if size is not None and lo is not None and hi is not None:
        return -abs(size) < lo and hi < abs(size)
    return prove_lt(difference, step, ranges) and prove_lt(-difference, step, ranges)
