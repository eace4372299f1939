"""Sizes of the tiles of GPU programs: powers of two, chosen by what they waste and how many programs they leave."""

from __future__ import annotations

from xdsl.passes import ModulePass

from ...errors import UserError
from ...machines import Blocks, GpuTarget
from ...records import dataclass

#: a larger tile may waste so many times the lanes that the best one wastes
TOLERATED_WASTE = 1.1
#: bytes of one step of columns for each thread that the GPU has a place for
COLUMN_BYTES = 8
#: vectors of columns that a thread loads in a step, of all inputs: with more threads of fewer, more wait for each other
#: at the end
VECTORS = 2
#: rows that a program takes at once at most, elements of them, and registers of a thread for what it loads of them
MOST_ROWS = 8
ROWS_ELEMENTS = 8192
ROWS_REGISTERS = 128


@dataclass(frozen=True)
class GpuBlocks(Blocks):
    """The numbers of a target's description, in place of which passes that ask them take options of the same names."""

    @staticmethod
    def of(target: GpuTarget, module_pass: ModulePass | None = None) -> GpuBlocks:
        """The numbers of a target; options of a pass come first, where they are not 0."""
        numbers = vars(target.blocks)
        given = {name: getattr(module_pass, name, 0) for name in numbers}
        return GpuBlocks(**{name: given[name] or number for name, number in numbers.items()})

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0 or value & (value - 1) or (value == 0 and name not in ("unroll", "warps")):
                raise UserError(f"{name.replace('_', '-')} is {value}", "blocks of a GPU take powers of two")

    def elements_per_thread(self, bytes_per_element: int, least: int, most: int | None = None) -> int:
        """Elements for one thread; `bytes_per_element` are read for each from memory."""
        fitting = power_below(self.bytes_per_thread // max(bytes_per_element, 1))
        return max(min(fitting, 2 * self.per_thread if most is None else most), least)

    def transposed(self, inner: int, across: int, item_bytes: int, elements: int) -> tuple[int, int]:
        """The tile of a transpose along its two axes, given their lengths: whole cache lines both ways.

        Where one axis is shorter, the other takes more, up to so many elements.
        """
        edge = max(self.edge_bytes // item_bytes, 16)
        height = min(edge, power_above(across))
        width = min(max(edge, elements // height), power_above(inner))
        return width, min(max(edge, elements // width), power_above(across))

    def column_step_for(self, programs: int, widest: int, most: int, several: bool, target: GpuTarget) -> int:
        """Elements of a tile in a loop that adds up columns, of so many at most; the widest input has so many bytes.

        As many as leave each place for a thread `COLUMN_BYTES` of all programs: with fewer the memory waits, and with
        more threads wait for each other at the end of a program. Where that is one warp, and lanes keep several numbers
        for a result, as few as possible instead. On an H200, in bfloat16, variances of 12544 x 512 in 392 programs take
        16.4 us with tiles of 2,048 and 19.1 with half of that, those of 4096 x 16384 in 2,048 programs 54.9 with tiles
        of 512 and 46.4 with 256.
        """
        enough = power_below(max(COLUMN_BYTES * target.room // max(programs * widest, 1), 1))
        if several and enough * widest < 2 * VECTORS * target.vector_bytes * target.warp:
            enough = self.least_column_step
        return min(max(enough, self.least_column_step), most)

    def step_for(self, programs: int, target: GpuTarget) -> int:
        """Elements of a tile in a loop over a long row: few where not even small programs run all at once.

        Small ones end and start one by one, while others read.
        """
        return self.least_step if programs * (self.least_step // self.per_thread) > target.room else self.step

    def warps_for(self, elements: int, per_thread: int, target: GpuTarget) -> int:
        """Warps of a program that works on a tile of so many elements, `per_thread` at least for each thread."""
        return max(1, min(power_below(elements // (target.warp * per_thread)), target.warps))


def fill_up(warps: int, most: int, programs: int, target: GpuTarget, room: int) -> int:
    """More warps for few programs, as long as all run at once in a room for so many threads."""
    while 2 * warps <= most and programs * 2 * warps * target.warp <= room:
        warps *= 2
    return warps


def fit_cache(warps: int, most: int, programs: int, again: int, target: GpuTarget) -> int:
    """More warps for programs that read so many bytes again, where that makes them stay in the cache.

    With more warps fewer programs run at once. Half of the cache is for what they read, the rest for what they write.
    A thread may then read half of what one instruction can.
    """

    def fits(count: int) -> bool:
        at_once = min(programs, target.processors * (target.threads // (count * target.warp)))
        return 2 * at_once * again <= target.cache_bytes

    wanted = warps
    while not fits(wanted) and 2 * wanted <= most:
        wanted *= 2
    return wanted if fits(wanted) else warps


def programs_in_cache(again: int, target: GpuTarget) -> int:
    """How many programs can run at once so that each finds in the cache the `again` bytes that it reads a second time.

    Half of the cache is for what programs read, the rest for what they write. Each processor gets equally many.
    """
    return target.cache_bytes // (2 * target.processors * again) * target.processors


def rows_at_once(length: int, row: int, inputs: int, blocks: GpuBlocks) -> int:
    """Rows of so many, each a tile of `row` elements of so many inputs, that a program takes at once.

    As many as registers hold where a thread has one vector of each, in programs of few warps: the last ones to arrive
    keep the others waiting. The backward pass of layer norm takes 10.6 us on an H200 for 2048 x 1024 in bfloat16 in 256
    programs with eight rows at once, 12.0 in 512 with one. Of 8192 x 4096 one row at once takes 76 us, two take 84.
    """
    elements = ROWS_ELEMENTS if row <= ROWS_ELEMENTS // MOST_ROWS else ROWS_ELEMENTS // 2
    fitting = min(MOST_ROWS, ROWS_REGISTERS // max(blocks.least_per_thread * inputs, 1), elements // row)
    return tile_along(length, power_below(fitting), 1)


def power_above(count: int) -> int:
    """The smallest power of two that is at least `count`."""
    return 1 << max(count - 1, 0).bit_length()


def power_below(count: int) -> int:
    """The largest power of two that is at most `count`, at least 1."""
    return 1 << (max(count, 1).bit_length() - 1)


def waste(length: int, tile: int) -> float:
    """Lanes that run for each one that is needed along an axis."""
    return -(-length // tile) * tile / max(length, 1)


def tile_along(length: int, most: int, least: int = 32) -> int:
    """A tile of at most `most` elements for an axis: the largest of those that waste about as little as the best."""
    candidates = [power_above(min(length, most))]
    while candidates[-1] > least:
        candidates.append(candidates[-1] // 2)
    best = min(waste(length, tile) for tile in candidates)
    return next(tile for tile in candidates if waste(length, tile) <= best * TOLERATED_WASTE)


def columns_side_by_side(columns: int, bytes_each: int, scanned: int | None, target: GpuTarget) -> int:
    """Columns of one program: a cache line of them, or as few as fill a sector where few are scanned or reduced.

    Nothing cuts scans into parts, nor reductions behind `loop-split-reductions`.

    scanned: how many times so many columns are scanned or reduced, if nothing else is done with them
    """
    lanes = max(target.line_bytes // bytes_each, target.warp)
    if scanned is not None:
        fewest = target.sector_bytes // bytes_each
        lanes = max(min(lanes, power_below(columns * scanned // (2 * target.processors))), fewest)
    return tile_along(columns, lanes, 16)
