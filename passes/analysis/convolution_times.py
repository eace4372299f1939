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

    2 x 96 channels of 56 x 56 points, windows of 3 x 3, 5 x 5, 7 x 7   3.0, 2.1   3.4, 2.0   4.0, 6.9
    the same, bfloat16                                                  17.8, 4.5  34.2, 10.1
    the same, windows of 3 x 3 in steps of 2                            1.4, 0.9
    2 x 96 channels of 28 x 28 points, windows of 3 x 3, 5 x 5          0.7, 0.8   1.0, 2.0
    1 x 3 channels of 256 x 256 points, windows of 3 x 3, 5 x 5         1.8, 1.4   1.9, 3.7
    2 x 64 channels of 56 x 56 points in 32 groups, windows of 3 x 3    5.1, 1.7
    2 x 32 channels of 56 x 56 points, windows of 3 x 3, float64        3.8, 0.8
"""

from __future__ import annotations

from ...records import dataclass


@dataclass(frozen=True)
class WindowSizes:
    """What decides: bits of an element, dimensions that the window moves along, channels of a group, elements of the
    window in one channel, points of a row, and their distance in the source."""

    bits: int
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
#: most elements of a window of an image of float32, and of other elements, and its shortest row
MOST_OF_IMAGE, MOST_OF_IMAGE_OTHERWISE, LEAST_ROW_OF_IMAGE = 9, 25, 32
#: shortest row of points: shorter ones leave lanes unused
LEAST_ROW = 16


def is_faster_as_nest(sizes: WindowSizes) -> bool:
    """Whether nobody loses by a nest."""
    return (
        (sizes.dims == 1 or _is_small_image(sizes))
        and sizes.channels <= MOST_CHANNELS
        and sizes.channels * sizes.elements <= MOST_PRODUCTS
        and sizes.stride <= MOST_STRIDE
        and sizes.row >= LEAST_ROW
    )


def _is_small_image(sizes: WindowSizes) -> bool:
    """Whether windows of an image have few elements: masks of rows and columns cost what wide windows save."""
    most = MOST_OF_IMAGE if sizes.bits == 32 else MOST_OF_IMAGE_OTHERWISE
    return sizes.dims == 2 and sizes.elements <= most and sizes.row >= LEAST_ROW_OF_IMAGE
