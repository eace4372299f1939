"""Whether a grouped convolution on the CPU is faster as a nest than as ATen's call: measured limits as data.

Milliseconds of a processor, ATen's call and the nest, on one core of an AMD EPYC with AVX2, torch 2.14; 4 x 256
channels of 2,048 points, in 256 groups unless said otherwise:

    windows of 1, 3, 7, 31, 63      10.5, 3.0   8.4, 3.0   7.5, 2.9   62.8, 6.9   118, 15.5
    the same, float64               -           23.0, 4.5  31.5, 5.3  98.4, 12.6
    the same, bfloat16              -           21.7, 2.0  49.3, 3.1  317, 11.0
    the same, float16               -           31.1, 4.4  43.1, 6.3  297, 21.7
    windows of 7, rows of 513, 64, 32, 16, 8    2.1, 1.2   0.27, 0.13   0.26, 0.14   0.25, 0.17   0.25, 0.19
    windows of 7, steps of 2, 3, 4  4.5, 2.7    4.8, 6.8   4.6, 6.3
    windows of 3 and 7, 4 channels a group      12.0, 4.3   18.0, 5.4
    windows of 3 and 7, 8 channels a group      9.2, 6.5    12.7, 13.4
    windows of 3 and 7, 16 channels a group     10.7, 23.0  13.7, 262
    1 x 8 channels of 64 points, windows of 3   0.16, 0.13
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WindowSizes:
    """What decides: dimensions that the window moves along, channels of a group, its elements in one channel, the
    points of a row, and their distance in the source."""

    dims: int
    channels: int
    elements: int
    row: int
    stride: int


#: most products that a point sums: they are written out, one after the other
MOST_PRODUCTS = 64
MOST_CHANNELS = 4
#: largest step of the window along a row: lanes load in pieces what lies further apart
MOST_STRIDE = 2
#: shortest row of points: shorter ones leave lanes unused
LEAST_ROW = 16


def is_faster_as_nest(sizes: WindowSizes) -> bool:
    """Whether nobody loses by a nest."""
    return (
        sizes.dims == 1
        and sizes.channels <= MOST_CHANNELS
        and sizes.channels * sizes.elements <= MOST_PRODUCTS
        and sizes.stride <= MOST_STRIDE
        and sizes.row >= LEAST_ROW
    )
