"""What ops of a kernel read and write, and whether two loops touch the same place only in the same iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, Ranges, bounds, prove_lt, symbol
from .axes import Bound, Loop, axes_between


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
    effects.uses.update(op.operands)
    if isinstance(op, kernel.LoadOp):
        effects.reads.setdefault(op.buffer, []).append(op)
    elif isinstance(op, kernel.StoreOp):
        effects.writes.setdefault(op.buffer, []).append(op)
    for region in op.regions:
        for inner in region.block.ops:
            _collect(inner, effects)


def written_buffers(block: Block) -> set[SSAValue]:
    """Buffers that some store in a block, or nested in it, writes."""
    found: set[SSAValue] = set()
    for op in block.ops:
        if isinstance(op, kernel.StoreOp):
            found.add(op.buffer)
        for region in op.regions:
            found |= written_buffers(region.block)
    return found


def conflicts(first: Effects, second: Effects) -> list[tuple[kernel.LoadOp | kernel.StoreOp, ...]]:
    """Pairs of accesses to one buffer of which at least one writes."""
    pairs: list[tuple[kernel.LoadOp | kernel.StoreOp, ...]] = []
    for buffer, stores in first.writes.items():
        others = [*second.reads.get(buffer, ()), *second.writes.get(buffer, ())]
        pairs.extend((store, other) for store in stores for other in others)
    for buffer, stores in second.writes.items():
        pairs.extend((load, store) for load in first.reads.get(buffer, ()) for store in stores)
    return pairs


def same_iteration(first: Loop, second: Loop, pair: tuple[kernel.LoadOp | kernel.StoreOp, ...]) -> bool:
    """Whether two accesses, one in each of two loops over one range, meet only at equal values of the loops' axes.

    An index is `c*axis + rest` with the same c on both sides; iterations stay apart when the rests are equal and
    constant in the loops, or provably differ by less than c.
    """
    left, right = pair
    if left.dynamic or right.dynamic:
        return False
    axis = first.axis.data
    axes, others = axes_between(left, first), axes_between(right, second)
    apart = {name: symbol(_other_name(name)) for name in others}
    own = left.map.data[0]
    other = right.map.data[0].subs({**apart, second.axis.data: symbol(axis)})
    step = own.coefficient(axis)
    if step is None or step is ZERO or other.coefficient(axis) is not step:
        return False
    own, other = own - step * symbol(axis), other - step * symbol(axis)
    if own is other and own.free_symbols.isdisjoint(axes):
        return True
    ranges = _ranges(axes | {_other_name(name): bound for name, bound in others.items()})
    return ranges is not None and _within(own - other, step, ranges)


def same_iterations(loops: Sequence[Loop], pair: tuple[kernel.LoadOp | kernel.StoreOp, ...]) -> bool:
    """Whether two accesses inside of the same loops meet only at equal values of all their axes, in any order of them.

    Axes are settled one by one: of the two indices `c*axis + rest`, the rests must differ by less than c, where axes
    that are settled already have one value in both. So the axis of the largest stride goes first, be its loop the
    outermost or not.
    """
    left, right = pair
    if left.dynamic or right.dynamic:
        return False
    if not loops:
        return True
    unsettled = {loop.axis.data: (loop.lo.data, loop.hi.data) for loop in loops}
    inner, others = axes_between(left, loops[-1]), axes_between(right, loops[-1])
    names = {*unsettled, *inner, *others}
    if any(not hi.free_symbols.isdisjoint(names) for axes in (unsettled, inner, others) for _, hi in axes.values()):
        return False
    while unsettled:
        settled = next((name for name in unsettled if _settles(name, unsettled, pair, inner, others)), None)
        if settled is None:
            return False
        del unsettled[settled]
    return True


def _settles(
    axis: str,
    unsettled: Mapping[str, Bound],
    pair: tuple[kernel.LoadOp | kernel.StoreOp, ...],
    inner: Mapping[str, Bound],
    others: Mapping[str, Bound],
) -> bool:
    """Whether two accesses that meet have one value of `axis`, whatever those of the other unsettled axes are."""
    open_axes = {name: bound for name, bound in unsettled.items() if name != axis}
    renamed = {_other_name(name): bound for name, bound in {**others, **open_axes}.items()}
    own = pair[0].map.data[0]
    other = pair[1].map.data[0].subs({name: symbol(_other_name(name)) for name in {**others, **open_axes}})
    step = own.coefficient(axis)
    if step is None or step is ZERO or other.coefficient(axis) is not step:
        return False
    difference = own - other
    ranges = _ranges({**inner, **open_axes, **renamed})
    return difference is ZERO or (ranges is not None and _within(difference, step, ranges))


def _other_name(name: str) -> str:
    return f"{name}.other"


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
