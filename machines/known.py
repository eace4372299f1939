"""The descriptions. A new machine is a new entry; what is measured on it says what was measured.

Figures without a comment are the makers'. Where an architecture comes in several models, the common one stands here.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from .family import CPP, CUDA, HIP, C
from .measured_nests import NESTS_OF_HOPPER
from .products import TF32, FewRows, PairPace, ProductRates, RowSums
from .target import CpuTarget, GpuTarget, Target

#: for any CPU: tiles of 64 bytes suit every instruction set, since the C++ compiler splits them for narrower ones
_CPP = CpuTarget(
    "cpp",
    CPP,
    "two cores of an AMD EPYC with AVX2",
    bandwidth=22,
    copied=22,  # a copy of float32 on both cores
    rates={32: 130},
    # an elementwise op of one instruction adds about a quarter byte's time to a kernel, exp six times that
    instruction_bytes=0.25,
    function_bytes=1.5,
    converts_float8=True,
    # milliseconds of products with a weight of 2048 rows of 1024 elements of 8 bits, the library behind a
    # dequantisation into memory, and nests; casts alone: float32, 1 row 4.1, 0.4; 4 3.4, 1.4; 8 28, 5.0; 16 26, 20;
    # bfloat16, 1 row 7.8, 4.0; 4 7.8, 14. With scales and zeros of groups: float32, 1 row 3.8, 0.7; 4 21, 1.8;
    # 8 20, 17; 16 23, 38; bfloat16, 1 row 7.4, 1.7; 4 5.7, 16
    dequantised_rows=MappingProxyType({8: (4, 4), 16: (1, 1), 32: (8, 4)}),
    # milliseconds of one row by a linear layer of bfloat16, oneDNN, the same with a packed weight, and nests, inner x
    # columns: 1024x1536 0.23, 0.20, 0.21; 2816x1024 0.43, 0.71, 0.34; 1024x32000 7.9, 5.9, 4.3; 4096x8192 7.3, 5.9,
    # 4.5; 1000x4001 0.62, 0.91, 0.50. Two rows by 1024x5632 1.6, 1.5, 1.5. float16 4096x8192 4.1, 4.1, 6.1: a
    # conversion takes longer
    row_sums=MappingProxyType({"bf16": RowSums(1, "one vector by 7 weights, one core of an EPYC with AVX-512")}),
)

#: the library's products and attention as measured on an H200 with torch 2.11 and CUDA 13.0
_PRODUCTS_OF_HOPPER = {
    # the slowest of what `benchmarks/products.py` gave for unaligned results, operands and depths
    16: ProductRates(
        {16: 690_000, 8: 235_000, 4: 240_000, 2: 120_000},
        "bfloat16 and float16: 8192x768x30528 in 0.55 ms, some elements fewer in 1.6 and 4.1; in turns 0.65 to 0.70",
    ),
    32: ProductRates(
        {16: 51_000, 8: 51_000, 4: 51_000},
        "float32 without TF32: 8192x768x30528 in 7.5 ms, aligned or not",
    ),
    TF32: ProductRates(
        {16: 340_000, 8: 125_000, 4: 125_000},
        "float32 with TF32: 4096x768 by 50264 columns in 0.85 ms, 50260 in 0.98, 50257 in 2.45",
    ),
}
#: sums over the rows of a weight, one vector, against the library on an H200 with torch 2.11, replays of a CUDA graph
#: over weights that no cache holds; microseconds of the library and of nests, depth x rows of the weight, bfloat16:
#:     2048x2048 6.1, 3.9    2048x256 5.5, 2.0    2048x5632 8.5, 7.3    5632x2048 11.5, 8.7     2048x32000 34.3, 31.0
#:     4096x4096 13.4, 9.8   4096x1024 7.8, 4.0   4096x11008 25.1, 22.2 11008x4096 27.8, 24.1   4096x32000 64.5, 58.9
#:     768x768 4.3, 2.2      768x3072 4.6, 3.3    3072x768 7.3, 3.1     8192x8192 34.2, 33.8    16384x64 6.9, 3.7
#:     2048x8 4.6, 1.4       768x2 3.1, 1.3       512x64 2.8, 1.4       768x50257 29.9, 32.4
#: and float32 without TF32:
#:     2048x2048 7.2, 6.0    2048x256 3.0, 2.2    2048x5632 15.9, 12.8  5632x2048 14.2, 13.7
#:     768x768 3.7, 2.2      768x3072 5.7, 3.9    3072x768 5.3, 3.9
#: the same for four vectors, 12.4, 8.2   8.2, 3.9   26.2, 17.6   31.0, 19.1   5.1, 3.0   6.8, 5.1   15.1, 5.3
#: Two vectors of bfloat16: 2048x2048 6.1, 4.4; 4096x4096 13.3, 11.2; 4096x32000 65.4, 62.4; but 2048x5632 8.5, 8.6 and
#: 2048x32000 34.8, 36.1; four 6.1, 5.8; 13.3, 21.5; 66.2, 148.
#: Attention of one query, 32 heads of 64, 4 of keys, 1024 keys: cuDNN 6.0, nests 9.9; so no `queries`.
_ROW_SUMS_OF_HOPPER = {
    "bf16": RowSums(1, "one vector by 19 weights", short=1024, most_short=16384, shared=16),
    "f16": RowSums(1, "one vector by 19 weights", short=1024, most_short=16384, shared=16),
    "f32": RowSums(4, "one and four vectors by 7 weights", short=1024, most_short=16384),
}
#: microseconds on an H200 with torch 2.11 and Triton 3.6, replays of a CUDA graph over weights that no cache holds, of
#: products of bfloat16 with weights of 8 bits, written by hand. 16 vectors on matrix units, 4096x4096 and 4096x11008,
#: tiles of 16 columns, 2 warps 9.0, 21.1; 32 columns, 4 warps 9.7, 17.9; a copy of half the depth each 7.3, 17.4. Sums
#: over rows, one vector 7.3, 16.3; two 9.1; four 13.0, 34.8; eight 28.5, 67.5. The library alone, which reads twice as
#: much, takes 12.7 and 25.3 for up to 16 vectors. Two numbers of 4 bits a byte, groups of 32 and 128 alike, one vector
#: 8.5, 19.3, two 10.8, four 17.0, 41.1; 16 on matrix units 42, 75. 2048x32000, 16 vectors: 64 columns 21.5, 32 24.1
_TILES_OF_BYTES = ((16, 64, 128, 4, 5), (16, 32, 256, 4, 4), (16, 16, 256, 2, 5))
#: the same by compiled kernels, and the library behind a cast into memory: int8 2048x4096, 4 rows 8.6, in 8 parts of
#: the depth 6.7, 15.2; 16384x4096, 16 rows 26.0, 89; 5632x2048, 32 rows 11.3, 16.4, 64 13.2, 17.8, 128 16.9, 17.5,
#: 256 35.7, 21.3, 512 35.2, 29.6. Two numbers of 4 bits a byte, groups of 128, halves joined by `cat`: 4096x4096, 4
#: rows 9.5, 22.0; 32768x4096, 4 rows 32.9, 167; 5632x2048, 64 rows 12.9, 15.7, 512 58.9, 26.3. Groups
#: of 32: 4096x4096, 4 rows 23.3, and 20.9 in memory in an earlier run; 32768x4096 74
#: and with parts of the depth where columns are few, 2048x5632: int8 64 rows 12.3, 20.6, 128 16.2, 23.5; 4 bits 4 rows
#: 8.0, 16.1, 32 10.5, 16.7, 64 14.2, 16.4
_ROWS_OF_BYTES = (
    (16, (16, 64, 128, 4, 5)), (16, (16, 32, 256, 4, 4)), (16, (16, 64, 128, 4, 5, 4)), (32, (32, 32, 128, 4, 5)),
    (64, (64, 64, 128, 4, 4)), (64, (64, 64, 128, 4, 4, 4)),
    (128, (128, 64, 128, 4, 4)), (128, (64, 64, 128, 4, 4, 4)),
)  # fmt: skip
_ROWS_OF_PACKED = (
    (16, (16, 64, 64, 4, 4)), (16, (16, 64, 64, 4, 4, 4)), (32, (32, 64, 64, 4, 4)), (32, (32, 64, 64, 4, 4, 4)),
    (64, (64, 64, 64, 4, 4)), (64, (64, 64, 64, 4, 4, 4)),
)  # fmt: skip
#: and of more rows, turned, brought by the copy engine, and in memory: int8 512 rows 2048x2048 17.3, 14.8; 4096x2048
#: 21.4, 23.2; 5632x2048 27.3, 29.9 (float8 30.8, 31.0); 11264x2048 51.6, 55.7; 14336x4096 102, 139; 2048x5632 in 4
#: parts of the depth 28.6, 29.9; 256 rows 2048x2048 13.1, 12.6, 5632x2048 21.7, 21.9, 2048x5632 21.5, 23.9, 14336x4096
#: 55.1, 92.1; 2048 rows 2048x2048 28.5, 32.2, 5632x2048 78.8, 81.0, 14336x4096 349, 371. Without the engine
#: 5632x2048 29.6 at 512. Small weights, not turned, and in memory: 192 rows 768x768 5.6, 7.9, 1024x1024 in 4 parts 6.4,
#: 8.5, 768x3072 10.0, 12.5, 2048x2048 in 2 parts 12.1, 11.6; 512 rows 6.4, 7.3; 7.9, 7.2; 16.3, 12.1
_MANY_OF_BYTES = (
    PairPace(64, 64, 128, 4, 4, 0, 0.66, 0.96, 2.6),
    PairPace(256, 64, 64, 4, 3, 2, 0.552, 0.72, 4.4),
    PairPace(128, 64, 64, 4, 4, 2, 0.394, 0.522, 4.7),
)
_DEQUANTISED_OF_HOPPER = {
    16: FewRows(
        16, 1, _TILES_OF_BYTES, "one to 2048 vectors by five weights", _ROWS_OF_BYTES, _ROWS_OF_PACKED, _MANY_OF_BYTES
    ),
}
#: bfloat16: 4 x 16 heads of 2048 x 64, without a mask, in 0.157 ms
_ATTENTION_OF_HOPPER = {16: 437_000}

#: those of Ampere and later
_OF_AMPERE = frozenset(("f16", "bf16", "tf32", "i8"))
_OF_HOPPER = _OF_AMPERE | {"f8E4M3FN", "f8E5M2"}

KNOWN: tuple[Target, ...] = (
    _CPP,
    # the same figures but for what an instruction set decides, half of whose registers are for accumulators
    replace(_CPP, name="cpp:avx512", registers=16, capability="avx512"),
    replace(_CPP, name="cpp:avx2", vector_bytes=32, capability="avx2", flags=("-mno-avx512f",)),
    replace(_CPP, name="cpp:sse", vector_bytes=16, capability="default", flags=("-mno-avx",)),
    # one thread of the same machine; nothing is known of what the C compiler makes of the loops
    replace(
        _CPP,
        name="c",
        family=C,
        model="one thread of any CPU",
        bandwidth=11,
        copied=0,
        rates={32: 65},
        cores=1,
        vector_bytes=0,
        intrinsics=(),
        row_sums=MappingProxyType({}),
    ),
    GpuTarget(
        "cuda:75",
        CUDA,
        "T4",
        bandwidth=320,
        rates={32: 8_100, 64: 254},
        processors=40,
        threads=1024,
        cache_bytes=4 << 20,
        shared_bytes=64 << 10,
        matrix_units=frozenset(("f16", "i8")),
    ),
    GpuTarget(
        "cuda:80",
        CUDA,
        "A100",
        bandwidth=2000,
        rates={32: 19_500, 64: 9_700},
        processors=108,
        shared_bytes=163 << 10,
        matrix_units=_OF_AMPERE,
    ),
    GpuTarget(
        "cuda:86",
        CUDA,
        "A40, RTX 3090",
        bandwidth=770,
        rates={32: 37_400, 64: 585},
        processors=84,
        threads=1536,
        cache_bytes=6 << 20,
        shared_bytes=99 << 10,
        matrix_units=_OF_AMPERE,
    ),
    GpuTarget(
        "cuda:89",
        CUDA,
        "RTX 4090",
        bandwidth=1000,
        rates={32: 82_600, 64: 1_290},
        processors=128,
        threads=1536,
        cache_bytes=72 << 20,
        shared_bytes=99 << 10,
        matrix_units=_OF_HOPPER,
        converts_float8=True,
    ),
    GpuTarget(
        "cuda:90",
        CUDA,
        "H100",
        bandwidth=3350,
        copied=3000,  # a copy of float32
        rates={32: 67_000, 64: 34_000},
        processors=132,
        cache_bytes=50 << 20,
        products=MappingProxyType(_PRODUCTS_OF_HOPPER),
        attention=MappingProxyType(_ATTENTION_OF_HOPPER),
        row_sums=MappingProxyType(_ROW_SUMS_OF_HOPPER),
        dequantised=MappingProxyType(_DEQUANTISED_OF_HOPPER),
        # 1.86 times the library's pace in 20 shapes; a layer of 2048, inner 5632, 512 rows: 116 us, with it 145
        integer_nests=True,
        nests=NESTS_OF_HOPPER,
        shared_bytes=227 << 10,
        matrix_units=_OF_HOPPER,
        overlaps=True,
        copies_boxes=True,
        loads_in_lanes=True,
        converts_float8=True,
    ),
    GpuTarget(
        "cuda:100",
        CUDA,
        "B200",
        bandwidth=8000,
        rates={32: 75_000, 64: 37_000},
        processors=148,
        cache_bytes=126 << 20,
        shared_bytes=227 << 10,
        matrix_units=_OF_HOPPER,
        overlaps=True,
        converts_float8=True,
    ),
    GpuTarget(
        "cuda:120",
        CUDA,
        "RTX 5090",
        bandwidth=1790,
        rates={32: 104_800, 64: 1_640},
        processors=170,
        threads=1536,
        cache_bytes=96 << 20,
        shared_bytes=99 << 10,
        matrix_units=_OF_HOPPER,
        overlaps=True,
        converts_float8=True,
    ),
    GpuTarget(
        "hip:gfx90a",
        HIP,
        "MI250X, one of its two dies",
        bandwidth=1600,
        rates={32: 23_900, 64: 23_900},
        warp=64,
        processors=104,
        warps=16,
        cache_bytes=8 << 20,
    ),
    GpuTarget(
        "hip:gfx942",
        HIP,
        "MI300X",
        bandwidth=5300,
        rates={32: 163_400, 64: 81_700},
        warp=64,
        processors=304,
        warps=16,
        cache_bytes=256 << 20,
    ),
    GpuTarget(
        "hip:gfx1100",
        HIP,
        "RX 7900 XTX",
        bandwidth=960,
        rates={32: 61_400, 64: 1_900},
        processors=96,
        cache_bytes=96 << 20,
    ),
)
