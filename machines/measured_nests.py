"""What `machines/nests.py` describes, for the targets on which it was measured."""

from __future__ import annotations

from .nests import ATTENTION, PRODUCT, MeasuredNest, NestShape

_BIAS_RELU_RESIDUAL = ("add", "add", "relu")


def _product(
    rows: int, columns: int, depth: int, library: float, nest: float, tile: str, batch: int = 1, behind: bool = False
) -> MeasuredNest:
    sizes = batch, rows, columns, depth
    shape = NestShape(PRODUCT, "bf16", sizes, _BIAS_RELU_RESIDUAL if behind else ())
    return MeasuredNest(shape, library, nest, tuple(map(int, tile.split("x"))))


#: an H200, torch 2.11, Triton 3.6, 2026-11-30: the best tile of `benchmarks/loop_products.py --tune`, then it and the
#: library in one run
PRODUCTS_OF_HOPPER = (
    _product(8192, 768, 768, 16.9, 20.4, "128x128x64x8x4x0x1"),
    _product(8192, 3072, 768, 55.9, 59.8, "128x128x64x4x3x0x2"),
    _product(8192, 768, 3072, 51.1, 60.0, "128x128x64x8x4x0x1"),
    _product(512, 512, 64, 34.9, 39.4, "64x256x64x4x4", batch=192),
    _product(4096, 2304, 768, 24.0, 28.7, "128x128x64x4x3x0x2"),
    _product(4096, 768, 3072, 27.0, 32.6, "128x128x64x4x3x0x0x64x128x64"),
    _product(4096, 50257, 768, 511.7, 508.6, "128x256x64x8x3x0x1"),
    _product(4096, 2816, 1024, 32.0, 39.0, "128x128x64x4x3x0x2"),
    _product(4096, 1024, 2816, 31.9, 33.6, "128x128x64x4x3"),
    _product(4096, 256, 1024, 7.0, 8.4, "128x64x64x4x4"),
    _product(4096, 2048, 512, 16.3, 18.0, "128x128x64x4x3x0x2"),
    _product(4096, 512, 2048, 14.5, 17.6, "128x128x64x4x4"),
    _product(64, 1000, 2048, 6.1, 5.6, "64x32x128x4x4x4"),
    _product(12608, 2304, 768, 63.9, 70.1, "128x128x64x4x3x0x2"),
    _product(12608, 3072, 768, 84.8, 90.0, "128x256x64x8x3x0x1"),
    _product(200704, 384, 96, 58.0, 65.0, "128x128x32x4x3x0x2"),
    _product(3136, 768, 3072, 21.8, 29.1, "128x128x64x4x3x0x0x64x32x128"),
    _product(128, 1280, 960, 5.0, 4.4, "64x32x128x4x5"),
    _product(16, 5632, 2048, 10.3, 10.1, "16x32x128x4x5"),
    _product(16, 2048, 5632, 12.8, 10.8, "16x32x128x4x4x4"),
    _product(8192, 768, 768, 25.3, 27.8, "64x128x64x4x4", behind=True),
    _product(8192, 3072, 768, 90.6, 74.9, "128x128x64x4x3x0x2", behind=True),
    _product(8192, 768, 3072, 58.8, 65.1, "128x128x64x8x3", behind=True),
    _product(512, 512, 64, 106.9, 63.6, "64x64x64x4x6", batch=192, behind=True),
    _product(4096, 2304, 768, 35.6, 36.3, "128x128x64x4x3x0x2", behind=True),
    _product(4096, 768, 3072, 32.3, 35.6, "128x128x64x4x3x0x0x64x128x64", behind=True),
    _product(4096, 50257, 768, 938.6, 926.8, "64x128x64x4x4", behind=True),
    _product(4096, 2816, 1024, 47.6, 47.2, "128x128x64x4x3x0x2", behind=True),
    _product(4096, 1024, 2816, 38.3, 36.9, "128x128x64x8x3", behind=True),
    _product(4096, 256, 1024, 9.8, 9.7, "128x64x64x4x4", behind=True),
    _product(4096, 2048, 512, 27.0, 24.4, "128x128x64x4x3x0x2", behind=True),
    _product(4096, 512, 2048, 18.7, 19.6, "64x128x64x4x4", behind=True),
    _product(64, 1000, 2048, 7.7, 6.0, "64x32x128x4x4x4", behind=True),
    _product(12608, 2304, 768, 104.3, 88.3, "128x128x64x4x3x0x2", behind=True),
    _product(12608, 3072, 768, 139.1, 111.9, "128x128x64x4x3x0x2", behind=True),
    _product(200704, 384, 96, 165.5, 114.2, "128x128x32x4x3x0x2", behind=True),
    _product(3136, 768, 3072, 26.1, 33.1, "128x128x64x4x3x0x0x64x64x64", behind=True),
    _product(128, 1280, 960, 6.9, 5.3, "64x32x128x4x5", behind=True),
    _product(16, 5632, 2048, 11.9, 10.7, "16x32x128x2x5", behind=True),
    _product(16, 2048, 5632, 14.4, 11.2, "16x32x128x4x4x4", behind=True),
)


