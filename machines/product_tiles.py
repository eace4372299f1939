"""How long tiles of products take on matrix units: the fit of what `benchmarks/loop_products.py --tune` gave.

The numbers are least squares of relative errors over 16 products of bfloat16 with 12,608 to 64 rows, alone and with a
residual behind them, on an H200 with torch 2.11 and Triton 3.6, 2026-11-30. Tiles of 32 and 16 rows were measured for
few products, and set by hand. The tile of the least time takes 1.02 times what the best one takes, geometric mean.
"""

from __future__ import annotations

import math

from ..records import dataclass

#: a processor that has one program more than others is busy longer, but shares memory with fewer meanwhile: so much of
#: the time goes by the programs of the busiest one, the rest by the mean
BUSIEST = 0.7


@dataclass(frozen=True)
class TilePace:
    """One tile and its times, in microseconds.

    rows, columns, depth, warps, stages, resident: as of `ProductTile`
    step:   a step of the depth of one program
    fill:   what a program takes beside its steps
    behind: what it takes to read a matrix as large as the result behind the sums
    start:  what a launch takes beside its programs
    """

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    resident: int
    step: float
    fill: float
    behind: float
    start: float

    def time(self, programs: int, processors: int, depth: int, reads_behind: bool) -> float:
        """Microseconds of so many programs. A depth of less than a step takes a part of one."""
        mean = max(programs / processors, 1)
        turns = BUSIEST * math.ceil(mean) + (1 - BUSIEST) * mean
        return self.start + turns * self.program(depth, reads_behind)

    def program(self, depth: int, reads_behind: bool) -> float:
        """Microseconds of one program beside a launch of so many others that all processors are busy."""
        steps = math.ceil(depth / self.depth) if depth > self.depth else depth / self.depth
        return steps * self.step + self.fill + reads_behind * self.behind


@dataclass(frozen=True)
class Waves:
    """Rows of tiles that are whole waves, one tile or more for each processor, and what is behind them.

    first: the first row behind them
    count: of the rows behind them
    whole: waves
    """

    first: int
    count: int
    whole: int

    @staticmethod
    def of(rows: int, columns: int, tile: tuple[int, int], processors: int) -> Waves | None:
        """Those of a product in tiles of so many rows and columns; None where nothing is behind them, or all is."""
        across = -(-columns // tile[1])
        tiles = -(-rows // tile[0]) * across
        whole = tiles // processors
        high = whole * processors // across
        if not high or high * across == tiles:
            return None
        return Waves(high * tile[0], rows - high * tile[0], whole)


TILES = (
    TilePace(128, 256, 64, 8, 3, 1, 0.652, 2.23, 3.70, 3.2),
    TilePace(128, 256, 64, 8, 3, 0, 0.691, 3.23, 3.77, 0.0),
    TilePace(128, 128, 64, 4, 3, 2, 0.338, 0.27, 1.51, 7.8),
    TilePace(128, 128, 32, 4, 3, 2, 0.170, 1.12, 1.33, 7.8),
    TilePace(128, 128, 64, 8, 4, 1, 0.394, 0.31, 2.32, 4.8),
    TilePace(128, 128, 64, 8, 3, 0, 0.332, 1.52, 1.58, 4.2),
    TilePace(128, 128, 64, 4, 4, 0, 0.393, 2.05, 2.26, 1.0),
    TilePace(128, 64, 64, 4, 4, 0, 0.238, 0.93, 0.73, 3.0),
    TilePace(64, 128, 64, 4, 4, 0, 0.235, 0.56, 0.84, 3.7),
    TilePace(64, 128, 32, 4, 3, 0, 0.120, 0.65, 0.75, 3.6),
    TilePace(128, 64, 32, 4, 3, 0, 0.120, 0.75, 0.50, 3.6),
    TilePace(64, 64, 64, 4, 6, 0, 0.178, 0.85, 0.55, 2.0),
    TilePace(64, 32, 128, 4, 5, 0, 0.240, 0.90, 1.00, 2.0),
    TilePace(32, 32, 128, 4, 5, 0, 0.270, 1.00, 1.00, 2.0),
    TilePace(32, 16, 256, 4, 4, 0, 0.500, 1.50, 1.00, 2.0),
    TilePace(16, 32, 256, 4, 4, 0, 0.500, 1.00, 0.50, 2.0),
    TilePace(16, 16, 128, 4, 4, 0, 0.270, 1.00, 0.50, 2.0),
)
"""Candidates, those with the most rows and columns first."""

BEHIND = tuple(
    pace for pace in TILES if (pace.rows, pace.columns) in ((64, 128), (64, 64), (64, 32)) and pace.depth >= 64
)
"""Candidates for what is behind whole waves of larger tiles. An H200 takes 29.3 us with them for 3136x768x3072, 33.8
without, 28.3 and 34.6 by these paces; 32.4, 34.6 for 4096x768x3072, 33.5 and 36.3 by paces."""


def best_behind(
    pace: TilePace, rows: int, columns: int, depth: int, processors: int, reads_behind: bool
) -> tuple[float, TilePace] | None:
    """The time of a product with smaller tiles behind whole waves, and which, at most one for each processor."""
    waves = Waves.of(rows, columns, (pace.rows, pace.columns), processors)
    if waves is None or pace.resident:
        return None
    whole = pace.start + waves.whole * pace.program(depth, reads_behind)
    found = [each for each in BEHIND if -(-waves.count // each.rows) * -(-columns // each.columns) <= processors]
    best = min(found, key=lambda each: each.program(depth, reads_behind), default=None)
    return None if best is None else (whole + best.program(depth, reads_behind), best)
