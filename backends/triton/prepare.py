"""What can get ready for a graph while AOTAutograd and our passes still work on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ...errors import InductileError
from ...lowering.fx_machines import target_of_device
from ..host.gpu import is_gpu
from .bound import is_interpreting
from .compilers import SERVER
from .targets import triton_target


def prepare(inputs: Iterable[Any]) -> None:
    """Start the compile server for a graph with inputs on a GPU. Returns at once."""
    devices = {str(each.device) for each in inputs if isinstance(each, torch.Tensor) and is_gpu(str(each.device))}
    if is_interpreting():
        return
    try:
        target = triton_target(target_of_device(min(devices)))
    except InductileError:
        return  # raised where a kernel is made for the device
    if target.is_here:
        SERVER.start(target)
