"""The descriptions. A new machine is a new entry; what is measured on it says what was measured.

Figures without a comment are the makers'. Where an architecture comes in several models, the common one stands here.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from .family import CPP, CUDA, HIP, C
from .products import ProductRates
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
}
#: bfloat16: 4 x 16 heads of 2048 x 64, without a mask, in 0.157 ms
_ATTENTION_OF_HOPPER = {16: 437_000}

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
    ),
    GpuTarget(
        "cuda:80",
        CUDA,
        "A100",
        bandwidth=2000,
        rates={32: 19_500, 64: 9_700},
        processors=108,
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
    ),
    GpuTarget(
        "cuda:100",
        CUDA,
        "B200",
        bandwidth=8000,
        rates={32: 75_000, 64: 37_000},
        processors=148,
        cache_bytes=126 << 20,
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
