"""From torch devices to targets of the tiling passes."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from ...errors import UnsupportedError
from .targets import KINDS

_DEFAULT = "cuda:90"


@cache
def tiling_target(device: str) -> str:
    """The target of a torch device, "cuda:0".

    Without such a device in the machine, as when IR of another machine is compiled, that of an H100. UnsupportedError
    for a device that no kind of GPU has.
    """
    if torch.device(device).type not in {kind.device for kind in KINDS.values()}:
        raise _unsupported(device)
    module = torch.get_device_module(torch.device(device).type)
    if not module.is_available():
        return _DEFAULT
    return named(torch.device(device).type, module.get_device_properties(torch.device(device)))


def named(device: str, properties: Any) -> str:
    """The target of a device type with these properties."""
    for name, kind in KINDS.items():
        if kind.device == device and (arch := kind.arch_of(properties)) is not None:
            return f"{name}:{arch}"
    raise _unsupported(f"{device}, {properties}")


def _unsupported(device: str) -> UnsupportedError:
    return UnsupportedError(f"no kernels can be made for the device {device}")
