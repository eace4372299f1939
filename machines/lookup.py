"""A target by its name, or that of a device. Other packages add theirs by the entry point group `inductile.targets`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from .. import extensions
from ..errors import UnsupportedError, UserError
from .family import Family, Library
from .known import KNOWN
from .target import CpuTarget, GpuTarget, Target

GROUP = "inductile.targets"

#: our own descriptions by name, the likely one of each type of device first where there are several
TARGETS: dict[str, Target] = {target.name: target for target in KNOWN}

#: type of device -> what stands for one that is not in the machine, as when IR of another machine is compiled
_USUAL = {"cpu": "cpp", "cuda": "cuda:90"}


def _others() -> Iterator[Target]:
    """Those of other packages: each entry point is a target, several, or a function that returns them."""
    for name, load in extensions.loaders(GROUP).items():
        found = load()
        made: Any = found() if callable(found) else found
        for target in (made,) if isinstance(made, Target) else tuple(made):
            if not isinstance(target, Target):
                raise UserError(
                    f"{GROUP} {name!r} gives {target!r}, which is no target", "make it a GpuTarget or a CpuTarget"
                )
            yield target


def _known() -> dict[str, Target]:
    return {**{target.name: target for target in _others()}, **TARGETS}


def target_named(name: str) -> Target:
    """The description of a target. UserError with the nearest name for a kind of machine that is not described.

    An architecture that is not described has the numbers of the described one of its family that is most like it, but
    for what was measured there: whose name has the longest beginning in common, of several the closest before it:
    `cuda:103` is scheduled as `cuda:100`.
    """
    if (found := TARGETS.get(name)) is not None:
        return found
    known = _known()
    if name in known:
        return known[name]
    family, colon, arch = name.partition(":")
    alike = [each for each in known.values() if isinstance(each, GpuTarget) and each.family.name == family]
    if not colon or not alike or not _is_architecture(arch, alike[0].family):
        close = difflib.get_close_matches(name, known, n=1) or [each for each in known if each.startswith(family)]
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise UserError(f"unknown target {name!r}", hint)
    like = _most_like(arch, alike)
    unknown: MappingProxyType[int, Any] = MappingProxyType({})
    return replace(
        like, name=name, products=unknown, attention=unknown, row_sums=unknown, nests=(), integer_nests=False
    )


def _is_architecture(arch: str, family: Family) -> bool:
    return re.fullmatch(family.architectures, arch) is not None


def _most_like(arch: str, known: list[GpuTarget]) -> GpuTarget:
    def likeness(target: GpuTarget) -> tuple[int, tuple[int, str]]:
        common = max(k for k in range(len(arch) + 1) if target.arch.startswith(arch[:k]))
        return common, _order(target.arch) if _order(target.arch) <= _order(arch) else (0, "")

    return max(known, key=likeness)


def _order(arch: str) -> tuple[int, str]:
    """Sorts 90 before 100."""
    return len(arch), arch


def targets_of_device(device: str) -> list[Target]:
    """The descriptions for a torch device, "cuda:0"; UnsupportedError when there is none."""
    type_ = device.partition(":")[0]
    found = [target for target in _known().values() if target.device == type_]
    if not found:
        raise UnsupportedError(f"no kernels can be made for the device {device}")
    return found


def is_described(device: str) -> bool:
    """Whether something compiles for a torch device, "cuda:0"."""
    type_ = device.partition(":")[0]
    return type_ in _USUAL or any(target.device == type_ for target in _known().values())


def default_target(device: str) -> Target:
    """What stands for a torch device, "cuda:0", of which nothing else is known. UnsupportedError when nothing can."""
    usual = _USUAL.get(device.partition(":")[0])
    return TARGETS[usual] if usual is not None else targets_of_device(device)[0]


def usual_gpu() -> GpuTarget:
    """The GPU that kernels are for of which nothing else is known."""
    return next(each for each in map(TARGETS.__getitem__, _USUAL.values()) if isinstance(each, GpuTarget))


def library_of(device: str) -> Library:
    """What ATen's kernels on a torch device are good at, where no module says which machine it is."""
    return default_target(device).family.library if is_described(device) else Library()


def cpu_with(capability: str) -> CpuTarget | None:
    """The CPU that torch calls by this name in ATEN_CPU_CAPABILITY, "avx2"."""
    described = (each for each in TARGETS.values() if isinstance(each, CpuTarget))
    return next((each for each in described if capability and each.capability == capability), None)
