"""Numbers of schedules that were tuned on a machine: what a description says of the tiles of its programs."""

from __future__ import annotations

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