#: the same of `aten._scaled_mm` for 8-bit floats, with a scale of each side or of each row of it, with `use_fast_accum`
#: and without
def _scaled(rows: int, columns: int, depth: int, library: float, nest: float, tile: str, how: str) -> MeasuredNest:
    element = "f8E4M3FN fast" if "fast" in how else "f8E4M3FN"
    shape = NestShape(PRODUCT, element, (1, rows, columns, depth), ("rows",) if "rows" in how else ())
    return MeasuredNest(shape, library, nest, tuple(map(int, tile.split("x"))))


SCALED_OF_HOPPER = (
    _scaled(4096, 2816, 1024, 23.2, 26.1, "128x128x128x4x3x0x2", "rows fast"),
    _scaled(8192, 3072, 768, 37.8, 40.5, "128x256x128x8x3x0x1", "rows fast"),
    _scaled(8192, 768, 3072, 28.7, 36.1, "128x128x128x8x3", "rows fast"),
    _scaled(256, 4096, 4096, 14.4, 13.1, "64x64x128x4x5", "rows fast"),
    _scaled(64, 4096, 4096, 13.9, 9.1, "64x32x256x4x5", "rows fast"),
    _scaled(4096, 2816, 1024, 26.6, 31.7, "128x128x128x4x3x0x2", "rows"),
    _scaled(8192, 3072, 768, 43.0, 48.0, "128x128x128x4x3x0x2", "rows"),
    _scaled(8192, 768, 3072, 31.4, 49.8, "128x128x128x4x3x0x2", "rows"),
    _scaled(256, 4096, 4096, 14.8, 13.8, "64x64x128x4x5", "rows"),
    _scaled(64, 4096, 4096, 14.0, 11.6, "64x32x128x4x5", "rows"),
    _scaled(4096, 2816, 1024, 18.8, 25.9, "128x128x128x4x3x0x2", "fast"),
    _scaled(8192, 3072, 768, 35.5, 39.3, "128x256x128x8x3x0x1", "fast"),
    _scaled(8192, 768, 3072, 29.4, 39.6, "128x128x128x4x3x0x2", "fast"),
    _scaled(256, 4096, 4096, 11.8, 12.6, "64x64x128x4x5", "fast"),
    _scaled(64, 4096, 4096, 8.7, 8.7, "64x32x256x4x5", "fast"),
    _scaled(4096, 2816, 1024, 24.2, 30.8, "128x128x128x4x3x0x2", ""),
    _scaled(8192, 3072, 768, 38.7, 46.3, "128x128x128x4x3x0x2", ""),
    _scaled(8192, 768, 3072, 31.5, 48.5, "128x128x128x4x3x0x2", ""),
    _scaled(256, 4096, 4096, 12.0, 13.4, "64x64x128x4x5", ""),
    _scaled(64, 4096, 4096, 8.8, 11.1, "64x32x128x4x5", ""),
)


def _attention(
    steps: str, heads: int, length: int, width: int, library: float, nest: float, tile: str = ""
) -> MeasuredNest:
    shape = NestShape(ATTENTION, "bf16", (heads, length, length, width), tuple(steps.split()))
    return MeasuredNest(shape, library, nest, tuple(map(int, tile.split("x"))) if tile else ())


