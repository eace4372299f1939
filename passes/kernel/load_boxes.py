"""The pass `kernel-load-boxes`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i8, i64
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.kernel import BufferType
from ...dialects.kernel.boxes import ALIGNMENT
from ...dialects.sym import ONE, as_expr
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.effects import written_buffers
from ..analysis.nests import element_bytes
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .spill import pass_scratch
from .tiles import is_grid, steps


@dataclass(frozen=True)
class KernelLoadBoxes(KernelPass, kernels=all_for_gpu):
    """Let a copy engine bring the tiles of factors to matrix units (TMA).

    Level: kernel.

    Precondition: `kernel-map-products`, so that loops have their tiles.
    Guarantee: on a target with such an engine, where programs take tiles in turns, each load of a factor whose tile is
    a box of a matrix says so, with the length of the matrix' rows. A program makes its descriptors in 1.7 microseconds
    on an H200, so that other kernels are slower with them, and have them only with the option `boxes`. A load that is
    masked, or of what the kernel writes, stays as it is, and so do all loads of kernels with symbols. It changes no
    value.

        %s = kernel.reduce sum i2 in 0 to 768 map matrix tile 64 { %a = kernel.load %x[768*i0 + i2] ... }
    becomes
        %s = kernel.reduce sum i2 in 0 to 768 map matrix tile 64 { %a = kernel.load box 768 %x[768*i0 + i2] ... }
    """

    name = "kernel-load-boxes"
    boxes: bool = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Mark the loads of one kernel."""
        target = facts.target
        if not isinstance(target, GpuTarget) or not target.copies_boxes or not (self.boxes or function.programs):
            return
        if function.symbols.data or function.errors is not None or function.boxes is not None:
            return
        written = written_buffers(function.body.block)
        found: set[tuple[SSAValue, int, str, str]] = set()
        for op in function.walk():
            if isinstance(op, kernel.ReduceOp) and op.mapping.data == "matrix":
                for load in op.body.block.ops:
                    if isinstance(load, kernel.LoadOp) and load.box is None and load.buffer not in written:
                        box = self._mark(load, op)
                        found.update([] if box is None else [(load.buffer, box.length, box.outer, box.inner)])
        if found:
            function.properties["boxes"] = IntegerAttr(len(found), i64)
            buffer = BufferType.get(i8, as_expr(kernel.DESCRIPTOR * len(found) * _programs(function)))
            block = function.body.block
            block.insert_arg(buffer, len(block.args)).name_hint = "descriptors"
            pass_scratch(function, buffer)

    def _mark(self, load: kernel.LoadOp, op: kernel.ReduceOp) -> kernel.Box | None:
        """Mark one load, if it is a box."""
        length = _length_of(load, [op.axis.data, *kernel.tiled_axes(op)])
        found = "its index is no sum of multiples of two axes" if length is None else kernel.box_of(load, length)
        if isinstance(found, str) or length is None:
            remark("missed", self.name, load, f"no box: {found}")
        elif counter(self.name):
            load.properties["box"] = IntegerAttr(length, i64)
            remark("passed", self.name, load, "a box", rows=found.rows, length=found.length)
            return found
        return None


def _programs(function: kernel.FuncOp) -> int:
    """The programs of all nests of a kernel without symbols."""
    nests = (op for op in function.body.block.ops if isinstance(op, kernel.ForOp))
    grids = ([op for op in nest.walk() if isinstance(op, kernel.ForOp) and is_grid(op)] for nest in nests)
    count = sum(prod(steps(loop).as_int() or 1 for loop in grid) for grid in grids)
    return count if function.programs is None else min(count, function.programs.value.data)


def may_be_box(load: kernel.LoadOp, op: kernel.ReduceOp, tiled: Sequence[str]) -> bool:
    """Whether the tile of a load in a product is surely a box once the other axes of the product have tiles too.

    Its matrix has whole rows that begin at multiples of 16 bytes, and ends with the depth unless steps divide it.
    """
    length = _length_of(load, [op.axis.data, *tiled])
    extent, depth = load.buffer.type.extent.as_int(), op.hi.data.as_int()  # pyright: ignore
    if load.mask is not None or load.dynamic or length is None or extent is None or depth is None:
        return False
    is_along = load.map.data[0].coefficient(op.axis.data) is ONE
    ends = depth == (length if is_along else extent // length)
    divides = depth % _STEPS == 0
    return not extent % length and not length * element_bytes(load.buffer.type) % ALIGNMENT and (ends or divides)


#: steps of the depth divide this
_STEPS = 128


def _length_of(load: kernel.LoadOp, axes: Sequence[str]) -> int | None:
    """How far neighbours lie apart along the axis of some that does not run along memory, where one does."""
    steps = [load.map.data[0].coefficient(axis) for axis in axes]
    found = {step.as_int() for step in steps if step is not None and step.as_int() != 0}
    others = found - {1}
    return others.pop() if len(others) == 1 and 1 in found else None
