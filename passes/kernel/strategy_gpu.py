"""Schedules for GPUs: which axes are spread over programs, which are dimensions of a program's tile, what loops.

Every decision compares numbers of `cost.py` for the nest at hand. A program works on a tile of up to three dimensions;
neighbours in memory are neighbours in the tile. Rows that fit are held in registers, longer ones are looped over, and
what a register tile cannot hold is computed again, or goes through memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, SSAValue

from ...dialects import kernel
from ...dialects.loop import MONOIDS, yielded
from ...dialects.sym import ZERO, Ranges
from ..counters import counter
from .axes import Loop, kernel_names, loops_in, substitute_axes
from .cost import Access, Nest, Sizes, is_unit
from .fold_lanes import fold_rows
from .gpu_blocks import (
    SECTOR,
    TOLERATED_WASTE,
    GpuBlocks,
    columns_side_by_side,
    power_above,
    power_below,
    tile_along,
    waste,
)
from .gpu_legality import box_of, independent_nests, is_innermost, is_serial
from .lane_order import hides_order
from .launch_facts import ranges_of
from .targets import VECTOR_BYTES, GpuTarget
from .tiles import covers, extent_of
from .transforms import (
    join_reductions,
    linearise,
    perfect_chain,
    range_of,
    rebuild_chain,
    reduction_chain,
    set_mapping,
)

#: cost of an access that all lanes share
SHARED = 0.05
#: most elements of a loop that each lane runs for itself, element by element
SHORT = 16
#: lanes that run for each one that is needed, at most, before axes are divided anew in each lane
WASTEFUL = 1.25
#: shortest side of the tile of a transpose: a weight's 3x3 points; of float32, elements so far apart share no sector
SHORTEST_SIDE = 8
#: elements of a tile whose columns a program keeps that one thread works on: with fewer, more threads wait for each
#: other at each reduction. Softmax over 128 rows of 1024 columns takes 0.037 ms on an H200, 0.090 with 16 elements
ROWS_IN_COLUMNS = 64
#: bytes on their way that a thread has no registers for, for each result that it gathers for each of its elements
ACCUMULATOR_BYTES = 2
#: most iterations of a loop that is written out
UNROLLED = 8
#: divisions of the elements of a row by numbers of the row, from which on a thread takes twice as many elements: it
#: prepares each such number. Cosine similarity's backward pass, 8 of them, 8192 rows of 4096: 0.094 ms on an H200
#: instead of 0.112
DIVISIONS = 4
#: times that a loop over columns runs at least where its steps are halved
LONG = 8


def schedule(function: kernel.FuncOp, target: GpuTarget, sizes: Sizes, blocks: GpuBlocks | None = None) -> None:
    """Choose mapping and tiles for all loops of a kernel, in place."""
    _GpuSchedule(function, target, sizes, ranges_of(function), blocks or GpuBlocks()).run()


@dataclass
class _GpuSchedule:
    function: kernel.FuncOp
    target: GpuTarget
    sizes: Sizes
    ranges: Ranges
    blocks: GpuBlocks
    elements: int = 1
    """Elements of the largest tile."""
    per_thread: int = 0
    """Elements of it that one thread works on; 0: not decided yet, as many as usual."""
    chain: list[kernel.ForOp] = field(default_factory=list)
    """The loops whose iterations are spread over programs, outermost first."""
    joined: kernel.ReduceOp | None = None
    """A reduction of which nothing is kept."""
    step: int = 0
    """Elements of the tiles of such a reduction, if they are not as long as a row."""

    def run(self) -> None:
        """Map everything."""
        block = self.function.body.block
        if is_serial(self.function):
            self._serial()
            return
        apart = independent_nests(block)
        for op in [op for op in block.ops if isinstance(op, Loop)]:
            if isinstance(op, kernel.ForOp) and op in apart and counter("kernel-tile-grid"):
                self._programs(op)
            else:
                self._rows(op, Nest.of(op), 1)
        self._note(self.per_thread or self.blocks.per_thread)

    def _serial(self) -> None:
        """One program runs all iterations in order; nothing needs to be atomic then."""
        for op in self.function.walk():
            if isinstance(op, kernel.StoreOp):
                op.properties.pop("atomic", None)
        self._note(self.blocks.per_thread)

    def _note(self, per_thread: int) -> None:
        """Say how many elements one thread works on, for the passes behind this one."""
        self.function.properties["per_thread"] = IntegerAttr(per_thread, i64)

    def _programs(self, op: kernel.ForOp) -> None:
        """Spread a nest over programs."""
        self.chain = box_of(op)
        self.nest = Nest.of(op)
        body = self.chain[-1].body.block
        if not any(True for _ in loops_in(body)):
            self._elementwise()
            return
        column = self._column()
        if column is None or not counter("kernel-tile-column"):
            self._row_programs()
        else:
            self._column_programs(column)

    # elementwise

    def _elementwise(self) -> None:
        inner = max(self.chain, key=lambda loop: (self._unit_bytes(loop), self.chain.index(loop)))
        across = self._across(inner)
        total = prod(self.sizes.trips(loop) for loop in self.chain)
        budget = max(
            min(self.blocks.elements, power_below(total // (4 * self.target.processors))), 4 * self.target.warp
        )
        tiles: dict[kernel.ForOp, int] = {}
        if across is not None and counter("kernel-tile-block"):
            sides = self.blocks.transposed(self.sizes.trips(inner), self.sizes.trips(across), self._widest(), budget)
            tiles = dict(zip((inner, across), sides, strict=True))
        elif counter("kernel-tile-lanes"):
            tiles[inner] = tile_along(self.sizes.trips(inner), budget)
        self._fill(tiles, budget)
        unsuited = self._idle(tiles) > WASTEFUL or hides_order(tiles, self.nest.accesses)
        if across is None and self._may_join_axes() and unsuited and counter("kernel-tile-join"):
            tiles = {self._join_axes(): budget}
        if self.elements == 1:
            least, most = self.blocks.least_per_thread, self.blocks.per_thread
            plain = across is None and self.nest.shares_only_numbers([loop.axis.data for loop in self.chain])
            most = max(least, VECTOR_BYTES // self._widest()) if plain else most
            self.per_thread = self.blocks.elements_per_thread(self._bytes_of_elements(), least, most)
        self._spread(tiles)

    def _idle(self, tiles: dict[kernel.ForOp, int]) -> float:
        """Lanes that run for each one that is needed."""
        return prod(waste(self.sizes.trips(loop), tile) for loop, tile in tiles.items())

    def _may_join_axes(self) -> bool:
        divisors = (loop.hi.data for loop in self.chain[1:])
        return len(self.chain) > 1 and all(size.is_constant for size in divisors)

    def _join_axes(self) -> kernel.ForOp:
        """One axis over all iterations, of which tiles waste next to nothing."""
        joined, values = linearise([range_of(loop) for loop in self.chain], kernel_names(self.function))
        self.chain = rebuild_chain(self.chain, [joined])
        substitute_axes(self.chain[0].body.block, values)
        self.nest = Nest.of(self.chain[0])
        return self.chain[0]

    def _bytes_of_elements(self) -> int:
        """Bytes that each element takes of buffers that hold one for it alone; what programs share is in the cache."""
        own = [loop.axis.data for loop in self.chain]
        loads = [a for a in self.nest.accesses if isinstance(a.op, kernel.LoadOp)]
        return sum(a.bytes for a in loads if all(a.stride(axis) is not ZERO for axis in own))

    def _unit_bytes(self, loop: kernel.ForOp) -> int:
        """Bytes of memory that accesses touch, each place once, side by side along an axis."""
        return sum(self._footprint(a) for a in self.nest.accesses if is_unit(a.stride(loop.axis.data)))

    def _footprint(self, access: Access) -> int:
        axes = [loop for loop in access.loops if access.stride(loop.axis.data) is not ZERO]
        return access.bytes * prod(self.sizes.trips(loop) for loop in axes)

    def _widest(self) -> int:
        return max((a.bytes for a in self.nest.accesses), default=4)

    def _across(self, inner: kernel.ForOp) -> kernel.ForOp | None:
        """An axis along which accesses lie side by side that are far apart along `inner`; both long enough."""
        axis = inner.axis.data
        apart = [a for a in self.nest.accesses if not is_unit(s := a.stride(axis)) and s is not ZERO]
        largest = max((self._footprint(a) for a in self.nest.accesses), default=0)
        far = [a for a in apart if self._footprint(a) * SHORT > largest]
        for loop in reversed(self.chain):
            shorter, longer = sorted((self.sizes.trips(loop), self.sizes.trips(inner)))
            if loop is inner or shorter < SHORTEST_SIDE or longer < SHORT:
                continue
            if any(is_unit(a.stride(loop.axis.data)) for a in far):
                return loop
        return None

    def _fill(self, tiles: dict[kernel.ForOp, int], budget: int) -> None:
        """Give more axes of the chain a share of the tile, innermost first, until it has its elements."""
        for loop in reversed(self.chain):
            left = budget // prod(tiles.values())
            if left <= 1 or len(tiles) == 3:
                return
            if loop not in tiles:
                tile = min(left, power_below(self.sizes.trips(loop)))
                if tile > 1 and counter("kernel-tile-fill"):
                    tiles[loop] = tile

    def _spread(self, tiles: dict[kernel.ForOp, int]) -> None:
        """Rebuild the chain with its tiled axes innermost, in the order of `tiles` reversed, all on the grid."""
        self.elements = max(self.elements, prod(tiles.values()))
        tiled = list(reversed(tiles))
        order = [*(loop for loop in self.chain if loop not in tiles), *tiled]
        wanted = [tiles.get(loop) for loop in order]
        loops = rebuild_chain(self.chain, [range_of(loop) for loop in order])
        for loop, tile in zip(loops, wanted, strict=True):
            set_mapping(loop, "grid", tile if tile is not None and tile > 1 else None)

    # reductions and rows

    def _column(self) -> kernel.ForOp | None:
        """The parallel axis along which the lanes of a program lie; None: along the inner loops' own axes."""
        costs: dict[kernel.ForOp | None, float] = {None: self._cost_of_rows()}
        for loop in (each for each in reversed(self.chain) if not self._decides_bounds(each)):
            costs[loop] = sum(self._cost(a, loop.axis.data, loop) for a in self.nest.accesses)
        best = min(costs.values())
        return next(loop for loop, cost in costs.items() if cost <= best * 1.05)

    def _cost_of_rows(self) -> float:
        return sum(self._cost(a, a.loops[-1].axis.data, a.loops[-1]) for a in self.nest.accesses)

    def _cost(self, access: Access, axis: str, loop: Loop) -> float:
        """Bytes that an access moves when the lanes of a program lie along an axis."""
        runs = access.runs(self.sizes)
        stride = access.stride(axis)
        if stride is ZERO:
            return runs * access.bytes * SHARED
        if stride is None:
            return runs * SECTOR
        lanes = power_above(min(self.sizes.trips(loop), max(SECTOR // access.bytes, 1)))
        return runs * min(SECTOR, max(abs(self.sizes.of(stride)) * access.bytes, SECTOR / lanes))

    def _innermost(self) -> list[Loop]:
        return [op for op in loops_in(self.chain[-1].body.block) if is_innermost(op)]

    def _row_programs(self) -> None:
        """Lanes along the inner axes; short rows share a program."""
        fold_rows(self.function, self.chain[-1].body.block)
        size = self._bytes_of_rows()
        self._join_sums()
        if self.elements == 1:  # the first nest of a kernel decides
            held = ACCUMULATOR_BYTES * self._accumulators()
            least = self.blocks.least_per_thread if held else self.blocks.per_thread
            self.per_thread = self.blocks.elements_per_thread(size + held, least)
            if self._divisions() >= DIVISIONS:
                self.per_thread = min(2 * self.per_thread, 2 * self.blocks.per_thread)
        adds_up = self._only_adds_up()
        self.step = self.blocks.least_step if adds_up else 0
        if adds_up and self._fills_one_program():
            self.step, self.per_thread = 0, self.blocks.least_per_thread
        elif self.step:
            few = self.sizes.trips(self._innermost()[0]) <= 2 * self.step
            self.per_thread = self.blocks.per_thread if few else self.blocks.least_per_thread
        longest = max(map(self._row_tile, self._lanes_in(self.chain[-1].body.block)))
        rows = max(self.blocks.elements // longest, 1)
        tiles: dict[kernel.ForOp, int] = {}
        if rows > 1:
            self._fill_rows(tiles, rows)
        for op in list(self.chain[-1].body.block.ops):
            if isinstance(op, Loop):
                self._rows(op, self.nest, prod(tiles.values()))
        self._spread(tiles)

    def _only_adds_up(self) -> bool:
        """Whether each program reads long rows of 16 bits an element once and keeps a number of them.

        Steps, the next one on its way while one is added up, are faster than all of a row in registers: the means of
        8192 rows of 8192 elements take 0.035 ms on an H200 instead of 0.039, the sums of 4096 elements 0.036.
        """
        inner = self._innermost()
        op = inner[0]
        if len(inner) > 1 or op is self.joined or op.parent_op() is not self.chain[-1] or self.elements > 1:
            return False
        if not isinstance(op, kernel.ReduceOp) or op.combine is not None:
            return False
        loads = [a for a in self.nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op]
        long = 2 * self.blocks.least_step <= self.sizes.trips(op) <= self.blocks.longest_row
        numbers = all(MONOIDS[name.data].arity == 1 for name in op.combiners)
        return numbers and long and bool(loads) and all(load.bytes == 2 for load in loads)

    def _fills_one_program(self) -> bool:
        """Whether what adds up several rows has a thread for each vector of them.

        Sums of products of two rows of 4096 elements, 8192 of them, take 0.0365 ms on an H200 by 512 threads each, in
        steps 0.0403 by 128 and 0.0391 by 256. Squares of one row take 0.019 in steps.
        """
        op = self._innermost()[0]
        own = [loop.axis.data for loop in self.chain]
        loads = (a for a in self.nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
        rows = {a.op.buffer for a in loads if all(a.stride(axis) is not ZERO for axis in own)}
        most = self.target.warps * self.target.warp * self.blocks.least_per_thread
        return len(rows) > 1 and self.sizes.trips(op) <= most

    def _divisions(self) -> int:
        """How many quotients by numbers of a row each element of it takes part in."""
        return sum(map(_divisions_by_numbers, self._innermost()))

    def _decides_bounds(self, loop: kernel.ForOp) -> bool:
        """Whether bounds of loops inside depend on an axis: its iterations then take turns of their own."""
        inner = loops_in(self.chain[-1].body.block)
        return any(loop.axis.data in op.lo.data.free_symbols | op.hi.data.free_symbols for op in inner)

    def _accumulators(self) -> int:
        """Results that each lane gathers for itself over a loop around its row."""
        inner = (op for op in self._innermost() if isinstance(op.parent_op(), kernel.ReduceOp))
        return sum(len(op.results) for op in inner)

    def _bytes_of_rows(self) -> int:
        """Bytes that each element of a row takes in the buffers that have a row for each program."""
        own = [loop.axis.data for loop in self.chain]
        rows = {
            a.op.buffer: a.bytes
            for a in self.nest.accesses
            if isinstance(a.op, kernel.LoadOp)
            and a.loops[-1].axis.data not in own
            and is_unit(a.stride(a.loops[-1].axis.data))
            and any(a.stride(axis) is not ZERO for axis in own)
        }
        return sum(rows.values())

    def _fill_rows(self, tiles: dict[kernel.ForOp, int], rows: int) -> None:
        programs = prod(self.sizes.trips(loop) for loop in self.chain)
        rows = min(rows, power_below(programs // (2 * self.target.processors)))
        inner = self.chain[-1]
        tile = min(rows, power_below(self.sizes.trips(inner)))
        if tile > 1 and not self._decides_bounds(inner) and counter("kernel-tile-fill"):
            tiles[inner] = tile

    def _row_tile(self, op: Loop) -> int:
        """The tile of an inner loop that runs along lanes."""
        length = self.sizes.trips(op)
        if self.step:
            return tile_along(length, self.step)
        if (
            op is not self.joined
            and length <= self.blocks.longest_row
            and covers(extent_of(op), self.blocks.longest_row, self.ranges)
        ):
            return power_above(length)
        return tile_along(length, self.blocks.step)

    def _rows(self, op: Loop, nest: Nest, rows: int) -> None:
        """Tile the innermost loops of a nest; what is around them runs one after the other."""
        if isinstance(op, kernel.ForOp):
            op = self._one_row(op)
        if self._is_row_of_few(op, nest):
            for nested in loops_in(op.body.block):
                self._write_out(nested)
        elif not is_innermost(op):
            for nested in (n for r in op.regions for n in r.block.ops if isinstance(n, Loop)):
                self._rows(nested, nest, rows)
            return
        tile = self._row_tile(op)
        if tile > 1 and _may_tile(op) and counter("kernel-tile-lanes"):
            set_mapping(op, "vector", tile)
            self.elements = max(self.elements, rows * tile)

    def _lanes_in(self, block: Block) -> list[Loop]:
        """The loops of a block whose axes run along lanes: the innermost ones, or rows of few elements each."""
        found: list[Loop] = []
        for op in (each for each in block.ops if isinstance(each, Loop)):
            lanes = is_innermost(op) or self._is_row_of_few(op, self.nest)
            found += [op] if lanes else [each for r in op.regions for each in self._lanes_in(r.block)]
        return found

    def _is_row_of_few(self, op: Loop, nest: Nest) -> bool:
        """Whether lanes lie better along a loop than along the short ones in it, which are then written out."""
        inner = [each for each in op.body.block.ops if isinstance(each, Loop)]
        lengths = [extent_of(each).as_int() for each in inner if isinstance(each, kernel.ForOp) and is_innermost(each)]
        if not inner or not isinstance(op, kernel.ForOp) or len(lengths) < len(inner):
            return False
        if not all(length is not None and length <= UNROLLED for length in lengths):
            return False
        inside = [access for access in nest.accesses if op in access.loops]
        along = sum(self._cost(access, op.axis.data, op) for access in inside)
        within = sum(self._cost(a, a.loops[-1].axis.data, a.loops[-1]) for a in inside if a.loops[-1] is not op)
        alone = sum(access.runs(self.sizes) * SECTOR for access in inside if access.loops[-1] is op)
        return along < within + alone

    def _join_sums(self) -> None:
        """Make one reduction of reductions of rows, all that a program does, where tiles as long as a row waste lanes.

        Nothing is kept of the elements, so that tiles need not end where rows do.
        """
        loops = [op for op in self.chain[-1].body.block.ops if isinstance(op, Loop)]
        if len(loops) != 1 or not isinstance(loops[0], kernel.ReduceOp):
            return
        chain = reduction_chain(loops[0])
        lengths = [extent_of(op).as_int() or 0 for op in chain]
        row, total = lengths[-1], prod(lengths)
        wasteful = waste(row, power_above(row)) > TOLERATED_WASTE and row <= self.blocks.longest_row
        whole = row % self.blocks.least_per_thread == 0 and is_innermost(chain[-1])
        if len(chain) == 1 or not total or any(op.lo.data is not ZERO for op in chain) or not (wasteful and whole):
            return
        if counter("kernel-tile-join"):
            self.joined = join_reductions(chain, kernel_names(self.function))

    def _one_row(self, op: kernel.ForOp) -> kernel.ForOp:
        """Several short loops as one over all their iterations, so that one tile covers them."""
        chain = perfect_chain(op)
        lengths = [extent_of(loop).as_int() for loop in chain]
        if len(chain) < 2 or None in lengths or any(loop.lo.data is not ZERO for loop in chain):
            return op
        if prod(length for length in lengths if length) > self.blocks.longest_row or not counter("kernel-tile-join"):
            return op
        joined, values = linearise([range_of(loop) for loop in chain], kernel_names(self.function))
        (loop,) = rebuild_chain(chain, [joined])
        substitute_axes(loop.body.block, values)
        return loop

    def _column_programs(self, column: kernel.ForOp) -> None:
        """Lanes along a parallel axis, and rows of such lanes along the inner axes."""
        inner = self._innermost()
        others = [loop for loop in self.chain if loop is not column]
        scans = any(isinstance(op, kernel.ScanOp) for op in inner)
        count, rows = self.sizes.trips(column), prod(map(self.sizes.trips, others)) if scans else None
        width = columns_side_by_side(count, min((a.bytes for a in self.nest.accesses), default=4), rows, self.target)
        tiles = {column: width}
        for op in self.chain[-1].walk():
            if isinstance(op, kernel.LocalOp):
                op.properties["columnwise"] = UnitAttr()
        if all(self.sizes.trips(op) <= SHORT or self._reads_nothing_of_its_own(op, column) for op in inner):
            tiles[column] = tile_along(self.sizes.trips(column), self.blocks.elements // 2)
            self._fill(tiles, self.blocks.elements // 2)
            for op in inner:
                self._write_out(op)
        else:
            for op in inner:
                self._column_steps(op, width)
        self._spread(tiles)

    def _reads_nothing_of_its_own(self, op: Loop, column: kernel.ForOp) -> bool:
        """Whether lanes along a column fill the GPU and read the same in an inner loop: a search in a table.

        Such a loop waits for no memory, and takes no threads that have to add up what each has found.
        """
        if prod(self.sizes.trips(loop) for loop in self.chain) < self.target.room:
            return False
        loads = (a for a in self.nest.accesses if isinstance(a.op, kernel.LoadOp) and op in a.loops)
        return all(ZERO in (a.stride(column.axis.data), a.stride(op.axis.data)) for a in loads)

    def _crowd(self, op: Loop) -> int:
        """How many times as many registers an element of a loop over columns takes as one input and one result."""
        held = len(yielded(op.body))
        own = [loop.axis.data for loop in (*self.chain, op) if self.sizes.trips(loop) > 1]
        loads = (a for a in self.nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
        inputs = {a.op.buffer for a in loads if all(a.stride(axis) is not ZERO for axis in own)}
        return power_above(-(-(held + len(inputs)) // 2) or 1)

    def _write_out(self, op: Loop) -> None:
        length = extent_of(op).as_int()
        short = length is not None and length <= UNROLLED and op.lo.data is ZERO and isinstance(op, kernel.ForOp)
        if short and counter("kernel-tile-unroll"):
            set_mapping(op, "unroll")

    def _column_steps(self, op: Loop, width: int) -> None:
        """Steps of several rows at once."""
        if not _may_tile(op):
            return
        length = self.sizes.trips(op)
        most = max(self.blocks.column_step // (width * self._crowd(op)), 1)
        if most > 1 and length >= LONG * most and isinstance(op, kernel.ReduceOp) and _keeps_several(op):
            most //= 2
        has_rows = any(isinstance(o, kernel.LocalOp) for o in self.function.walk())
        if has_rows and covers(extent_of(op), self.blocks.longest_row // width, self.ranges):
            tile = power_above(length)
            self.per_thread = ROWS_IN_COLUMNS
        else:
            tile = min(most, power_above(length))
        if tile > 1 and counter("kernel-tile-lanes"):
            set_mapping(op, "vector", tile)
            self.elements = max(self.elements, width * tile)


def _divisions_by_numbers(loop: Loop) -> int:
    """Quotients in a loop whose divisor is the same in all of its iterations, and whose dividend is not."""
    varying: set[SSAValue] = set()
    count = 0
    for op in loop.body.block.ops:
        if isinstance(op, arith.DivfOp):
            count += op.lhs in varying and op.rhs not in varying
        used = frozenset[str]()
        if isinstance(op, kernel.LoadOp):
            used = op.map.data[0].free_symbols
        elif isinstance(op, kernel.IndexOp):
            used = op.expr.data.free_symbols
        if loop.axis.data in used or any(value in varying for value in op.operands):
            varying.update(op.results)
    return count


def _keeps_several(op: kernel.ReduceOp) -> bool:
    """Whether lanes keep more than a number each, so that it takes long to put together what rows of them have found.

    Sums and variances of 4096 columns, in parts of 256 rows of 16 bits, take 0.0276 ms on an H200 by 8 rows of lanes,
    0.0396 by 16; the difference is what is done behind the loop.
    """
    return any(MONOIDS[name.data].arity > 1 for name in op.combiners)


def _may_tile(op: Loop) -> bool:
    """Whether the elements of a loop may be combined in any order, or by a scan."""
    return not (isinstance(op, kernel.ReduceOp) and op.combine is not None)
