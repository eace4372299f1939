"""The pass `kernel-hoist-loads`."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.effects import is_pure
from ...dialects.raw import ops_behind
from ...records import dataclass
from ..analysis.effects import written_buffers
from ..analysis.loops import Loop
from ..analysis.slices import backward_slice
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu

#: most loads whose results wait in registers
MOST = 4


@dataclass(frozen=True)
class KernelHoistLoads(KernelPass, kernels=all_for_gpu):
    """Put loads that a loop does not wait for in front of it: they are on their way while it runs, not behind it.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU; other kernels stay as they are.
    Guarantee: up to four loads behind the first loop of a block, of what memory held before the kernel and at places
    that the loop does not compute, stand in front of it. Nothing else moves but what their places are computed from.
    So do loads in a loop on matrix units, finished or not, of one place for all of its iterations, such as a position
    that hides keys: behind a product they would be one wait more.

        %s = kernel.reduce sum i1 in 0 to 32000 map vector tile 4096 { ... }
        %i = kernel.load %t[i0]
        %c = kernel.load %x[32000*i0 + d0] (d0 = %i)
    becomes
        %i = kernel.load %t[i0]
        %c = kernel.load %x[32000*i0 + d0] (d0 = %i)
        %s = kernel.reduce sum i1 in 0 to 32000 map vector tile 4096 { ... }
    """

    name = "kernel-hoist-loads"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Move loads behind the first loop of a block, with what their places are computed from, in front of it.

        Only what memory held before the kernel is read early, and only where the place and the mask do not follow from
        what the loop computes. Programs of equal length end at once, and then nothing hides the time that a load takes:
        a row's chosen logit, behind the loop over the row, is two loads one after the other.
        """
        block = function.body.block
        written = written_buffers(block)
        if function.num_warps is None:
            _in_block(block, written)
        for op in list(function.walk()):
            if isinstance(op, kernel.ReduceOp) and op.mapping.data == "matrix":
                _out_of(op, written)


def _in_block(block: Block, written: set[SSAValue]) -> None:
    loops = [op for op in block.ops if isinstance(op, Loop)]
    for op in loops:
        _in_block(op.regions[0].block, written)
    if loops:
        _before(loops[0], written)


def _before(loop: Operation, written: set[SSAValue]) -> None:
    late: set[Operation] = set()
    moved: list[Operation] = []
    for op in (loop, *ops_behind(loop)):
        if _waits(op, written) or any(operand.owner in late for operand in op.operands):
            late.add(op)
        elif isinstance(op, kernel.LoadOp):
            moved.append(op)
    if not moved or len(moved) > MOST or not counter(KernelHoistLoads.name):
        return
    block = loop.parent
    assert block is not None
    for op in _with_operands(moved, loop):
        op.detach()
        block.insert_op_before(op, loop)


def _out_of(loop: kernel.ReduceOp, written: set[SSAValue]) -> None:
    """Put loads at one place for all iterations of a loop in front of it."""
    block = loop.parent
    assert block is not None
    for op in list(loop.body.block.ops):
        if not isinstance(op, kernel.LoadOp) or op.mask is not None or op.dynamic or _waits(op, written):
            continue
        if loop.axis.data not in op.map.data[0].free_symbols and counter(KernelHoistLoads.name):
            op.detach()
            block.insert_op_before(op, loop)


def _waits(op: Operation, written: set[SSAValue]) -> bool:
    """Whether an op stays where it is: a loop, an effect, a load of what the kernel writes."""
    if isinstance(op, kernel.LoadOp):
        return op.buffer in written or isinstance(op.buffer.owner, kernel.LocalOp)
    return bool(op.regions) or not is_pure(op)


def _with_operands(loads: list[Operation], loop: Operation) -> list[Operation]:
    """The given loads and the ops behind the loop that compute their operands, in the order of the block."""
    behind = dict.fromkeys(ops_behind(loop))
    wanted = set(backward_slice((value for op in loads for value in op.results), behind.__contains__))
    return [op for op in behind if op in wanted]
