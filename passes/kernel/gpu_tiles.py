"""Sizes of the tiles of a GPU's programs, and how many elements one thread works on.

Every decision compares numbers of `cost.py` for the nest at hand. Rows that fit are held in registers, longer ones are
looped over, and what a register tile cannot hold is computed again, or goes through memory.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Block

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import ZERO, Ranges
from ...machines import GpuTarget
from ..analysis.loops import Loop, ops_in
from ..analysis.nests import element_bytes
from ..analysis.sizes import Sizes
from ..counters import counter
from .gpu_blocks import VECTORS, GpuBlocks, power_above, power_below, tile_along
from .gpu_legality import is_innermost
from .gpu_nest import GpuNest
from .gpu_rows import (
    accumulators,
    bytes_of_products,
    bytes_of_rows,
    bytes_of_vector,
    combines_pairs,
    divides_often,
    fills_one_program,
    has_halves,
    keeps_several,
    multiplies_vector,
    only_adds_up,
    rows_of_products,
    shared_by,
)
from .tiles import covers, extent_of, is_grid, tile_of
from .transforms import range_of, set_mapping, set_range

#: elements of a tile whose columns a program keeps that one thread works on: with fewer, more threads wait for each
#: other at each reduction. Softmax over 128 rows of 1024 columns takes 0.037 ms on an H200, 0.090 with 16 elements
ROWS_IN_COLUMNS = 64
#: bytes on their way that a thread has no registers for, for each result that it gathers for each of its elements
ACCUMULATOR_BYTES = 2
#: steps of columns at least, whose loads are then on their way together, where each processor has a program: with fewer
#: steps more threads would wait for each other at the end
LEAST_STEPS = 4
#: programs that a processor has at least where several rows of a matrix share one, and are multiplied with a vector;
#: and where launches overlap, so that programs wait with their rows in registers
ROWS_OF_PROCESSOR, WAITING_ROWS_OF_PROCESSOR = 8, 3
#: rows of such a program at least, and what makes the number of rows the next power of two, not the one below
LEAST_WAITING_ROWS, ROUNDED = 2, 2**0.5
#: times that a loop over columns runs at least where its steps are quartered
LONG = 8


def tile_for_gpu(
    function: kernel.FuncOp,
    target: GpuTarget,
    sizes: Sizes,
    ranges: Ranges,
    blocks: GpuBlocks,
    counted: str,
    overlaps: bool = False,
) -> None:
    """Choose tiles for all loops of a kernel, in place; `counted` is the pass that asks, `overlaps` whether the launch
    may begin before the one in front has ended."""
    tiles = _Tiles(function, sizes, ranges, blocks, counted)
    tiles.overlaps = overlaps
    for op in [each for each in function.body.block.ops if isinstance(each, Loop)]:
        if isinstance(op, kernel.ForOp) and is_grid(op):
            tiles.program(GpuNest(function, op, target, sizes, blocks))
        else:
            tiles.rows(op, 1, 0)
    function.properties["per_thread"] = IntegerAttr(tiles.per_thread or blocks.per_thread, i64)


class _Tiles:
    """Chooses the tiles of one kernel.

    elements:   elements of the largest tile so far
    per_thread: elements of it that one thread works on; 0: not decided yet, as many as usual
    overlaps:   whether the launch may begin before the one in front has ended
    """

    overlaps: bool = False

    def __init__(self, function: kernel.FuncOp, sizes: Sizes, ranges: Ranges, blocks: GpuBlocks, counted: str) -> None:
        self.function, self.sizes, self.ranges, self.blocks, self.counted = function, sizes, ranges, blocks, counted
        self.elements, self.per_thread = 1, 0

    def program(self, nest: GpuNest) -> None:
        """Tile a nest that is spread over programs."""
        if nest.is_flat:
            self._elementwise(nest)
        elif nest.column_axis is not None:
            self._columns(nest, nest.column_axis)
        else:
            self._rows_of(nest)

    def _elementwise(self, nest: GpuNest) -> None:
        if nest.column_axis is not None:  # `kernel-join-axes` gave it a tile
            tiles, across = {loop: tile_of(loop) for loop in nest.chain if loop.tile is not None}, None
        else:
            tiles, across = nest.elementwise_tiles()[0], nest.across()
        if self.elements == 1:
            least, most = self.blocks.least_per_thread, self.blocks.per_thread
            plain = across is None and nest.nest.shares_only_numbers([loop.axis.data for loop in nest.chain])
            vector = max(GpuTarget.vector_bytes // _widest_of_elements(nest), 1)
            most = max(least, vector) if plain else most
            if plain and nest.trips(nest.chain) <= least * nest.target.room:  # with more threads, all still run at once
                least = most = min(least, vector)
            self.per_thread = self.blocks.elements_per_thread(_bytes_of_elements(nest), least, most)
        self._spread(nest, tiles)

    def _spread(self, nest: GpuNest, tiles: dict[kernel.ForOp, int]) -> None:
        """Bring the tiled axes of the grid inside, in the order of `tiles` reversed."""
        self.elements = max(self.elements, prod(tiles.values()))
        order = [*(loop for loop in nest.chain if loop not in tiles), *reversed(tiles)]
        wanted = [(range_of(loop), tiles.get(loop, 1)) for loop in order]
        for loop, (axis, tile) in zip(nest.chain, wanted, strict=True):
            set_range(loop, axis)
            set_mapping(loop, "grid", tile if tile > 1 and counter(self.counted) else None)

    def _columns(self, nest: GpuNest, column: kernel.ForOp) -> None:
        """Lanes along a parallel axis, and rows of such lanes along the inner axes."""
        width = tile_of(column)
        tiles = {column: width}
        if nest.walks_columns(column):
            budget = min(self.blocks.elements // 2, nest.budget())
            tiles[column] = tile_along(self.sizes.trips(column), budget)
            nest.fill(tiles, budget)
        else:
            for op in nest.innermost():
                if op.mapping.data == "vector" and op.tile is None:
                    self._column_steps(nest, op, width)
        self._spread(nest, tiles)

    def _column_steps(self, nest: GpuNest, op: Loop, width: int) -> None:
        """Choose how many rows a loop over columns reads in one step."""
        length, most = self.sizes.trips(op), max(self._column_elements(nest, op, width) // width, 1)
        if most > 1 and length >= LONG * most and combines_pairs(op):
            most = max(most // 4, 1)
        has_rows = any(type(o) is kernel.LocalOp for o in ops_in(self.function))
        if has_rows and covers(extent_of(op), self.blocks.longest_row // width, self.ranges):
            tile = power_above(length)
            self.per_thread = ROWS_IN_COLUMNS
        else:
            tile = min(most, power_above(length))
        self._set_lanes(op, tile, width)

    def _column_elements(self, nest: GpuNest, op: Loop, width: int) -> int:
        """Elements of a tile; of several numbers that are one result, as many as registers allow.

        The largest of several columns takes a division a step: 0.031 ms on an H200, and 0.042 in tiles of 512.
        """
        inputs = self._inputs(nest, op)
        most = max(self.blocks.column_step // self._crowd(op, len(inputs)), 1)
        if not isinstance(op, kernel.ReduceOp) or combines_pairs(op):
            return most
        bytes_each, programs = [element_bytes(each) for each in inputs], nest.trips(nest.chain) // width
        if inputs:
            vectors = max(VECTORS * max(bytes_each) // sum(bytes_each), 1)
            self.per_thread = max(self.per_thread, vectors * GpuTarget.vector_bytes // max(bytes_each))
        if inputs and programs >= nest.target.processors:
            few = power_below(width * self.sizes.trips(op) // LEAST_STEPS)
            most = min(most, max(few, self.blocks.least_column_step))
        widest = max(bytes_each, default=1)
        return self.blocks.column_step_for(programs, widest, most, keeps_several(op), nest.target)

    def _set_lanes(self, op: Loop, tile: int, beside: int) -> None:
        """Give a loop its tile, beside so many others; of one element, it runs one by one."""
        if tile > 1 and counter(self.counted):
            set_mapping(op, "vector", tile)
            self.elements = max(self.elements, beside * tile)
        else:
            set_mapping(op, "serial")

    def _crowd(self, op: Loop, inputs: int) -> int:
        """How many times as many registers an element of a loop over columns takes as one input and one result."""
        held = len(yielded(op.body))
        if isinstance(op, kernel.ReduceOp) and op.combine is None and not combines_pairs(op):
            held = len(op.combiners)
        return power_above(-(-(held + inputs) // 2) or 1)

    def _inputs(self, nest: GpuNest, op: Loop) -> list[Attribute]:
        """Types of the buffers of which each element of a loop over columns has its own."""
        own = [loop.axis.data for loop in (*nest.chain, op) if self.sizes.trips(loop) > 1]
        loads = (a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
        return [b.type for b in dict.fromkeys(a.op.buffer for a in loads if all(a.stride(x) is not ZERO for x in own))]

    def _rows_of(self, nest: GpuNest) -> None:
        """Lanes along the inner axes; short rows share a program."""
        if multiplies_vector(nest):
            self._rows_by_vector(nest)
            return
        step = 0
        if self.elements == 1:  # the first nest of a kernel decides
            adds_up = only_adds_up(nest)
            at_once = adds_up and fills_one_program(nest)
            step = self.blocks.least_step if adds_up and not at_once else 0
            self.per_thread = self.blocks.least_per_thread if at_once else self._rows_per_thread(nest, step)
        lanes = _lanes_in(nest.body)
        rows = max(self.blocks.elements // max(self._row_tile(op, step) for op in lanes), 1)
        tiles: dict[kernel.ForOp, int] = {}
        if (vectors := shared_by(nest, self.ranges)) is not None:
            tiles[vectors] = power_above(self.sizes.trips(vectors))
            self.per_thread *= tiles[vectors]
        elif rows > 1 and not _walks_rows(nest):
            self._fill_rows(nest, tiles, rows)
        for op in nest.body.ops:
            if isinstance(op, Loop):
                self.rows(op, prod(tiles.values()), step)
        self._spread(nest, tiles)

    def _rows_by_vector(self, nest: GpuNest) -> None:
        """Rows of a matrix by one vector, which each thread reads once for all rows of its program.

        Several short rows a program, as long as each processor has programs enough; rows are whole up to `step`. Of
        2048 x 32000 weights of 8 bits four rows a program take 20.0 us on an H200, one 22.1; with 2048 rows, of which
        four a program leave each processor four programs, they take 4.0 and 3.2. A program reads of its own at least
        what it reads of the vector, which comes from the cache: 2048 rows of 5632 numbers of 4 bits, by hand in a token
        of a 1.1B Llama, took 7 us less two a program than one, of 8 bits 2.
        """
        *front, op = nest.innermost()
        length, bytes_each = self.sizes.trips(op), bytes_of_products(nest, op)
        tile = power_above(length)
        if tile > self.blocks.step or not covers(extent_of(op), self.blocks.step, self.ranges):
            tile = tile_along(length, self.blocks.least_step)
        streams = rows_of_products(nest, op) if self.overlaps else 1
        tiles: dict[kernel.ForOp, int] = {}
        if self.overlaps:
            rows = self._fill_waiting_rows(nest, tiles, length * bytes_each, 1 if has_halves(nest) else streams)
        else:
            rows = self._rows(nest, op)
            self._fill_rows(nest, tiles, rows)
        self._set_lanes(op, tile, prod(tiles.values()))
        for each in front:
            self._set_lanes(each, max(tile, power_above(self.sizes.trips(each))) if tile >= length else tile, 1)
        per_thread = self.blocks.bytes_per_thread * min(rows, streams) // power_above(bytes_each)
        if self.overlaps and tile > length:  # lanes behind the end of a row load nothing
            per_thread *= 2
        if self.overlaps and streams == 1 and front and has_halves(nest):  # warps are counted by what front sums over
            per_thread *= 2
        if not self.overlaps or not self.per_thread:
            self.per_thread = max(self.per_thread, per_thread)
        self._spread(nest, tiles)

    def _rows(self, nest: GpuNest, op: Loop) -> int:
        """Rows of a program that multiplies them with a vector, where launches do not overlap."""
        length, bytes_each = self.sizes.trips(op), bytes_of_products(nest, op)
        rows = self.blocks.program_bytes // (power_above(length) * bytes_each)
        rows = max(rows, power_above(-(-bytes_of_vector(nest, op) // (length * bytes_each))))
        return power_below(min(rows, nest.trips(nest.chain) // (ROWS_OF_PROCESSOR * nest.target.processors)))

    def _fill_waiting_rows(self, nest: GpuNest, tiles: dict[kernel.ForOp, int], row_bytes: int, streams: int) -> int:
        """Rows of a program that waits for the vector with them in registers: about as many bytes of each matrix.

        Fewer programs of more rows are better where launches overlap: two pairs of rows of 16 bits of a gate and what
        it gates, by four warps, took 0.8 us less in a token of a 1.1B Llama than one pair, four of 8 bits 4.6. All
        nests of a kernel have two: 1,152 pairs and 256 rows of 8 bits behind a norm took 4.4 us so, and 5.6 where the
        short nests had one.
        """
        rows = power_below(int(self.blocks.program_bytes * streams / row_bytes * ROUNDED))
        most = power_below(nest.trips(nest.chain) // (WAITING_ROWS_OF_PROCESSOR * nest.target.processors))
        inner = nest.chain[-1]
        tile = min(max(min(rows, most), LEAST_WAITING_ROWS), power_below(self.sizes.trips(inner)))
        if tile > 1 and not nest.decides_bounds(inner):
            tiles[inner] = tile
        return tile

    def _rows_per_thread(self, nest: GpuNest, step: int) -> int:
        if step:
            few = self.sizes.trips(nest.innermost()[0]) <= 2 * step
            return self.blocks.per_thread if few else self.blocks.least_per_thread
        held = ACCUMULATOR_BYTES * accumulators(nest)
        least = self.blocks.least_per_thread if held else self.blocks.per_thread
        count = self.blocks.elements_per_thread(bytes_of_rows(nest) + held, least)
        return min(2 * count, 2 * self.blocks.per_thread) if divides_often(nest) else count

    def _fill_rows(self, nest: GpuNest, tiles: dict[kernel.ForOp, int], rows: int) -> None:
        rows = min(rows, power_below(nest.trips(nest.chain) // (2 * nest.target.processors)))
        inner = nest.chain[-1]
        tile = min(rows, power_below(self.sizes.trips(inner)))
        if tile > 1 and not nest.decides_bounds(inner):
            tiles[inner] = tile

    def _row_tile(self, op: Loop, step: int) -> int:
        """The tile of an inner loop that runs along lanes; `step`: of sums of which nothing is kept."""
        if op.tile is not None:
            return tile_of(op)
        length = self.sizes.trips(op)
        if step:
            return tile_along(length, step)
        longest = self.blocks.longest_row
        if length <= longest and covers(extent_of(op), longest, self.ranges):
            return power_above(length)
        return tile_along(length, self.blocks.step)

    def rows(self, op: Loop, beside: int, step: int) -> None:
        """Tile the loops of a nest that run in lanes, beside so many rows."""
        if op.mapping.data == "vector":
            self._set_lanes(op, self._row_tile(op, step), beside)
            return
        for region in op.regions:
            for nested in region.block.ops:
                if isinstance(nested, Loop):
                    self.rows(nested, beside, step)


def _walks_rows(nest: GpuNest) -> bool:
    """Whether each program has several rows of its own already: `kernel-block-rows` takes some of them at once."""
    return any(
        type(op) is kernel.ForOp and op.mapping.data == "serial" and not is_innermost(op) for op in nest.body.ops
    )


def _lanes_in(block: Block) -> list[Loop]:
    """The loops of a block whose axes run along lanes, or would if elements could be combined in any order."""
    found: list[Loop] = []
    for op in (each for each in block.ops if isinstance(each, Loop)):
        lanes = is_innermost(op) or op.mapping.data == "vector"
        found += [op] if lanes else [each for region in op.regions for each in _lanes_in(region.block)]
    return found


def _widest_of_elements(nest: GpuNest) -> int:
    """Bytes of the widest element of what each iteration has its own of: a number that all share is no vector."""
    own = [loop.axis.data for loop in nest.chain]
    return max((a.bytes for a in nest.accesses if any(a.stride(axis) is not ZERO for axis in own)), default=4)


def _bytes_of_elements(nest: GpuNest) -> int:
    """Bytes that each element takes of buffers that hold one for it alone; what programs share is in the cache."""
    own = [loop.axis.data for loop in nest.chain]
    loads = [a for a in nest.accesses if isinstance(a.op, kernel.LoadOp)]
    return sum(a.bytes for a in loads if all(a.stride(axis) is not ZERO for axis in own))
