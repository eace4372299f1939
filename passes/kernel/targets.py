"""Where the kernel passes find descriptions of targets; they live in `machines/`."""

from __future__ import annotations

from ...machines import TARGETS, CpuTarget, GpuTarget, Target, target_named

#: bytes that one instruction of a GPU's thread loads or stores
VECTOR_BYTES = GpuTarget.vector_bytes

__all__ = ["TARGETS", "VECTOR_BYTES", "CpuTarget", "GpuTarget", "Target", "target_named"]
