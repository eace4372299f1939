"""What schedules for GPUs ask of a nest: along which axis its accesses lie side by side, and what they move.

Every decision compares numbers of `cost.py` for the nest at hand. A program works on a tile of up to three dimensions;
neighbours in memory are neighbours in the tile. All of this is read from the IR, by each pass for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod

from xdsl.ir import Block

from ...dialects import kernel
from ...dialects.sym import ZERO
from ...machines import GpuTarget
from ..analysis.loops import Loop, is_loop, loops_in
from ..analysis.nests import Access, Nest, is_unit
from ..analysis.sizes import Sizes
from .gpu_blocks import GpuBlocks, power_above, power_below, tile_along, waste
from .gpu_legality import box_of, is_innermost
from .lane_order import hides_order
from .tiles import extent_of

#: cost of an access that all lanes share
SHARED = 0.05
#: most elements of a loop that each lane runs for itself, element by element
SHORT = 16
#: lanes that run for each one that is needed, at most, before axes are divided anew in each lane
WASTEFUL = 1.25
#: shortest side of the tile of a transpose: a weight's 3x3 points; of float32, elements so far apart share no sector
SHORTEST_SIDE = 8
#: most iterations of a loop that is written out
UNROLLED = 8


class GpuNest:
    """One nest of a kernel whose iterations programs share out.

    chain: its loops that are spread over programs, outermost first
    """

    def __init__(
        self, function: kernel.FuncOp, op: kernel.ForOp, target: GpuTarget, sizes: Sizes, blocks: GpuBlocks
    ) -> None:
        self.function = function
        self.chain = box_of(op)
        self.target = target
        self.sizes = sizes
        self.blocks = blocks

    @property
    def body(self) -> Block:
        """What each iteration does."""
        return self.chain[-1].body.block

    @property
    def is_flat(self) -> bool:
        """Whether there are no loops inside: an elementwise nest."""
        return not any(map(is_loop, self.body.ops))

    @cached_property
    def nest(self) -> Nest:
        """Its accesses; they are of the loops as they were when this was asked first."""
        return Nest.of(self.chain[0])

    @property
    def accesses(self) -> Sequence[Access]:
        """All loads and stores."""
        return self.nest.accesses

    @property
    def column_axis(self) -> kernel.ForOp | None:
        """The axis of the grid that has a tile: columns, where there are loops inside (`kernel-map`); else joined."""
        return next((loop for loop in self.chain if loop.tile is not None), None)

    def trips(self, loops: Iterable[Loop]) -> int:
        """An estimate of the iterations of loops that are nested in each other."""
        return prod(map(self.sizes.trips, loops))

    def innermost(self) -> list[Loop]:
        """The innermost loops inside of an iteration."""
        return [op for op in loops_in(self.body) if is_innermost(op)]

    # which axis

    def column(self) -> kernel.ForOp | None:
        """The parallel axis along which the lanes of a program lie; None: along the inner loops' own axes."""
        costs: dict[kernel.ForOp | None, float] = {None: self._cost_of_rows()}
        for loop in (each for each in reversed(self.chain) if not self.decides_bounds(each)):
            costs[loop] = sum(cost_along(a, loop, self.sizes, self.target) for a in self.accesses)
        best = min(costs.values())
        return next(loop for loop, cost in costs.items() if cost <= best * 1.05)

    def _cost_of_rows(self) -> float:
        return sum(cost_along(a, a.loops[-1], self.sizes, self.target) for a in self.accesses)

    def decides_bounds(self, loop: kernel.ForOp) -> bool:
        """Whether the bounds of inner loops depend on an axis. Then its iterations take different numbers of turns."""
        inner = loops_in(self.body)
        return any(loop.axis.data in op.lo.data.free_symbols | op.hi.data.free_symbols for op in inner)

    def walks_columns(self, column: kernel.ForOp) -> bool:
        """Whether each lane runs all inner loops for itself. It does where these are short, or wait for no memory."""
        inner = self.innermost()
        return all(self.sizes.trips(op) <= SHORT or self._reads_nothing_of_its_own(op, column) for op in inner)

    def _reads_nothing_of_its_own(self, op: Loop, column: kernel.ForOp) -> bool:
        """Whether lanes along a column fill the GPU, and all lanes read the same places in an inner loop, as in a
        search in a table.

        Such a loop does not wait for memory, and needs no threads whose partial results would have to be combined.
        """
        if self.trips(self.chain) < self.target.room:
            return False
        loads = (a for a in self.accesses if isinstance(a.op, kernel.LoadOp) and op in a.loops)
        return all(ZERO in (a.stride(column.axis.data), a.stride(op.axis.data)) for a in loads)

    # elementwise

    def elementwise_tiles(self) -> tuple[dict[kernel.ForOp, int], bool]:
        """The tiles of a flat nest, innermost first, and whether they suit it: no lanes idle, memory in order."""
        inner = max(self.chain, key=lambda loop: (self._unit_bytes(loop), self.chain.index(loop)))
        across = self.across(inner)
        budget = self.budget()
        if across is not None:
            lengths = self.sizes.trips(inner), self.sizes.trips(across)
            tiles = dict(zip((inner, across), self.blocks.transposed(*lengths, self.widest(), budget), strict=True))
        else:
            tiles = {inner: tile_along(self.sizes.trips(inner), budget)}
        self.fill(tiles, budget)
        idle = prod(waste(self.sizes.trips(loop), tile) for loop, tile in tiles.items())
        return tiles, across is not None or not (idle > WASTEFUL or hides_order(tiles, self.accesses))

    def budget(self) -> int:
        """Elements of the tile of a flat nest: few where there are few programs."""
        share = power_below(self.trips(self.chain) // (4 * self.target.processors))
        return max(min(self.blocks.elements, share), 4 * self.target.warp)

    def fill(self, tiles: dict[kernel.ForOp, int], budget: int) -> None:
        """Give more axes of the chain a share of the tile, innermost first, until it has its elements."""
        for loop in reversed(self.chain):
            left = budget // prod(tiles.values())
            if left <= 1 or len(tiles) == 3:
                return
            if loop not in tiles:
                tile = min(left, power_below(self.sizes.trips(loop)))
                if tile > 1:
                    tiles[loop] = tile

    def across(self, inner: kernel.ForOp | None = None) -> kernel.ForOp | None:
        """An axis along which accesses lie side by side that are far apart along `inner`; both long enough."""
        inner = inner or max(self.chain, key=lambda loop: (self._unit_bytes(loop), self.chain.index(loop)))
        axis = inner.axis.data
        apart = [a for a in self.accesses if not is_unit(s := a.stride(axis)) and s is not ZERO]
        largest = max((self.footprint(a) for a in self.accesses), default=0)
        far = [a for a in apart if self.footprint(a) * SHORT > largest]
        for loop in reversed(self.chain):
            shorter, longer = sorted((self.sizes.trips(loop), self.sizes.trips(inner)))
            if loop is inner or shorter < SHORTEST_SIDE or longer < SHORT:
                continue
            if any(is_unit(a.stride(loop.axis.data)) for a in far):
                return loop
        return None

    def widest(self) -> int:
        """Bytes of the widest element that is accessed."""
        return max((a.bytes for a in self.accesses), default=4)

    def _unit_bytes(self, loop: kernel.ForOp) -> int:
        """Bytes of memory that accesses touch, each place once, side by side along an axis."""
        return sum(self.footprint(a) for a in self.accesses if is_unit(a.stride(loop.axis.data)))

    def footprint(self, access: Access) -> int:
        """Bytes that an access touches, each place once."""
        axes = [loop for loop in access.loops if access.stride(loop.axis.data) is not ZERO]
        return access.bytes * self.trips(axes)


def cost_along(access: Access, loop: Loop, sizes: Sizes, target: GpuTarget) -> float:
    """Bytes that an access moves when the lanes of a program lie along the axis of a loop."""
    runs, sector = access.runs(sizes), target.sector_bytes
    stride = access.stride(loop.axis.data)
    if stride is ZERO:
        return runs * access.bytes * SHARED
    if stride is None:
        return runs * sector
    lanes = power_above(min(sizes.trips(loop), max(sector // access.bytes, 1)))
    return runs * min(sector, max(abs(sizes.of(stride)) * access.bytes, sector / lanes))


_ROWS = (kernel.ForOp, kernel.ReduceOp)


def may_tile(op: Loop) -> bool:
    """Whether the elements of a loop may be combined in any order, or by a scan."""
    return not (isinstance(op, kernel.ReduceOp) and op.combine is not None)


def is_row_of_few(op: Loop, nest: Loop, sizes: Sizes, target: GpuTarget) -> bool:
    """Whether lanes lie better along a loop of a nest than along the short ones in it, which each lane runs then."""
    inner = [each for each in op.body.block.ops if isinstance(each, Loop)]
    lengths = [extent_of(each).as_int() for each in inner if isinstance(each, _ROWS) and is_innermost(each)]
    if not inner or not isinstance(op, _ROWS) or not may_tile(op) or len(lengths) < len(inner):
        return False
    if not all(length is not None and length <= UNROLLED for length in lengths):
        return False
    inside = [access for access in Nest.of(nest).accesses if op in access.loops]
    along = sum(cost_along(access, op, sizes, target) for access in inside)
    within = sum(cost_along(a, a.loops[-1], sizes, target) for a in inside if a.loops[-1] is not op)
    alone = sum(access.runs(sizes) * target.sector_bytes for access in inside if access.loops[-1] is op)
    return along < within + alone
