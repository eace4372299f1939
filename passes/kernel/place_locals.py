"""The pass `kernel-place-locals`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import UnitAttr

from ...dialects import kernel
from ...records import dataclass
from ..analysis.loops import loops_around
from ..analysis.nests import element_bytes
from .assign_accumulators import lanes_of
from .kernel_pass import KernelFacts, KernelPass
from .register_tiles import locals_of
from .scheduled import for_cpu

#: a local buffer of up to this many bytes lies on the stack
LOCAL_BYTES = 64 * 1024
#: and all of one kernel together take at most so many of a thread's stack
STACK_BYTES = 512 * 1024


@dataclass(frozen=True)
class KernelPlaceLocals(KernelPass, kernels=for_cpu):
    """Say which local buffers of a CPU lie on the heap, since they are too large for a thread's stack.

    Level: kernel.

    Precondition: kernels for a CPU whose loops have their lanes (`kernel-assign-accumulators`): each lane has a buffer
    of its own. Others are left alone.
    Guarantee: the local buffers without `heap` have constant sizes, of 64 KiB at most, and 512 KiB all together.

        %row = kernel.local : !kernel.buffer<f32, s1, local>
    becomes
        %row = kernel.local heap : !kernel.buffer<f32, s1, local>
    """

    name = "kernel-place-locals"
    optional: ClassVar[bool] = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Place the local buffers of every kernel for a CPU."""
        left = STACK_BYTES
        for local in locals_of(function):
            size = bytes_in_lanes(local)
            if local.buffer.first_use is None or local.heap is not None:
                continue
            if size is None or size > min(left, LOCAL_BYTES):
                local.properties["heap"] = UnitAttr()
            else:
                left -= size


def bytes_in_lanes(local: kernel.LocalOp) -> int | None:
    """Bytes of a local buffer, of all lanes around it; None where its size is not constant."""
    type_ = local.buffer.type
    assert isinstance(type_, kernel.BufferType)
    extent = type_.extent.as_int()
    return None if extent is None else extent * copies_of(local) * element_bytes(type_)


def copies_of(local: kernel.LocalOp) -> int:
    """How many lanes around a local buffer have one each."""
    return next((lanes for loop in loops_around(local) if (lanes := lanes_of(loop)) is not None), 1)