#: the same card and versions, `benchmarks/loop_attention.py --who library ours 64x64x4x3`, the better of both tiles;
#: the library is its kernel for masks, with the kernels that make the mask, or scores in memory where it has none. A
#: mask by places alone hid no step from the nest (every second key); others by places are causal
ATTENTION_OF_HOPPER = (
    _attention("_softmax call hidden:places", 192, 512, 64, 70.9, 44.6, "64x64x4x3"),
    _attention("_softmax call hidden:places", 128, 1024, 64, 154.0, 100.7, "64x64x4x3"),
    _attention("_softmax call hidden:places", 64, 2048, 64, 278.1, 188.7, "64x64x4x3"),
    _attention("_softmax call hidden:places", 64, 2048, 128, 409.7, 325.7, "64x64x4x3"),
    _attention("_softmax call hidden:places+vectors", 192, 512, 64, 71.1, 44.9, "64x64x4x3"),
    _attention("_softmax call hidden:places+vectors", 128, 1024, 64, 154.2, 91.2, "64x64x4x3"),
    _attention("_softmax call hidden:places+vectors", 64, 2048, 64, 281, 69),
    _attention("_softmax call hidden:places+vectors", 64, 2048, 128, 413.1, 229.6, "64x64x4x3"),
    _attention("_softmax call hidden:places+vectors", 64, 4096, 128, 1639, 256.1),
    _attention("_softmax call hidden:keys", 192, 512, 64, 61.6, 52.2, "64x64x4x3"),
    _attention("_softmax call hidden:keys", 128, 1024, 64, 137.6, 114.8, "64x64x4x3"),
    _attention("_softmax call hidden:keys", 64, 2048, 64, 252.9, 211.9, "64x64x4x3"),
    _attention("_softmax call hidden:keys", 64, 2048, 128, 346.9, 373.8, "64x64x4x3"),
    _attention("_softmax call:rows hidden:matrix", 192, 512, 64, 71.1, 55.8),
    _attention("_softmax call:rows hidden:matrix", 128, 1024, 64, 154.4, 128.5),
    _attention("_softmax call:rows hidden:matrix", 64, 2048, 64, 279.8, 239.0),
    _attention("_softmax call:rows hidden:matrix", 64, 2048, 128, 412.3, 392.3),
    _attention("_softmax added:places", 64, 2048, 64, 649.6, 344.4),
    _attention("_softmax added:places call:rows hidden:places", 192, 512, 64, 181.2, 42.7, "64x64x4x3"),
    _attention("_softmax added:places call:rows hidden:places", 128, 1024, 64, 440.9, 86.1, "64x64x4x3"),
    _attention("_softmax added:places call:rows hidden:places", 64, 2048, 64, 881.5, 122.6, "64x64x4x3"),
    _attention("_softmax added:places call:rows hidden:places", 64, 2048, 128, 1203, 222.0, "64x64x4x3"),
    _attention("_softmax added:places call:rows hidden:places", 64, 4096, 128, 4644, 754.3),
    _attention("_softmax added:matrix call:rows", 192, 512, 64, 172.7, 53.6, "64x64x4x3"),
    _attention("_softmax added:matrix call:rows", 128, 1024, 64, 433.0, 123.5),
    _attention("_softmax added:matrix call:rows", 64, 2048, 64, 877.7, 226.9),
    _attention("_softmax added:matrix call:rows", 64, 2048, 128, 1197, 373.1),
    _attention("_softmax added:matrix call:rows", 64, 4096, 128, 4615, 1352),
    _attention("_softmax added:table call:rows", 192, 512, 64, 178.2, 98.7, "64x64x4x3"),
    _attention("_softmax added:table call:rows", 128, 1024, 64, 441.2, 243.4, "64x64x4x3"),
    _attention("_softmax added:table call:rows", 64, 2048, 64, 884.1, 224.3, "64x64x4x3"),
    _attention("_softmax added:table call:rows", 64, 2048, 128, 1205, 1205),
    _attention("_softmax added:table call:rows", 64, 4096, 128, 4658, 1398),
    _attention("_softmax hidden:places tanh", 64, 2048, 64, 640.2, 185.2, "64x64x4x3"),
    _attention("_softmax hidden:places tanh", 64, 4096, 128, 2561, 1032),
    _attention("_softmax _softmax sub", 64, 2048, 64, 885.7, 308.4, "64x64x4x3"),
    _attention("_softmax _softmax sub", 64, 4096, 128, 3630, 1995),
    # forward with backward, `benchmarks/loop_attention.py --backward --who scores ours_flex inductile`, where the
    # library's way is a kernel with a mask, or scores in memory; the slowest of a kind: every second key is hidden, so
    # that no step is left out (a window took 209, a prefix 435), and at 128 a prefix
    _attention("_softmax call hidden:places training", 64, 2048, 64, 936, 725),
    _attention("_softmax call hidden:places training", 16, 1024, 64, 84, 60),
    _attention("_softmax call hidden:places training", 64, 2048, 128, 1605, 710),
    _attention("_softmax call hidden:places training", 64, 4096, 128, 6126, 2418),
    _attention("_softmax call hidden:places+vectors training", 64, 2048, 64, 939, 240),
    _attention("_softmax call hidden:places+vectors training", 64, 2048, 128, 1614, 387),
    _attention("_softmax call hidden:places+vectors training", 64, 4096, 128, 6124, 991),
    _attention("_softmax call hidden:keys training", 64, 2048, 64, 911, 860),
    _attention("_softmax hidden:matrix training", 64, 2048, 64, 1606, 1019),
    _attention("_softmax added:places training", 64, 2048, 64, 1748, 1384),
    _attention("_softmax added:matrix call:rows training", 64, 2048, 64, 2813, 880),
    _attention("_softmax added:matrix call:rows training", 16, 1024, 64, 266, 81),
    _attention("_softmax added:matrix call:rows training", 64, 2048, 128, 4182, 1415),
    _attention("_softmax added:matrix call:rows training", 64, 4096, 128, 15989, 5144),
    _attention("_softmax added:table call:rows training", 64, 2048, 64, 2821, 843),
    _attention("_softmax added:table call:rows training", 64, 4096, 128, 16008, 5088),
    _attention("_softmax _softmax sub training", 64, 2048, 64, 2533, 1522),
    _attention("_softmax _softmax sub training", 64, 4096, 128, 10231, 9230),
    _attention("_softmax added:places hidden:places training", 64, 2048, 64, 1641, 467),
    _attention("_softmax added:places hidden:places training", 64, 4096, 128, 6675, 2780),
    _attention("_softmax hidden:places tanh training", 64, 2048, 64, 1781, 740),
    _attention("_softmax hidden:places tanh training", 64, 4096, 128, 7716, 3824),
    # flex_attention, which stays a call else: beside scores in memory of what is written out
    _attention("_softmax training", 64, 2048, 64, 1531, 692),
    _attention("_softmax hidden:places training", 64, 2048, 64, 1566, 452),
    _attention("_softmax hidden:table training", 64, 2048, 64, 1809, 257),
    _attention("_softmax added:table training", 64, 2048, 64, 1695, 1268),
    # beside scores in memory, as flex_attention has them: times of the library of the day before
    _attention("_softmax", 64, 2048, 64, 583, 191.3),
    _attention("_softmax hidden:places", 64, 2048, 64, 580, 195.7),
    _attention("_softmax hidden:places+vectors", 64, 2048, 64, 741, 69),
    _attention("_softmax added:places hidden:places", 64, 2048, 64, 608, 160.9),
    _attention("_softmax added:matrix", 64, 2048, 64, 629, 226.9),
    # a prefix of which all steps were computed, before hidden ones were left out, in tiles of 128 rows; those of 64 are
    # as fast where everything is seen (1182, 1187), and faster under a causal mask (684, 768) and a window (152, 202)
    _attention("_softmax call hidden:places", 64, 4096, 128, 1630, 1404, "64x64x4x3"),
)

