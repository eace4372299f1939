"""How the loops of a nest are blocked for a CPU's caches and cores. Every decision compares numbers of `cost.py`."""

from __future__ import annotations

from functools import cached_property
from math import prod

from ...dialects import kernel
from ...dialects.sym import ZERO
from ...machines import CpuTarget
from ..analysis.loops import is_loop, kernel_names, named_in_bounds
from ..analysis.nests import Nest, is_unit, work_of_block
from ..analysis.sizes import Sizes
from ..counters import counter
from .cpu_lanes import at_most
from .pinned import is_pinned
from .transforms import Range, block_range, perfect_chain, range_of, rebuild_chain, set_mapping

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

Mapped = tuple[Range, str]
"""A loop that is to be: its range and its mapping."""


def tile_for_cpu(function: kernel.FuncOp, target: CpuTarget, sizes: Sizes, counted: str) -> None:
    """Block the nests of a kernel, in place; `counted` is the pass that asks."""
    for op in list(function.body.block.ops):
        if isinstance(op, kernel.ForOp) and not is_pinned(op) and (chain := loops_to_lanes(op)):
            _Blocks(function, chain, target, sizes, counted).run()


def loops_to_lanes(op: kernel.ForOp) -> list[kernel.ForOp]:
    """The loops of a perfect nest down to the one in lanes; [] if there is none, or one says how far another runs."""
    chain = perfect_chain(op)
    last = next((n for n, loop in enumerate(chain) if loop.mapping.data == "vector"), None)
    if last is None:
        return []
    chain = chain[: last + 1]
    return chain if named_in_bounds(chain).isdisjoint(loop.axis.data for loop in chain) else []


def edge_of_blocks(nest: Nest, target: CpuTarget) -> int:
    """Edge of the blocks of a transpose: a block takes half of the nearest cache, so that a row of it is a few
    cache lines, which a prefetcher fetches together."""
    widest = max(access.bytes for access in nest.accesses)
    edge = EDGE
    while (2 * edge) ** 2 * widest <= target.l1_bytes // 2:
        edge *= 2
    return edge


def units(target: CpuTarget) -> int:
    """Iterations of parallel loops that feed every core."""
    return 4 * target.cores


class _Blocks:
    """Blocks one nest: `chain` are its loops, outermost first, `lane` the last of them."""

    def __init__(
        self, function: kernel.FuncOp, chain: list[kernel.ForOp], target: CpuTarget, sizes: Sizes, counted: str
    ) -> None:
        self.function, self.chain, self.target, self.sizes, self.counted = function, chain, target, sizes, counted
        self.lane = chain[-1]
        self.lanes = 1 if self.lane.tile is None else self.lane.tile.value.data

    @cached_property
    def names(self) -> set[str]:
        return kernel_names(self.function)

    @cached_property
    def nest(self) -> Nest:
        return Nest.of(self.chain[0])

    def run(self) -> None:
        """Decide, and rebuild the loops if there are blocks."""
        outer = [(range_of(loop), loop.mapping.data) for loop in self.chain[:-1]]
        threads = [each for each in outer if each[1] == "parallel"]
        rows = [each for each in outer if each[1] != "parallel"]
        if rows:
            self._stream(threads, rows)
        elif (across := self._transposed()) is not None and counter(self.counted):
            self._square(across)
        elif self._needs_blocks() and counter(self.counted):
            blocks, within = block_range(range_of(self.lane), self._block_size(), self.names)
            self._rebuild([*threads, (blocks, "parallel"), (within, "vector")], self.lanes)

    def _stream(self, threads: list[Mapped], rows: list[Mapped]) -> None:
        """Walk down the rows that may meet in order, each thread along its own stretch of every row."""
        trips = self._length()
        if (trips is None or trips > STREAM) and counter(self.counted):
            blocks, within = block_range(range_of(self.lane), STREAM, self.names)
            self._rebuild([*threads, (blocks, "parallel"), *rows, (within, "vector")], self.lanes)

    def _transposed(self) -> kernel.ForOp | None:
        """A loop along which accesses lie side by side that are far apart along the lanes; both long enough."""
        lane, others = self.lane, self.chain[:-1]
        if not others or self.sizes.trips(lane) < LONG or any(map(is_loop, lane.body.block.ops)):
            return None
        far = [a for a in self.nest.accesses if not is_unit(s := a.stride(lane.axis.data)) and s is not ZERO]
        for loop in others:
            if self.sizes.trips(loop) >= ACROSS and any(is_unit(a.stride(loop.axis.data)) for a in far):
                return loop
        return None

    def _square(self, across: kernel.ForOp) -> None:
        """Square blocks of both axes, so that every cache line that is touched is used up; an axis that is no longer
        than a block stays whole, so that the lanes know how many they are."""
        others = [range_of(loop) for loop in self.chain[:-1] if loop is not across]
        edge = edge_of_blocks(self.nest, self.target)
        across_blocks, across_within = self._within_block(across, edge)
        lane_blocks, lane_within = self._within_block(self.lane, edge)
        outside: list[Mapped] = [(each, "parallel") for each in (*others, *across_blocks, *lane_blocks)]
        lanes = at_most(min(self.lanes, edge), (lane_within[2] - lane_within[1]).as_int())
        self._rebuild([*outside, (across_within, "serial"), (lane_within, "vector")], lanes)

    def _within_block(self, loop: kernel.ForOp, edge: int) -> tuple[list[Range], Range]:
        """The range over blocks of an axis, if it takes more than one, and that within a block."""
        whole = (loop.hi.data - loop.lo.data).as_int()
        if whole is not None and whole <= edge:
            return [], range_of(loop)
        blocks, within = block_range(range_of(loop), edge, self.names)
        return [blocks], within

    def _needs_blocks(self) -> bool:
        """Whether the loops outside of the lanes are too few for all cores while the axis of the lanes is long."""
        count = prod(map(self.sizes.trips, self.chain[:-1]))
        if count >= units(self.target):
            return False
        exact = self._length()
        return exact is None or exact >= 2 * self._block_size()

    def _block_size(self) -> int:
        """Elements of the lanes' axis in one block: a fraction of a thread's share, in whole tiles."""
        work = max(work_of_block(self.lane.body.block, self.sizes), 0.5)
        size = self.lanes
        while size * work < self.target.grain / 4:
            size *= 2
        return size

    def _length(self) -> int | None:
        return (self.lane.hi.data - self.lane.lo.data).as_int()

    def _rebuild(self, wanted: list[Mapped], lanes: int) -> None:
        """Build the loops in the given order, outermost first, the last one in lanes."""
        loops = rebuild_chain(self.chain, [axis for axis, _ in wanted])
        for loop, (_, mapping) in zip(loops, wanted, strict=True):
            set_mapping(loop, mapping, lanes if mapping == "vector" else None)
