"""Targets as Triton is told of them; what it needs to know of a family of GPUs stands in its description.

Nothing else here or in `machines/` knows the families: another one is another description (`docs/targets.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import UserError
from ...machines import GpuTarget, TritonNeeds, target_named
from ..host.gpu import gpu


@dataclass(frozen=True)
class TritonTarget:
    """A compilation target.

    device:    torch's type of device
    needs:     what Triton needs to know of its family
    arch:      Triton's name of the architecture: 90, "gfx942"
    warp_size: threads of a warp
    """

    device: str
    needs: TritonNeeds
    arch: Any
    warp_size: int

    @property
    def backend(self) -> str:
        """Triton's backend."""
        return self.needs.backend

    @property
    def is_here(self) -> bool:
        """Whether this machine has a device of torch's type for it."""
        return gpu(self.device).is_available

    @property
    def options(self) -> Mapping[str, object]:
        """Options of Triton's compiler."""
        return self.needs.options


def triton_target(name: str) -> TritonTarget:
    """The target "cuda:90", "hip:gfx942". UserError for text that names none that Triton compiles for."""
    target = target_named(name)
    needs = target.family.triton
    if not isinstance(target, GpuTarget) or needs is None:
        raise UserError(f"Triton makes no kernels for the target {name!r}", 'write "cuda:90" or "hip:gfx942"')
    return TritonTarget(target.device, needs, needs.arch(target.arch), target.warp)
