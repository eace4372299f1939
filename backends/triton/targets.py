"""Targets as Triton is told of them; what it needs to know of a family of GPUs stands in its description.

Nothing else here or in `machines/` knows the families: another one is another description (`docs/targets.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ...errors import UserError
from ...machines import GpuTarget, TritonNeeds, target_named
from ...records import dataclass
from ..host.gpu import gpu


@dataclass(frozen=True)
class TritonTarget:
    """A compilation target.

    name:      "cuda:90", "hip:gfx942"
    device:    torch's type of device
    needs:     what Triton needs to know of its family
    arch:      Triton's name of the architecture: 90, "gfx942"
    warp_size: threads of a warp
    """

    name: str
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
        """Whether this machine has a device of this architecture."""
        return self.arch in _architectures_here(self.device, self.needs)

    def is_on(self, index: int) -> bool:
        """Whether a device of this machine, by its index, is of this architecture."""
        text = self.needs.arch_of(gpu(self.device).module.get_device_properties(index))
        return text is not None and self.needs.arch(text) == self.arch

    @property
    def options(self) -> Mapping[str, object]:
        """Options of Triton's compiler."""
        return self.needs.options


@cache
def _architectures_here(device: str, needs: TritonNeeds) -> frozenset[Any]:
    """Triton's names of the architectures of this machine's devices of a type, as far as they are of the family."""
    kind = gpu(device)
    if not kind.is_available:
        return frozenset()
    texts = (needs.arch_of(kind.module.get_device_properties(k)) for k in range(kind.module.device_count()))
    return frozenset(needs.arch(text) for text in texts if text is not None)


def triton_target(name: str) -> TritonTarget:
    """The target "cuda:90", "hip:gfx942". UserError for text that names none that Triton compiles for."""
    target = target_named(name)
    needs = target.family.triton
    if not isinstance(target, GpuTarget) or needs is None:
        raise UserError(f"Triton makes no kernels for the target {name!r}", 'write "cuda:90" or "hip:gfx942"')
    return TritonTarget(name, target.device, needs, needs.arch(target.arch), target.warp)
