"""Schedules for CPUs: which axis runs in SIMD lanes, which loops in threads, what is blocked for the cache.

Every decision compares numbers of `cost.py` for the nest at hand; there is no list of known kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from ...dialects import kernel
from ...dialects.sym import ZERO
from ..counters import counter
from .axes import Loop, kernel_names, loops_in, named_in_bounds, substitute_axes
from .cost import Access, Nest, Sizes, is_unit, widest_scalar, work_of_block
from .lane_indices import divides_small
from .meeting import drop_atomic, keeps_apart, meeting_stores
from .stage_blocks import stage_blocks
from .targets import CpuTarget
from .transforms import (
    Range,
    block_range,
    linearise,
    perfect_chain,
    range_of,
    rebuild_chain,
    set_mapping,
    set_range,
)

# Costs of an access in a SIMD loop, relative to one whose neighbours lie side by side.
BROADCAST = 0.25
SCATTERED = 4.0
#: what the elements of a scan cost, which wait for each other
WAITING = 4.0
#: what it costs to combine the lanes of one accumulator, once for each run of a reduction
HORIZONTAL = 4.0
#: shortest axis of lanes, in elements, along which a transpose is worth blocks: fewer rows that are read beside each
#: other stay in the nearest cache. x + y.t() of 4 million elements on two cores, with blocks and without: 24 lanes 5.3
#: and 3.4 ms, 32 (a power of two apart) 2.3 and 3.9, 48 to 100 the same, 128 2.9 and 7.8
LONG = 32
#: shortest other axis of such a transpose: along the lanes each access would touch a line of its own. Three rows 3.8
#: ms without blocks and 2.5 with, copied only 2.2 and 1.1; six 10.0 and 3.3, ten 15.4 and 3.5
ACROSS = 2
#: smallest edge of a block, in elements: a line of the cache
EDGE = 16
#: elements of a row that one thread handles while it walks down rows that may meet: enough to stream
STREAM = 512
#: accumulators of a vector reduction that keep the adders busy
UNROLLED = 4


def schedule(function: kernel.FuncOp, target: CpuTarget, sizes: Sizes) -> None:
    """Choose mapping and tiles for all loops of a kernel, in place."""
    names = kernel_names(function)
    for op in list(function.body.block.ops):
        if isinstance(op, kernel.ForOp):
            _ForNest(op, target, sizes, names, function).run()
        elif isinstance(op, Loop):
            map_inner(op, target, sizes)


def map_inner(op: Loop, target: CpuTarget, sizes: Sizes) -> None:
    """Map a loop that no thread or lane outside of it takes part in: the innermost loops become SIMD loops."""
    below = [inner for region in op.regions for inner in region.block.ops if isinstance(inner, Loop)]
    for inner in below:
        map_inner(inner, target, sizes)
    if below or isinstance(op, kernel.ScanOp) or not _lanes_independent(op):
        return
    trips = op.hi.data - op.lo.data
    if trips.as_int() in (0, 1) or not counter("kernel-tile-lanes"):
        return
    lanes = target.vector_bytes // widest_scalar(op)
    if isinstance(op, kernel.ReduceOp):
        lanes *= max(UNROLLED // len(op.results), 1)
    set_mapping(op, "vector", _at_most(lanes, trips.as_int()))


def _at_most(lanes: int, trips: int | None) -> int:
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


def _is_local(access: Access) -> bool:
    type_ = access.op.buffer.type
    return isinstance(type_, kernel.BufferType) and type_.local


@dataclass
class _ForNest:
    """Schedules one outermost `for` nest."""

    op: kernel.ForOp
    target: CpuTarget
    sizes: Sizes
    names: set[str]
    function: kernel.FuncOp
    chain: list[kernel.ForOp] = field(init=False)
    ordered: list[kernel.ForOp] = field(default_factory=list)
    """Loops inside of the chain that have to stay serial, because their iterations may meet in one place."""

    def run(self) -> None:
        """Choose lanes, then blocks, then threads."""
        self.chain = perfect_chain(self.op)
        if not named_in_bounds(self.chain).isdisjoint(loop.axis.data for loop in self.chain):
            self.chain = [self.op]  # one says how far another runs: they cannot change places
        meeting = meeting_stores(self.op)
        if meeting and not self._split_meeting(meeting):
            map_inner(self.op, self.target, self.sizes)
            drop_atomic(self.op)
            return
        self.nest = Nest.of(self.op)
        self.body = [*self.chain, *self.ordered][-1].body.block
        self.flat = not any(True for _ in loops_in(self.body))
        self.body_work = max(work_of_block(self.body, self.sizes), 0.5)
        self.total_work = self.body_work * prod(self.sizes.trips(loop) for loop in (*self.chain, *self.ordered))
        lane = self._choose_lane()
        if lane is None:
            for op in list(self.body.ops):
                if isinstance(op, Loop):
                    map_inner(op, self.target, self.sizes)
            self._rebuild([range_of(loop) for loop in self.chain], None, 0)
        elif self.ordered:
            self._streamed(lane)
        else:
            self._with_lane(lane)

    def _split_meeting(self, stores: list[kernel.StoreOp]) -> bool:
        """Bring the loops that keep all stores apart outside; the others stay serial inside. False: there are none."""
        apart = [loop for loop in self.chain if all(keeps_apart(store, loop) for store in stores)]
        if not apart:
            return False
        order = [range_of(loop) for loop in (*apart, *(loop for loop in self.chain if loop not in apart))]
        for loop, axis in zip(self.chain, order, strict=True):
            set_range(loop, axis)
        self.chain, self.ordered = self.chain[: len(apart)], self.chain[len(apart) :]
        return True

    def _choose_lane(self) -> kernel.ForOp | None:
        """The loop of the chain whose axis runs in lanes; None: each innermost loop's own axis does."""
        costs: dict[kernel.ForOp | None, float] = {}
        inside = named_in_bounds(loops_in(self.body))  # lanes run one loop together, of one length
        free = [loop for loop in reversed(self.chain) if loop.axis.data not in inside]
        for loop in free:
            costs[loop] = self._cost_of_lane(loop)
        if not free or (not self.flat and not self.ordered):
            costs[None] = self._cost_of_inner()
        best = min(costs.values())
        # On a tie the innermost choice wins: it moves nothing.
        order = [*([None] if None in costs else []), *free]
        return next(loop for loop in order if costs[loop] <= best * 1.01)

    def _cost_of_lane(self, loop: kernel.ForOp) -> float:
        axis = loop.axis.data
        cost = 0.0
        for access in self.nest.accesses:
            # Each lane has a local buffer of its own, with the lanes side by side.
            cost += access.runs(self.sizes) * (1.0 if _is_local(access) else self._along(access, axis))
        row = self._row_bytes() * self._lanes()
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
        return SCATTERED if exact is None else min(abs(exact), SCATTERED)

    def _waste(self, loop: Loop) -> float:
        """How many lanes run for each one that is used."""
        lanes = self._lanes()
        return max(lanes / max(self.sizes.trips(loop), 1), 1.0)

    def _lanes(self) -> int:
        return self.target.vector_bytes // widest_scalar(self.op)

    def _row_bytes(self) -> int:
        locals_ = [op for op in self.op.walk() if isinstance(op, kernel.LocalOp)]
        return sum(self.sizes.of(op.buffer.type.extent) * 4 for op in locals_)  # pyright: ignore[reportAttributeAccessIssue]

    def _with_lane(self, lane: kernel.ForOp) -> None:
        others = [range_of(loop) for loop in self.chain if loop is not lane]
        across = self._transposed(lane)
        if across is not None and counter("kernel-tile-block"):
            self._blocked(lane, across)
            return
        trips = (lane.hi.data - lane.lo.data).as_int()
        self._rebuild([*others, range_of(lane)], range_of(lane), _at_most(self._tile(), trips))

    def _streamed(self, lane: kernel.ForOp) -> None:
        """Walk down the rows that may meet in order, each thread along its own stretch of every row."""
        outer = [range_of(loop) for loop in self.chain if loop is not lane]
        rows = [range_of(loop) for loop in self.ordered]
        within, trips = range_of(lane), (lane.hi.data - lane.lo.data).as_int()
        if (trips is None or trips > STREAM) and counter("kernel-tile-block"):
            blocks, within = block_range(within, STREAM, self.names)
            outer.append(blocks)
        self.chain += self.ordered
        tile = _at_most(self._tile(), trips)
        self._rebuild([*outer, *rows, within], within, tile, free=len(outer))

    def _tile(self) -> int:
        """Lanes of a tile: several registers where reductions run inside, as many as there is room for."""
        lanes = self._lanes()
        if self.flat:
            return lanes
        results = max((len(op.results) for op in loops_in(self.body)), default=1)
        tile = lanes * max(min(UNROLLED, self.target.registers // max(results, 1)), 1)
        while tile > lanes and self._row_bytes() * tile > self.target.l2_bytes // 2:
            tile //= 2
        return tile

    def _transposed(self, lane: kernel.ForOp) -> kernel.ForOp | None:
        """A loop along which accesses lie side by side that are far apart along the lanes; both long enough."""
        if not self.flat or self.sizes.trips(lane) < LONG:
            return None
        far = [a for a in self.nest.accesses if not is_unit(s := a.stride(lane.axis.data)) and s is not ZERO]
        for loop in self.chain:
            long = loop is not lane and self.sizes.trips(loop) >= ACROSS
            if long and any(is_unit(access.stride(loop.axis.data)) for access in far):
                return loop
        return None

    def _blocked(self, lane: kernel.ForOp, across: kernel.ForOp) -> None:
        """Square blocks of both axes, so that every cache line that is touched is used up; an axis that is no longer
        than a block stays whole, so that the lanes know how many they are."""
        others = [range_of(loop) for loop in self.chain if loop is not lane and loop is not across]
        edge = self._edge()
        across_blocks, across_within = self._within_block(across, edge)
        lane_blocks, lane_within = self._within_block(lane, edge)
        outside = [*others, *across_blocks, *lane_blocks]
        tile = _at_most(min(self._lanes(), edge), (lane_within[2] - lane_within[1]).as_int())
        loops = self._rebuild([*outside, across_within, lane_within], lane_within, tile, free=len(outside))
        stage_blocks(self.function, loops[-2], loops[-1], edge, tile, self.names)

    def _within_block(self, loop: kernel.ForOp, edge: int) -> tuple[list[Range], Range]:
        """The range over blocks of an axis, if it takes more than one, and that within a block."""
        whole = (loop.hi.data - loop.lo.data).as_int()
        if whole is not None and whole <= edge:
            return [], range_of(loop)
        blocks, within = block_range(range_of(loop), edge, self.names)
        return [blocks], within

    def _edge(self) -> int:
        """Edge of the blocks of a transpose: a block takes half of the nearest cache, so that a row of it is a few
        cache lines, which a prefetcher fetches together."""
        widest = max(access.bytes for access in self.nest.accesses)
        edge = EDGE
        while (2 * edge) ** 2 * widest <= self.target.l1_bytes // 2:
            edge *= 2
        return edge

    def _rebuild(
        self, ranges: list[Range], lane: Range | None, tile: int, free: int | None = None
    ) -> list[kernel.ForOp]:
        """Build the loops in the given order, outermost first; the first `free` of them may run in threads."""
        if free is None:
            free = len(ranges) - (lane is not None)
            if lane is not None and self._needs_blocks(ranges[:free], lane, tile) and counter("kernel-tile-block"):
                blocks, within = block_range(lane, self._block_size(tile), self.names)
                ranges = [*ranges[:free], blocks, within]
                free += 1
        count = self._parallel_loops(ranges[:free])
        values = {}
        if count > 1:
            joined, values = linearise(ranges[:count], self.names)
            ranges = [joined, *ranges[count:]]
        loops = rebuild_chain(self.chain, ranges)
        if values:
            substitute_axes(loops[0].body.block, values)
        if lane is not None and counter("kernel-tile-lanes"):
            set_mapping(loops[-1], "vector", tile)
        if count:
            self._thread(loops[0])
        drop_atomic(loops[0])
        return loops

    def _units(self) -> int:
        return 4 * self.target.cores

    def _needs_blocks(self, outer: list[Range], lane: Range, tile: int) -> bool:
        """Whether the loops outside of the lanes are too few for all cores while the axis of the lanes is long."""
        count = prod(self.sizes.of(hi - lo) for _, lo, hi in outer)
        length = lane[2] - lane[1]
        size = self._block_size(tile)
        exact = length.as_int()
        return count < self._units() and (exact is None or exact >= 2 * size)

    def _block_size(self, tile: int) -> int:
        """Elements of the lanes' axis in one block: a fraction of a thread's share, in whole tiles."""
        size = tile
        while size * self.body_work < self.target.grain / 4:
            size *= 2
        return size

    def _parallel_loops(self, ranges: list[Range]) -> int:
        """How many leading loops to run in threads: enough of them to feed every core."""
        count = 1
        for position, (_, lo, hi) in enumerate(ranges):
            if lo is not ZERO:
                return position
            count *= self.sizes.of(hi)
            if count >= self._units():
                return position + 1
        return len(ranges)

    def _thread(self, loop: kernel.ForOp) -> None:
        """Run a loop in threads unless it is known to be too little work for two of them."""
        grain = max(int(self.target.grain * self.sizes.trips(loop) / max(self.total_work, 1)), 1)
        trips = (loop.hi.data - loop.lo.data).as_int()
        if (trips is not None and trips < 2 * grain) or not counter("kernel-tile-threads"):
            return
        set_mapping(loop, "parallel", grain if grain > 1 else None)