#: tiles that are candidates of a product on matrix units: rows, columns, depth, warps, stages, parts of the depth,
#: programs of a processor that take tiles in turns, and rows, columns and depth of the tiles behind whole waves
PRODUCT_TILES = (
    (128, 128, 64, 4, 3, 0, 2), (128, 256, 64, 8, 3, 0, 1), (128, 128, 64, 8, 4, 0, 1), (128, 128, 32, 4, 3, 0, 2),
    (128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 64, 64, 4, 4),
    (64, 128, 64, 4, 4), (64, 256, 64, 4, 4), (64, 128, 32, 4, 3), (128, 64, 32, 4, 3), (64, 64, 64, 4, 6),
    (64, 32, 128, 4, 5), (32, 32, 128, 4, 5), (16, 64, 128, 4, 6), (16, 32, 128, 4, 5), (16, 32, 256, 4, 4),
    (64, 32, 128, 4, 4, 4), (16, 32, 128, 4, 4, 4),
    (128, 128, 64, 4, 3, 0, 0, 64, 32, 128), (128, 128, 64, 4, 3, 0, 0, 64, 64, 64),
    (128, 128, 64, 4, 3, 0, 0, 64, 128, 64),
)  # fmt: skip
#: of attention: rows, step, warps and stages
ATTENTION_TILES = (
    (128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (64, 128, 4, 3), (128, 32, 4, 4),
    (256, 64, 8, 3),
)  # fmt: skip
#: of attention with its gradients, for the kernels of forward and of backward
TRAINING_TILES = ((64, 64, 4, 3), (128, 64, 8, 3), (64, 32, 4, 3), (64, 64, 4, 2), (64, 64, 8, 2))

NESTS_OF_HOPPER = (*PRODUCTS_OF_HOPPER, *SCALED_OF_HOPPER, *ATTENTION_OF_HOPPER)
