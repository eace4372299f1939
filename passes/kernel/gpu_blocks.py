"""Sizes of the tiles of GPU programs: powers of two, chosen by what they waste and how many programs they leave."""

from __future__ import annotations

from .targets import GpuTarget

#: elements of one program of an elementwise kernel
ELEMENTS = 1024
#: longest row, in elements, that one program keeps in registers
LONGEST_ROW = 16384
#: elements of a tile in a loop over a longer row: enough loads on their way to keep the memory busy
STEP = 8192
#: elements of a tile in a loop over columns
COLUMN_STEP = 4096
#: elements that one thread works on at a time
PER_THREAD = 16
#: elements that one thread works on at least: as many as one instruction loads, of 16 bits
LEAST_PER_THREAD = 8
#: bytes of rows that one thread has on their way at a time
BYTES_PER_THREAD = 64
#: edge of the square tile of a transpose, in bytes: a full cache line of the GPU
EDGE_BYTES = 128
_TOLERATED_WASTE = 1.1


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
    return next(tile for tile in candidates if waste(length, tile) <= best * _TOLERATED_WASTE)


def elements_per_thread(bytes_per_element: int, least: int = PER_THREAD, most: int = 2 * PER_THREAD) -> int:
    """Elements for one thread; `bytes_per_element` are read for each from memory."""
    return max(min(power_below(BYTES_PER_THREAD // max(bytes_per_element, 1)), most), least)


def warps_for(elements: int, lanes: int, most: int, per_thread: int = PER_THREAD) -> int:
    """Warps of a program that works on a tile of so many elements; `lanes` threads a warp, `most` warps at most."""
    return max(1, min(power_below(elements // (lanes * per_thread)), most))


def fill_up(warps: int, elements: int, programs: int, target: GpuTarget) -> int:
    """More warps for few programs, as long as all of them run at once and a thread has `LEAST_PER_THREAD` elements."""
    room = target.processors * target.threads
    while (
        warps < target.warps
        and elements >= 2 * warps * target.warp * LEAST_PER_THREAD
        and programs * 2 * warps * target.warp <= room
    ):
        warps *= 2
    return warps
