"""GPUs that Triton compiles for: how Triton names them and which of its options we set."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import UserError


@dataclass(frozen=True)
class TritonTarget:
    """A compilation target.

    backend:   Triton's backend, "cuda" or "hip"
    arch:      compute capability (90) or architecture ("gfx942")
    warp_size: threads of a warp
    options:   options of Triton's compiler. No fused multiply-add across the program's operations, and no flushing of
               denormal numbers to zero in math functions: both change results
    """

    backend: str
    arch: int | str
    warp_size: int
    options: dict[str, object] = field(default_factory=dict)


_OPTIONS: dict[str, dict[str, object]] = {
    "cuda": {"enable_fp_fusion": False, "enable_reflect_ftz": False},
    "hip": {"enable_fp_fusion": False},
}
#: architectures with warps of 64 threads; other AMD GPUs have 32
_WIDE_WARPS = ("gfx9",)


def target_named(name: str) -> TritonTarget:
    """The target "cuda:90", "hip:gfx942". UserError for text that names none."""
    backend, _, arch = name.partition(":")
    if backend == "cuda" and arch.isdigit():
        return TritonTarget(backend, int(arch), 32, _OPTIONS[backend])
    if backend == "hip" and arch.startswith("gfx") and arch.isalnum():
        return TritonTarget(backend, arch, 64 if arch.startswith(_WIDE_WARPS) else 32, _OPTIONS[backend])
    raise UserError(f"unknown Triton target {name!r}", 'write "cuda:90" or "hip:gfx942"')
