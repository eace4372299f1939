"""Schedules for GPUs: the seam where they plug in.

`schedule` gets one kernel with serial loops, as the passes before `kernel-tile` leave it, a `GpuTarget` and the
size estimates, and maps its axes: outer ones to `grid` with a `tile`, inner ones to `vector` tiles.
"""

from __future__ import annotations

from ...dialects import kernel
from ...errors import UserError
from .cost import Sizes
from .targets import GpuTarget


def schedule(function: kernel.FuncOp, target: GpuTarget, sizes: Sizes) -> None:
    """Choose mapping and tiles for all loops of a kernel, in place."""
    raise UserError(f"no schedules for {target.name} in this version", "use the target cpp")
