"""The pass `kernel-assign-registers`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.access import string_attr
from ..analysis.launch_facts import LaunchFacts
from .register_tiles import carrying_loops, fits_registers, locals_of
from .scheduled import all_for_gpu


@dataclass(frozen=True)
class KernelAssignRegisters(ModulePass):
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
    level: ClassVar[str] = "kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Assign register tiles in every kernel for a GPU."""
        facts = LaunchFacts(op)
        for function, _ in all_for_gpu(op):
            for local in locals_of(function):
                if fits_registers(local, facts.of(function)):
                    local.properties["registers"] = string_attr("carried" if carrying_loops(local) else "tile")
