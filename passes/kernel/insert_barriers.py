"""The pass `kernel-insert-barriers`."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import Ranges
from ...records import dataclass
from ..analysis.effects import effects_of, is_local
from ..analysis.loops import Loop, is_loop, loops_in, ops_in
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import is_grid, is_persistent, is_tiled
from .transforms import reduction_chain


class KernelInsertBarriers(KernelPass, kernels=all_for_gpu):
    """Insert barriers where a thread of a GPU's program may read what another one stored (synchronisation).

    Level: kernel.

    Precondition: `kernel-tile` for a GPU, with the accesses that are to stay; other kernels stay as they are.
    Guarantee: in a kernel that works on tiles, a `kernel.barrier` stands between a store and what reads the buffer
    behind it: in front of the load, or of the loop over tiles that it is in, rather than one in each step. A loop that
    stores and loads a buffer at different places has one in front of each step. A barrier that is there is used.

        kernel.for i0 in 0 to 4000 map vector tile 1024 { ... kernel.store %v, %t[3999 - i0] ... }
        kernel.for i1 in 0 to 4000 map vector tile 1024 { %w = kernel.load %t[i1] ... }
    becomes
        kernel.for i0 in 0 to 4000 map vector tile 1024 { ... kernel.store %v, %t[3999 - i0] ... }
        kernel.barrier
        kernel.for i1 in 0 to 4000 map vector tile 1024 { %w = kernel.load %t[i1] ... }
    """

    name = "kernel-insert-barriers"
    optional: ClassVar[bool] = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Insert barriers in every kernel for a GPU."""
        if _may_need_barriers(function):
            _Barriers(facts.ranges).block(function.body.block)


def _may_need_barriers(function: kernel.FuncOp) -> bool:
    """Whether a kernel reads a parameter that it writes, and works on tiles: all threads run a scalar program alike."""
    users = ([use.operation for use in argument.uses] for argument in function.body.block.args)
    return any(map(_reads_what_is_written, users)) and any(map(is_tiled, loops_in(function.body.block)))


def _reads_what_is_written(users: list[Operation]) -> bool:
    """Whether some of the users of a buffer store to it, and some, or these themselves, read it."""
    stores = [op for op in users if isinstance(op, kernel.StoreOp)]
    combines = any(op.kind.data != "set" and op.atomic is None for op in stores)
    return combines or 0 < len(stores) < len(users)


@dataclass
class _Barriers:
    ranges: Ranges
    stored: set[SSAValue] = field(default_factory=set)
    """The parameters that were stored to since the last barrier."""

    def block(self, block: Block) -> None:
        """Go through a block in order."""
        for op in list(block.ops):
            if isinstance(op, kernel.BarrierOp):
                self.stored.clear()
            elif is_loop(op):
                self._loop(op)
            elif isinstance(op, kernel.LoadOp):
                self._before(op, op.buffer)
            elif isinstance(op, kernel.StoreOp) and not is_local(op.buffer):
                if op.kind.data != "set" and op.atomic is None:
                    self._before(op, op.buffer)
                self.stored.add(op.buffer)

    def _before(self, op: Operation, buffer: SSAValue) -> None:
        if buffer in self.stored:
            block = op.parent
            assert block is not None
            block.insert_op_before(kernel.BarrierOp.create(location=op.location), op)
            self.stored.clear()

    def _loop(self, op: Loop) -> None:
        """Place the barriers of a loop.

        A loop over steps that loads what was stored before it gets one barrier in front, rather than one in each step.
        A loop whose steps may read what earlier steps stored gets a barrier at the start of each step.
        """
        chain = reduction_chain(op) if isinstance(op, kernel.ReduceOp) else [op]
        for loop in chain:
            if not is_grid(loop) and not is_persistent(loop, self.ranges):
                for inner in ops_in(loop):
                    if isinstance(inner, kernel.LoadOp):
                        self._before(loop, inner.buffer)
        last = chain[-1]
        first = last.body.block.first_op
        assert first is not None
        in_steps = not is_grid(last) and not is_persistent(last, self.ranges) and _meets_earlier_steps(chain[0])
        if in_steps and not isinstance(first, kernel.BarrierOp):
            last.body.block.insert_op_before(kernel.BarrierOp.create(location=last.location), first)
        for region in last.regions[: 2 if isinstance(last, kernel.ScanOp) else 1]:
            self.block(region.block)


def _meets_earlier_steps(op: Loop) -> bool:
    """Whether an iteration may read what an earlier one stored elsewhere in a buffer."""
    effects = effects_of(op)
    return any(
        not is_local(buffer) and any(s.map != load.map or s.dynamic for s in stores for load in effects.reads[buffer])
        for buffer, stores in effects.writes.items()
        if buffer in effects.reads
    )
