"""The pass `kernel-assign-registers`."""

from __future__ import annotations

from typing import ClassVar

from ...dialects import kernel
from ...dialects.access import string_attr
from .kernel_pass import KernelFacts, KernelPass
from .register_tiles import carrying_loops, fits_registers, locals_of
from .scheduled import all_for_gpu


class KernelAssignRegisters(KernelPass, kernels=all_for_gpu):
    """Give local buffers of a GPU register tiles (register promotion).

    Level: kernel.

    Precondition: `kernel-spill`, which leaves no local buffer that fits none, with the loops that are to stay; other
    kernels than for a GPU stay as they are.
    Guarantee: every local buffer of which each lane reads what it stored itself is a `tile`, a value of all its lanes;
    one that a loop carries from one iteration to the next is `carried`, a variable of that loop.

        %row = kernel.local : !kernel.buffer<f32, 1024, local>
        kernel.for i1 in 0 to 1024 map vector tile 1024 { ... kernel.store %e, %row[i1] ... }
        kernel.for i2 in 0 to 1024 map vector tile 1024 { %e = kernel.load %row[i2] ... }
    becomes
        %row = kernel.local tile : !kernel.buffer<f32, 1024, local>
        ...
    """

    name = "kernel-assign-registers"
    optional: ClassVar[bool] = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Assign register tiles in every kernel for a GPU."""
        for local in locals_of(function):
            if fits_registers(local, facts.ranges):
                local.properties["registers"] = string_attr("carried" if carrying_loops(local) else "tile")
