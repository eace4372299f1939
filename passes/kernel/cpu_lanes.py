"""Which axis of a nest runs in SIMD lanes of a CPU.

Every decision compares numbers of `cost.py` for the nest at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TypeGuard

from ...dialects import kernel
from ...dialects.sym import ZERO
from ...machines import CpuTarget
from ..analysis.dependences import keeps_apart
from ..analysis.effects import is_local, meeting_stores
from ..analysis.loops import Loop, is_loop, loops_in, named_in_bounds, ops_in
from ..analysis.nests import Access, Nest, buffer_bytes, is_unit, widest_scalar
from ..analysis.sizes import Sizes
from ..counters import counter
from .lane_indices import divides_small
from .pinned import is_pinned
from .transforms import perfect_chain, permute_loops, reduction_chain, set_mapping

# Costs of an access in a SIMD loop, relative to one whose neighbours lie side by side.
BROADCAST = 0.25
SCATTERED = 4.0
#: one whose neighbours lie a whole number of pages apart: all are in one set of the nearest cache, which holds fewer of
#: them than there are lanes. Means over 4x4x4 of 2x16x32x32x32, lanes along the channels: 180 ms, else less than one
FAR, PAGE = 16.0, 4096
#: what the elements of a scan cost, which wait for each other
WAITING = 4.0
#: what it costs to combine the lanes of one accumulator, once for each run of a reduction
HORIZONTAL = 4.0
#: shortest rows of a reduction that run in lanes
SHORTEST = 4
#: accumulators of a vector reduction that keep the adders busy
UNROLLED = 4
#: longest run of neighbours that is copied as one. `x.flip` along the pixels of 1792x224xC, microseconds,
#: in lanes along the pixels and run by run: bytes, C = 2 438 and 18, 3 238 and 173, 4 111 and 38, 8 114 and
#: 74, 16 146 and 152; float32, C = 2 113 and 73, 3 232 and 205, 4 147 and 152, 8 326 and 348
LONGEST_RUN = 4
#: what loops that only copy are made of
_OF_COPIES = (kernel.LoadOp, kernel.StoreOp, kernel.YieldOp)


def vectorize_for_cpu(function: kernel.FuncOp, target: CpuTarget, sizes: Sizes, counted: str) -> None:
    """Choose lanes for all loops of a kernel that have none, in place; `counted` is the pass that asks."""
    for op in list(function.body.block.ops):
        if isinstance(op, Loop) and not (is_pinned(op) or _has_lanes(op)):
            chain = parallel_loops(op)
            if chain:
                _Lanes(chain, target, sizes, counted).run()
            else:
                map_inner(op, target, sizes, counted)


def _has_lanes(op: Loop) -> bool:
    return op.mapping.data == "vector" or any(
        each.mapping.data == "vector" for region in op.regions for each in loops_in(region.block)
    )


def parallel_loops(op: Loop) -> list[kernel.ForOp]:
    """The loops of a perfect nest that may run in threads, outermost first."""
    chain = perfect_chain(op) if isinstance(op, kernel.ForOp) else []
    count = next((n for n, loop in enumerate(chain) if loop.mapping.data != "parallel"), len(chain))
    return chain[:count]


def map_inner(op: Loop, target: CpuTarget, sizes: Sizes, counted: str) -> None:
    """Map a loop that no thread or lane outside of it takes part in: the innermost loops become SIMD loops.

    So does the one around others of a reduction whose rows are short: its accumulators are combined once, not for each
    row. Of a loop around reductions and theirs, the one is chosen along which accesses lie side by side.
    """
    if _is_around_sums(op):
        _Lanes([op], target, sizes, counted).run()
        return
    if isinstance(op, kernel.ReduceOp) and _combine_rows_at_last(op, target, sizes) and counter(counted):
        _set_lanes(op, target, sizes.trips(op))
        return
    below = [inner for region in op.regions for inner in region.block.ops if isinstance(inner, Loop)]
    for inner in below:
        map_inner(inner, target, sizes, counted)
    if below or isinstance(op, kernel.ScanOp) or not _lanes_independent(op):
        return
    trips = op.hi.data - op.lo.data
    if trips.as_int() in (0, 1) or not counter(counted):
        return
    _set_lanes(op, target, trips.as_int())


def _is_around_sums(op: Loop) -> TypeGuard[kernel.ForOp]:
    """Whether iterations of a loop reduce, and each stores what no other iteration does."""
    if not isinstance(op, kernel.ForOp) or not any(isinstance(each, kernel.ReduceOp) for each in op.body.block.ops):
        return False
    stores = [each for each in ops_in(op) if isinstance(each, kernel.StoreOp)]
    return all(is_unit(store.map.data[0].coefficient(op.axis.data)) for store in stores) and not meeting_stores(op)


def _set_lanes(op: Loop, target: CpuTarget, trips: int | None) -> None:
    set_mapping(op, "vector", at_most(_lanes_that_fit(op, target), trips))


def _lanes_that_fit(op: Loop, target: CpuTarget) -> int:
    lanes = target.vector_bytes // widest_scalar(op)
    return lanes * max(UNROLLED // len(op.results), 1) if isinstance(op, kernel.ReduceOp) else lanes


def _combine_rows_at_last(op: kernel.ReduceOp, target: CpuTarget, sizes: Sizes) -> bool:
    """Bring the innermost loop of a reduction over short rows outside, if it may run in lanes; whether it was.

    Combining the accumulators of a row would cost as much as the row, of a length of no more than they are.
    """
    chain = reduction_chain(op)
    row = chain[-1]
    if len(chain) == 1 or not SHORTEST <= sizes.trips(row) <= _lanes_that_fit(row, target):
        return False
    if any(map(is_loop, row.body.block.ops)) or any(map(is_pinned, chain)) or not _lanes_independent(row):
        return False
    if not named_in_bounds(chain).isdisjoint(loop.axis.data for loop in chain):
        return False
    permute_loops(chain, [row, *chain[:-1]])
    return True


def at_most(lanes: int, trips: int | None) -> int:
    """`lanes`, or the smallest power of two that covers a shorter axis."""
    while trips is not None and lanes > 1 and lanes // 2 >= trips:
        lanes //= 2
    return lanes


def _lanes_independent(op: Loop) -> bool:
    """Whether the iterations of an innermost loop may run at once in lanes."""
    if isinstance(op, kernel.ReduceOp) and op.combine is not None:
        return False  # nothing says that a combination of the program's own commutes
    stores = [inner for inner in op.body.block.ops if isinstance(inner, kernel.StoreOp)]
    return all(keeps_apart(store, op) for store in stores if store.atomic is not None or store.ordered is not None)


class _Lanes:
    """Chooses the lanes of one nest.

    chain:   its loops that may run in threads, outermost first
    ordered: the loops inside of them that have to stay serial, because their iterations may meet in one place
    """

    def __init__(self, chain: Sequence[kernel.ForOp], target: CpuTarget, sizes: Sizes, counted: str) -> None:
        self.chain, self.target, self.sizes, self.counted = list(chain), target, sizes, counted
        whole = perfect_chain(self.chain[0])
        axes = {loop.axis.data for loop in whole}
        self.ordered = whole[len(chain) :] if named_in_bounds(whole).isdisjoint(axes) else []
        self.body = [*self.chain, *self.ordered][-1].body.block
        self.flat = not any(map(is_loop, self.body.ops))
        self.lanes = target.vector_bytes // widest_scalar(self.chain[0])

    @cached_property
    def nest(self) -> Nest:
        """The accesses, before anything moves."""
        return Nest.of(self.chain[0])

    def run(self) -> None:
        """Choose, and bring the axis inside."""
        lane = self._choose_lane()
        if lane is None:
            for op in list(self.body.ops):
                if isinstance(op, Loop):
                    map_inner(op, self.target, self.sizes, self.counted)
        elif counter(self.counted):
            trips = (lane.hi.data - lane.lo.data).as_int()
            loops = [*self.chain, *self.ordered]
            others = [loop for loop in loops if loop is not lane]
            run = self._run_beside(lane)
            if run is not None:
                permute_loops(loops, [*(loop for loop in others if loop is not run), lane, run])
                set_mapping(loops[-1], "serial")
                return
            tile = at_most(self._tile(), trips)
            permute_loops(loops, [*others, lane])
            set_mapping(loops[-1], "vector", tile)

    def _run_beside(self, lane: kernel.ForOp) -> kernel.ForOp | None:
        """The loop over short runs of neighbours that is copied run by run instead of in lanes, if there is one.

        Where accesses are scattered along the lanes and side by side along a short axis, one element of each run in
        all lanes would touch each line of memory once for every element of a run. Compilers move a run as a word.
        Only copies: they would compute it element by element.
        """
        if self.ordered or not all(isinstance(op, _OF_COPIES) for op in self.body.ops):
            return None
        strides = [access.stride(lane.axis.data) for access in self.nest.accesses]
        if any(stride is None or (stride.as_int() or 1) == 1 for stride in strides):
            return None
        for loop in (each for each in reversed(self.chain) if each is not lane):
            trips = (loop.hi.data - loop.lo.data).as_int()
            is_short = trips is not None and 1 < trips <= LONGEST_RUN
            if is_short and all(is_unit(access.stride(loop.axis.data)) for access in self.nest.accesses):
                return loop
        return None

    def _choose_lane(self) -> kernel.ForOp | None:
        """The loop of the chain whose axis runs in lanes; None: each innermost loop's own axis does."""
        inside = named_in_bounds(loops_in(self.body))  # lanes run one loop together, of one length
        free = [loop for loop in reversed(self.chain) if loop.axis.data not in inside]
        inner = not free or not self.flat
        # On a tie the innermost choice wins: it moves nothing.
        choices = [*([None] if inner else []), *free]
        if len(choices) == 1 and not (self.ordered and self.flat):
            return choices[0]
        costs = [self._cost_of_inner() if loop is None else self._cost_of_lane(loop) for loop in choices]
        best = min(costs)
        if self.ordered and self.flat and best >= self._cost_without_lanes():
            return None
        return next(loop for loop, cost in zip(choices, costs, strict=True) if cost <= best * 1.01)

    def _cost_without_lanes(self) -> float:
        """The cost of running the iterations one by one. An access then costs as much as one by lanes that lie in
        different rows.
        """
        return sum(access.runs(self.sizes) * SCATTERED for access in self.nest.accesses)

    def _cost_of_lane(self, loop: kernel.ForOp) -> float:
        axis = loop.axis.data
        cost = 0.0
        for access in self.nest.accesses:
            # Each lane has a local buffer of its own, with the lanes side by side.
            cost += access.runs(self.sizes) * (1.0 if is_local(access.op.buffer) else self._along(access, axis))
        row = self._row_bytes * self.lanes
        if row > self.target.l2_bytes:
            cost *= 2
        return cost * self._waste(loop)

    def _cost_of_inner(self) -> float:
        cost = 0.0
        for access in self.nest.accesses:
            loop = access.loops[-1]
            runs = access.runs(self.sizes)
            if loop in self.chain:
                cost += runs
                continue
            waiting = WAITING if isinstance(loop, kernel.ScanOp) else 1.0
            cost += runs * self._along(access, loop.axis.data) * waiting * self._waste(loop)
        reductions = {a.loops for a in self.nest.accesses if isinstance(a.loops[-1], kernel.ReduceOp)}
        for loops in reductions:
            cost += prod(self.sizes.trips(loop) for loop in loops[:-1]) * HORIZONTAL * len(loops[-1].results)
        return cost

    def _along(self, access: Access, axis: str) -> float:
        stride = access.stride(axis)
        if stride is ZERO:
            return BROADCAST
        if stride is None and axis not in access.varying and divides_small(access.index, axis):
            return 1.0  # `kernel-unroll-quotients` makes it linear
        exact = stride.as_int() if stride is not None else None
        if exact is None:
            return SCATTERED
        return FAR if exact and exact * access.bytes % PAGE == 0 else min(abs(exact), SCATTERED)

    def _waste(self, loop: Loop) -> float:
        """How many lanes run for each one that is used."""
        return max(self.lanes / max(self.sizes.trips(loop), 1), 1.0)

    @cached_property
    def _row_bytes(self) -> int:
        locals_ = [op for op in ops_in(self.chain[0]) if isinstance(op, kernel.LocalOp)]
        return sum(buffer_bytes(op.buffer, self.sizes) for op in locals_)

    def _tile(self) -> int:
        """Lanes of a tile: several registers where reductions run inside, as many as there is room for."""
        lanes = self.lanes
        if self.flat:
            return lanes
        results = max((len(op.results) for op in loops_in(self.body)), default=1)
        tile = lanes * max(min(UNROLLED, self.target.registers // max(results, 1)), 1)
        while tile > lanes and self._row_bytes * tile > self.target.l2_bytes // 2:
            tile //= 2
        return tile
