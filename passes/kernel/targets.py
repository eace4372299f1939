"""What the tiling passes know of the machines they schedule for: data, one descriptor a target.

A target is named `cpp`, or by a kind of GPU and an architecture: `cuda:90`, `hip:gfx942`. A new machine is a new line.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from ...errors import UserError

#: what a launch from a program takes of the host, and about what two kernels have between them on the GPU
LAUNCH_NANOSECONDS = 5000
#: bytes that one instruction of a GPU's thread loads or stores
VECTOR_BYTES = 16
#: most elements of sums that one program of a GPU keeps in registers
MOST_SUMS = 16384


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
    threads:       most threads that a processor runs at once
    shared_bytes:  memory that the threads of one program share
    registers:     32-bit registers of a processor
    bandwidth:     bytes that the memory moves in a nanosecond
    cache_bytes:   the cache that all processors share
    """

    name: str
    warp: int = 32
    processors: int = 108
    warps: int = 32
    threads: int = 2048
    shared_bytes: int = 160 << 10
    registers: int = 64 << 10
    bandwidth: int = 2000
    cache_bytes: int = 40 << 20

    @property
    def room(self) -> int:
        """Threads that run at once."""
        return self.processors * self.threads

    @property
    def kind(self) -> str:
        """What comes before the colon of the name: the maker of its compiler, `cuda`."""
        return self.name.partition(":")[0]

    @property
    def launch_bytes(self) -> int:
        """Bytes that the memory moves while a kernel is launched."""
        return self.bandwidth * LAUNCH_NANOSECONDS

    @property
    def arch(self) -> str:
        """What comes after the colon of the name, `90`."""
        return self.name.partition(":")[2]


Target = CpuTarget | GpuTarget

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        CpuTarget("cpp"),
        GpuTarget("cuda:75", processors=40, threads=1024, shared_bytes=64 << 10, bandwidth=320, cache_bytes=4 << 20),
        GpuTarget("cuda:80", processors=108, shared_bytes=164 << 10, bandwidth=2000),
        GpuTarget("cuda:86", processors=84, threads=1536, shared_bytes=100 << 10, bandwidth=770, cache_bytes=6 << 20),
        GpuTarget(
            "cuda:89", processors=128, threads=1536, shared_bytes=100 << 10, bandwidth=1000, cache_bytes=72 << 20
        ),
        GpuTarget("cuda:90", processors=132, shared_bytes=228 << 10, bandwidth=3350, cache_bytes=50 << 20),
        GpuTarget("cuda:100", processors=148, shared_bytes=228 << 10, bandwidth=8000, cache_bytes=126 << 20),
        GpuTarget(
            "cuda:120", processors=170, threads=1536, shared_bytes=100 << 10, bandwidth=1790, cache_bytes=96 << 20
        ),
        GpuTarget(
            "hip:gfx90a", warp=64, processors=104, warps=16, shared_bytes=64 << 10, bandwidth=1600, cache_bytes=8 << 20
        ),
        GpuTarget(
            "hip:gfx942",
            warp=64,
            processors=304,
            warps=16,
            shared_bytes=64 << 10,
            bandwidth=5300,
            cache_bytes=256 << 20,
        ),
        GpuTarget("hip:gfx1100", processors=96, shared_bytes=64 << 10, bandwidth=960, cache_bytes=96 << 20),
    )
}


def target_named(name: str) -> Target:
    """The descriptor of a target. UserError with the nearest name for a kind of machine that is not described.

    An architecture that is not described has the numbers of the described one of its kind that is most like it: whose
    name has the longest beginning in common, of several the closest before it: `cuda:103` is scheduled as `cuda:100`.
    """
    if name in TARGETS:
        return TARGETS[name]
    kind, colon, arch = name.partition(":")
    known = [target for target in TARGETS.values() if isinstance(target, GpuTarget) and target.kind == kind]
    if not colon or not arch.isalnum() or not known:
        close = difflib.get_close_matches(name, TARGETS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(TARGETS)}"
        raise UserError(f"unknown target {name!r}", hint)
    return replace(_most_like(arch, known), name=name)


def _most_like(arch: str, known: list[GpuTarget]) -> GpuTarget:
    def likeness(target: GpuTarget) -> tuple[int, tuple[int, str]]:
        common = max(k for k in range(len(arch) + 1) if target.arch.startswith(arch[:k]))
        return common, _order(target.arch) if _order(target.arch) <= _order(arch) else (0, "")

    return max(known, key=likeness)


def _order(arch: str) -> tuple[int, str]:
    """Sorts 90 before 100."""
    return len(arch), arch
