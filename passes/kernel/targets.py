"""What the tiling passes know of the machines they schedule for: data, one descriptor a target.

A target is named `cpp`, `cuda:90`, `hip:gfx942`. A new machine is a new line.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from ...errors import UserError


@dataclass(frozen=True)
class CpuTarget:
    """A multicore CPU with SIMD units.

    vector_bytes:  width of a SIMD register
    registers:     SIMD registers that accumulators may take
    cores:         threads that a schedule should be able to feed
    l1_bytes, l2_bytes: private data caches of a core
    line_bytes:    a cache line
    grain:         work, in the units of `cost.py`, below which a thread is not worth waking
    """

    name: str
    vector_bytes: int = 64
    registers: int = 8
    cores: int = 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    line_bytes: int = 64
    grain: int = 1 << 17


@dataclass(frozen=True)
class GpuTarget:
    """A GPU that Triton compiles for.

    warp:          lanes that run in step
    processors:    streaming multiprocessors or compute units of a common model
    warps:         most warps of one program
    shared_bytes:  memory that the threads of one program share
    registers:     32-bit registers of a processor
    """

    name: str
    warp: int = 32
    processors: int = 108
    warps: int = 32
    shared_bytes: int = 160 << 10
    registers: int = 64 << 10


Target = CpuTarget | GpuTarget

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        CpuTarget("cpp"),
        GpuTarget("cuda:80", processors=108, shared_bytes=164 << 10),
        GpuTarget("cuda:89", processors=128, shared_bytes=100 << 10),
        GpuTarget("cuda:90", processors=132, shared_bytes=228 << 10),
        GpuTarget("cuda:100", processors=148, shared_bytes=228 << 10),
        GpuTarget("hip:gfx90a", warp=64, processors=104, warps=16, shared_bytes=64 << 10),
        GpuTarget("hip:gfx942", warp=64, processors=304, warps=16, shared_bytes=64 << 10),
    )
}


def target_named(name: str) -> Target:
    """The descriptor of a target; UserError with the nearest name when there is none."""
    if name not in TARGETS:
        close = difflib.get_close_matches(name, TARGETS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(TARGETS)}"
        raise UserError(f"unknown target {name!r}", hint)
    return TARGETS[name]
