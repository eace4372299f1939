"""How fast matrices are multiplied on a target, by a library or as nests: the form of what was measured.

`known.py` has the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..records import dataclass

LAUNCH = 4000.0
"""Nanoseconds between two kernels of a library, with the call that starts them; on an H200, torch 2.11."""


TF32 = 19
"""Bits of float32 that products in TF32 read; their rates stand under this number."""


@dataclass(frozen=True)
class ProductRates:
    """Operations a nanosecond of products of one element type, two for each multiplication.

    by_alignment: bytes that all rows of the three matrices begin at multiples of -> the rate
    source:       where the numbers come from
    """

    by_alignment: Mapping[int, float]
    source: str


@dataclass(frozen=True)
class RowSums:
    """Products of one element type that are faster as nests than by the library: sums over rows of a matrix.

    A row of the matrix, elements side by side, is multiplied with each of a few vectors and summed, so that the matrix
    is read once.

    vectors:    how many there are at most
    source:     where the numbers come from
    queries:    how many queries fused attention has at most that is computed so; 0: that was not measured
    short:      rows of fewer elements are short
    most_short: how many of those a matrix has at most
    shared:     how many queries fused attention has at most in all heads that share keys, two at least, where matrix
                units compute it; 0: that was not measured
    tile:       of that: rows, keys a step, warps, stages
    """

    vectors: int
    source: str
    queries: int = 0
    short: int = 0
    most_short: int = 0
    shared: int = 0
    tile: tuple[int, int, int, int] = (16, 256, 4, 1)


@dataclass(frozen=True)
class PairPace:
    """A tile of which a processor computes two at once, so that one is multiplied while the other is made.

    rows, columns, depth, warps, stages, resident: of the tile, which is turned if it names how many are resident
    alone: microseconds of a step of the depth of a tile that has a processor for itself
    both:  of a step of each of two tiles
    fill:  what tiles take beside their steps
    """

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    resident: int
    alone: float
    both: float
    fill: float

    def tile(self, parts: int) -> tuple[int, ...]:
        """Its numbers, for so many parts of the depth."""
        whole = (self.rows, self.columns, self.depth, self.warps, self.stages)
        if self.resident:
            return (*whole, parts, self.resident, 0, 0, 0, 1)
        return whole if parts == 1 else (*whole, parts)

    def time(self, tiles: int, depth: int) -> float:
        """Microseconds of so many tiles of the busiest processor."""
        pairs, rest = divmod(tiles, 2)
        steps = depth / self.depth
        return pairs * (steps * self.both + self.fill) + rest * (steps * self.alone + self.fill)


@dataclass(frozen=True)
class FewRows:
    """Products of few rows with a matrix that is made of less memory in each call, which are faster as nests.

    The library reads a matrix that was made in memory, at the speed of memory twice.

    units:  most rows of integers on matrix units, in one of `tiles`
    sums:   most rows as sums over rows of the matrix, where it is made of packed numbers, or with scales of groups
    tiles:  of integers on matrix units: rows, columns, depth, warps and stages
    source: where the numbers come from
    casts:  most rows and such a tile, perhaps with parts of the depth, where a cast, and one scale a row at most, make
            the matrix of numbers; fewer rows first, and of several for as many rows the first that fills the processors
    packed: the same where it is made of packed numbers, or with scales of groups, which decide the depth
    many:   tiles of any number of rows where a cast makes the matrix, and how long they take; those that are turned
            read it from registers
    """

    units: int
    sums: int
    tiles: tuple[tuple[int, int, int, int, int], ...]
    source: str
    casts: tuple[tuple[int, tuple[int, ...]], ...] = ()
    packed: tuple[tuple[int, tuple[int, ...]], ...] = ()
    many: tuple[PairPace, ...] = ()

    def fastest(
        self, sizes: tuple[int, int, int], processors: int, copied: float
    ) -> tuple[float, tuple[int, ...]] | None:
        """Microseconds of the fastest of `many` tiles for `sizes`, rows, depth and columns, and its numbers.

        copied: bytes that a copy moves in a nanosecond, as do the sums of parts of the depth, and what adds them up
        """
        rows, depth, columns = sizes
        found: list[tuple[float, tuple[int, ...]]] = []
        for pace in self.many:
            tiles = -(-rows // pace.rows) * -(-columns // pace.columns)
            for parts in _PARTS:
                if depth % (parts * pace.depth) or (parts > 1 and depth // parts < _LEAST_PART):
                    continue
                time = pace.time(-(-tiles * parts // processors), depth // parts)
                time += 8e-3 * parts * rows * columns / copied if parts > 1 else 0.0
                found.append((time, pace.tile(parts)))
        return min(found, default=None)


_PARTS, _LEAST_PART = (1, 2, 3, 4), 512
"""Parts of a depth that are thought of, and how many elements one has at least."""
_FEW = 16


def fills(tile: Sequence[int], columns: int, processors: int) -> bool:
    """Whether most processors have two programs of few rows, the others one, or two of three have one of more rows."""
    if tile[0] <= _FEW:
        return 2 * columns >= 3 * processors * tile[1]
    return 3 * columns >= 2 * processors * tile[1]


def filling(tiles: Sequence[tuple[int, ...]], columns: int, processors: int) -> tuple[int, ...]:
    """The first tile that fills the processors, else the last one."""
    return next((tile for tile in tiles if fills(tile, columns, processors)), tiles[-1])
