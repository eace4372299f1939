"""Numbers of schedules that were tuned on a machine: what a description says of the tiles of its programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from ..records import dataclass


@dataclass(frozen=True)
class Blocks:
    """The numbers that a schedule for a GPU is made of, all powers of two.

    Those that stand here were tuned on an H200 with the patterns and kinds of `benchmarks/RESULTS.md`; a description
    of another GPU says its own where somebody has measured them.

    elements:         elements of one program of an elementwise kernel
    longest_row:      longest row, in elements, that one program keeps in registers
    step:             elements of a tile in a loop over a longer row: enough loads on their way to keep the memory busy
    least_step:       and where there are so many programs that smaller ones keep it busy
    unroll:           steps of loops over longer rows that are written out; 0: by rule
    column_step:      elements of a tile in a loop over columns, at most
    least_column_step: and at least, where there are programs enough
    per_thread:       elements that one thread works on at a time
    least_per_thread: and at least: as many as one instruction loads, of 16 bits
    bytes_per_thread: bytes of rows that one thread has on their way at a time
    program_bytes:    bytes of rows of a matrix that one program multiplies with a vector
    edge_bytes:       edge of the tile of a transpose, unless an axis is shorter: a full cache line of the GPU
    warps:            warps of every program; 0: as many as suit its tile
    """

    elements: int = 1024
    longest_row: int = 16384
    step: int = 8192
    least_step: int = 2048
    unroll: int = 0
    column_step: int = 4096
    least_column_step: int = 256
    per_thread: int = 16
    least_per_thread: int = 8
    bytes_per_thread: int = 64
    program_bytes: int = 8192
    edge_bytes: int = 128
    warps: int = 0


#: rows, elements a step, warps and stages of a program, by the columns and the depth that it is for, at most
WidthTiles = Mapping[int, tuple[int, int, int, int]]
_WEIGHED = MappingProxyType({64: (128, 64, 4, 3), 128: (128, 64, 8, 3), 256: (64, 64, 8, 2)})
_MASKED = MappingProxyType({**_WEIGHED, 128: (64, 64, 4, 3)})
_CHAINED = MappingProxyType({64: (64, 64, 4, 3), 128: (64, 64, 4, 2), 256: (64, 32, 8, 1)})
_SINGLE = MappingProxyType({**_CHAINED, 128: (128, 64, 8, 3)})


@dataclass(frozen=True)
class ChainTiles:
    """Tiles of sums of products whose factors are made of products, as attention is, where nobody chose others.

    Those that stand here were tuned on an H200 with `benchmarks/loop_attention.py`, heads of 64 and 128.

    weighed:   of sums that a softmax weighs
    masked:    the same where some scores are hidden: smaller tiles have more steps that are left out; and where lanes
               load element by element: while one program waits, another one works
    chained:   of other such sums, as those of gradients
    single:    the same where one product is summed, so that fewer registers are taken, and rows are many
    many_rows: rows for each processor that are many: two programs of the larger tile
    """

    weighed: WidthTiles = field(default_factory=lambda: _WEIGHED, repr=False)
    masked: WidthTiles = field(default_factory=lambda: _MASKED, repr=False)
    chained: WidthTiles = field(default_factory=lambda: _CHAINED, repr=False)
    single: WidthTiles = field(default_factory=lambda: _SINGLE, repr=False)
    many_rows: int = 256

    @staticmethod
    def of(tiles: WidthTiles, longest: int) -> tuple[int, int, int, int]:
        """The tile for so many columns, or so much depth."""
        return next((tile for width, tile in tiles.items() if longest <= width), [*tiles.values()][-1])
