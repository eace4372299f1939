"""From torch devices to targets of the tiling passes."""

from __future__ import annotations

from functools import cache

import torch

from ...passes.kernel.targets import TARGETS

_DEFAULT = "cuda:90"


@cache
def tiling_target(device: str) -> str:
    """The target of a torch device, "cuda:0": that of its kind, or the closest older one that is described.

    Without such a device in the machine, as when IR of another machine is compiled, that of an H100.
    """
    if not torch.cuda.is_available():
        return _DEFAULT
    properties = torch.cuda.get_device_properties(torch.device(device))
    if torch.version.hip is not None:
        name = f"hip:{properties.gcnArchName.partition(':')[0]}"
        return name if name in TARGETS else "hip:gfx90a"
    return closest(10 * properties.major + properties.minor)


def closest(capability: int) -> str:
    """The described CUDA target with the highest compute capability up to the given one."""
    known = sorted(int(name[5:]) for name in TARGETS if name.startswith("cuda:"))
    return f"cuda:{max((k for k in known if k <= capability), default=known[0])}"
