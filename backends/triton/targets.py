"""GPUs that Triton compiles for: how torch and Triton name them and which of its options we set.

A kind of GPU is one `GpuKind` here; the machines of a kind, with the numbers that schedules depend on, are lines of
`passes/kernel/targets.py`. Nothing else knows the kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...errors import UserError
from ...passes.kernel.targets import GpuTarget
from ...passes.kernel.targets import target_named as machine_named
from ..host.gpu import gpu


@dataclass(frozen=True)
class GpuKind:
    """A kind of GPU, `cuda` in the target `cuda:90`.

    backend:  Triton's backend
    device:   torch's device type, which two kinds may share
    arch:     Triton's architecture from the text behind the colon; ValueError when it is none
    arch_of:  that text from the properties of a device; None for a device of another kind
    launcher: the word in the names of torch's launchers for it, "Cuda" in `torch._C._StaticCudaLauncher`, if it has any
    options:  options of Triton's compiler. No fused multiply-add across the program's operations, and no flushing of
              denormal numbers to zero in math functions: both change results
    """

    backend: str
    device: str
    arch: Callable[[str], Any]
    arch_of: Callable[[Any], str | None]
    launcher: str | None = None
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class TritonTarget:
    """A compilation target: a kind, Triton's name of the architecture (90, "gfx942"), and the threads of a warp."""

    kind: GpuKind
    arch: Any
    warp_size: int

    @property
    def backend(self) -> str:
        """Triton's backend."""
        return self.kind.backend

    @property
    def is_here(self) -> bool:
        """Whether this machine has a device of torch's type for it."""
        return gpu(self.kind.device).is_available

    @property
    def options(self) -> dict[str, object]:
        """Options of Triton's compiler."""
        return self.kind.options


def _capability(properties: Any) -> str | None:
    return None if _gcn(properties) else f"{10 * properties.major + properties.minor}"


def _gcn(properties: Any) -> str | None:
    name = getattr(properties, "gcnArchName", "").partition(":")[0]
    return name if name.startswith("gfx") else None


def _gfx(text: str) -> str:
    if not text.startswith("gfx"):
        raise ValueError(text)
    return text


#: a kind of GPU by the first part of its targets' names
KINDS: dict[str, GpuKind] = {
    "cuda": GpuKind("cuda", "cuda", int, _capability, "Cuda", {"enable_fp_fusion": False, "enable_reflect_ftz": False}),
    "hip": GpuKind("hip", "cuda", _gfx, _gcn, "Cuda", {"enable_fp_fusion": False}),
}


def target_named(name: str) -> TritonTarget:
    """The target "cuda:90", "hip:gfx942". UserError for text that names none."""
    kind, _, arch = name.partition(":")
    try:
        machine = machine_named(name)
        if not isinstance(machine, GpuTarget):
            raise ValueError(name)
        return TritonTarget(KINDS[kind], KINDS[kind].arch(arch), machine.warp)
    except (KeyError, ValueError, UserError) as error:
        raise UserError(f"unknown Triton target {name!r}", 'write "cuda:90" or "hip:gfx942"') from error
