"""The pass `kernel-load-ahead`."""

from __future__ import annotations

from typing import ClassVar, TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...dialects.machine import targets_of
from ...dialects.sym import ZERO, MapAttr, Ranges, SymAttr, symbol
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.functions import kernels_of
from ..analysis.launch_facts import LaunchFacts
from ..analysis.launches import LaunchSizes
from ..analysis.loops import Loop, loops_around
from ..analysis.nests import element_bytes, is_unit
from ..counters import counter
from .overlapping import constants_of, followers_of, may_overlap, programs_in
from .tiles import extent_of, is_grid, is_persistent, tile_of

#: most loads of a program whose elements wait in registers
MOST = 4
#: bytes of an element at least where a norm is computed in front: programs need registers for both. Rows of 8 bits of
#: a gate and what it gates, behind a norm, take 11.6 us on an H200 ahead, and 10.7 behind; of 4 bits 10.8 and 9.3
LEAST_BYTES = 2


@dataclass(frozen=True)
class KernelLoadAhead(ModulePass):
    """Load rows of weights that a program multiplies in front of all else that it does, where launches overlap.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU; in front of `kernel-assign-registers`. Other kernels stay as they are.
    Guarantee: with the option, of kernels of which launches follow one another: where a program reduces rows of its own
    in lanes that one tile covers, up to four loads of inputs that nothing in the program writes stand in a loop of
    their own in front of the first reduction. Local buffers, which are register tiles, hold what they loaded. So
    `kernel-overlap-launches` can let programs load a weight before they wait for the vector. Elements of 8 bits only
    where nothing is computed of the vector first, and not where a byte has several numbers: what is made of them takes
    registers that programs beside these need.

        %s = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 { %a = kernel.load %x[i1] ...
          %b = kernel.load %w[2048*i0 + i1] ... }
    becomes
        %t = kernel.local : !kernel.buffer<bf16, 2048, local>
        kernel.for i1 in 0 to 2048 map vector tile 2048 {
          %b = kernel.load %w[2048*i0 + i1]  kernel.store %b, %t[i1] }
        %s = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 { %a = kernel.load %x[i1] ...
          %b = kernel.load %t[i1] ... }
    """

    name = "kernel-load-ahead"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    overlap_launches: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at the body of each nest on the grid of kernels that are launched beside others."""
        target = targets_of(op).main
        if not self.overlap_launches or not isinstance(target, GpuTarget) or not target.overlaps:
            return
        kernels, sizes, facts, constants = kernels_of(op), LaunchSizes(op), LaunchFacts(op), constants_of(op)
        for name in followers_of(op):
            function = kernels.get(name)
            if function is None or function.target is None or not may_overlap(function, sizes, target.processors):
                continue
            for block in programs_in(function):
                found = _rows(block, constants.get(name, set()), facts.of(function))
                if found is not None and counter(self.name):
                    _put_in_front(*found)


def _rows(block: Block, constants: set[SSAValue], ranges: Ranges) -> tuple[Operation, Loop, list[kernel.LoadOp]] | None:
    """The first reduction of a program, its last one, and the loads of constants in that, some of its own rows."""
    loops = [op for op in block.ops if isinstance(op, Loop)]
    if not loops or any(not isinstance(op, kernel.ReduceOp) or not is_persistent(op, ranges) for op in loops):
        return None
    last = loops[-1]
    programs = {loop.axis.data for loop in loops_around(last) if is_grid(loop)}
    loads = _loads(last, constants)
    own = [op for op in loads if not programs.isdisjoint(op.map.data[0].free_symbols)]
    others = [op.buffer for loop in loops[:-1] for op in loop.walk() if isinstance(op, kernel.LoadOp)]
    if others and any(element_bytes(op.buffer.type) < LEAST_BYTES for op in own):  # pyright: ignore[reportArgumentType]
        return None
    if not own or any(op.buffer in others for op in own) or len(loads) > MOST or last.lo.data is not ZERO:
        return None
    if not all(is_unit(op.map.data[0].coefficient(last.axis.data)) for op in last.walk() if _moves(op, last)):
        return None  # several numbers a byte: registers are short
    return loops[0], last, own


def _moves(op: Operation, loop: Loop) -> TypeGuard[kernel.LoadOp]:
    """Whether an op loads at another place in each iteration of a loop."""
    return isinstance(op, kernel.LoadOp) and loop.axis.data in op.map.data[0].free_symbols


def _loads(loop: Loop, constants: set[SSAValue]) -> list[kernel.LoadOp]:
    """The loads of constants in a loop whose places vary along it, and follow from axes alone."""
    loads = [op for region in loop.regions for op in region.block.ops if isinstance(op, kernel.LoadOp)]
    axis = loop.axis.data
    return [
        op
        for op in loads
        if op.buffer in constants and not op.dynamic and op.mask is None and axis in op.map.data[0].free_symbols
    ]


def _put_in_front(first: Operation, last: Loop, loads: list[kernel.LoadOp]) -> None:
    """Load rows in a loop of their own, into register tiles."""
    block = first.parent
    assert block is not None
    place = MapAttr.of(symbol(last.axis.data))
    moved: list[Operation] = []
    for load in loads:
        kind = load.buffer.type
        assert isinstance(kind, kernel.BufferType)
        local = kernel.LocalOp.of(kind.element, SymAttr.of(extent_of(last)))
        block.insert_op_before(local, first)
        again = kernel.LoadOp.of(local.buffer, place, location=load.location)
        again.value.name_hint = load.value.name_hint
        load.value.replace_all_uses_with(again.value)
        assert load.parent is not None
        load.parent.insert_op_before(again, load)
        load.detach()
        moved += [load, kernel.StoreOp.of(load.value, local.buffer, place, location=load.location)]
    body = Region(Block([*moved, kernel.YieldOp.create()]))
    ahead = kernel.ForOp.of(
        last.axis.data, last.lo.data, last.hi.data, body, last.mapping.data, tile_of(last), loads[0].location
    )
    block.insert_op_before(ahead, first)
