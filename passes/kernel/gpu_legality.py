"""What schedules for GPUs may do with a kernel: which nests are independent, what may move, what must stay serial."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ..counters import counter
from .axes import Loop, fresh_axis, kernel_names, loops_in, nested_axes, rename_axes
from .cost import Sizes, work_of_block, work_of_op
from .effects import conflicts, effects_of, written_buffers
from .simplify_block import is_pure


def independent_nests(block: Block) -> set[Operation]:
    """The `for` nests of a block that may have programs of their own.

    A nest must need no loop's result, and share no written buffer with anything beside it; nor must what it needs from
    its block, loads included: each program runs that again, at any time.
    """
    ops = [op for op in block.ops if not isinstance(op, kernel.YieldOp)]
    effects = {op: effects_of(op) for op in ops}
    found: set[Operation] = set()
    for op in ops:
        if isinstance(op, kernel.ForOp):
            own = {op, *needed_by(op, block)}
            others = [other for other in ops if other not in own]
            apart = not any(conflicts(effects[each], effects[other]) for each in own for other in others)
            alone = not any(conflicts(effects[op], effects[each]) for each in own if each is not op)
            if apart and alone and not any(each is not op and isinstance(each, Loop) for each in own):
                found.add(op)
    return found


def needed_by(nest: Operation, block: Block) -> set[Operation]:
    """The ops of a block whose results a nest in it uses, and those that they use in turn."""
    found: set[Operation] = set()
    todo = [nest]
    while todo:
        for inner in todo.pop().walk():
            for value in inner.operands:
                owner = value.owner
                if isinstance(owner, Operation) and owner.parent is block and owner not in found and owner is not nest:
                    found.add(owner)
                    todo.append(owner)
    return found


def sink_between_loops(op: kernel.ForOp, sizes: Sizes) -> None:
    """Move what stands in front of the inner loop of a nest into it, so that both axes can be spread over programs.

    Programs run it again for each inner iteration, but side by side. So it has to be little: checks, loads and
    arithmetic, or, in front of a loop that has loops inside, rows that cost no more than one iteration of it.
    """
    written = written_buffers(op.body.block)
    while True:
        others = list(op.body.block.ops)[:-1]
        last = others.pop() if others else None
        if not isinstance(last, kernel.ForOp):
            return
        rows = not is_innermost(last) and _work(others, sizes) <= work_of_block(last.body.block, sizes)
        if not all(_is_cheap(o) or (rows and _makes_rows(o)) for o in others):
            return
        if any(isinstance(i, kernel.LoadOp) and _is_memory(i, written) for o in others for i in o.walk()):
            return
        if not counter("kernel-tile-sink"):
            return
        inner, first = last.body.block, last.body.block.first_op
        assert first is not None
        for other in others:
            _keep_apart(other, last)
            op.body.block.detach_op(other)
            inner.insert_op_before(other, first)
        op = last


def _keep_apart(moved: Operation, into: kernel.ForOp) -> None:
    """Rename an axis in an op that moves into a loop of the same axis, which would hide that one."""
    axis = into.axis.data
    if isinstance(moved, Loop) and (moved.axis.data == axis or axis in nested_axes(moved)):
        function = moved.parent_op()
        while function is not None and not isinstance(function, kernel.FuncOp):
            function = function.parent_op()
        taken = {axis, moved.axis.data, *nested_axes(moved)} if function is None else kernel_names(function)
        rename_axes(moved, {axis: fresh_axis(taken)})


def _is_memory(load: kernel.LoadOp, written: set[SSAValue]) -> bool:
    """Whether a load reads memory that the nest writes, so that it must not move."""
    return load.buffer in written and not load.buffer.type.local  # pyright: ignore[reportAttributeAccessIssue]


def _work(ops: Sequence[Operation], sizes: Sizes) -> float:
    return sum(work_of_op(op, sizes) for op in ops)


def _is_cheap(op: Operation) -> bool:
    return isinstance(op, kernel.LoadOp | kernel.AssertOp) or is_pure(op)


def _makes_rows(op: Operation) -> bool:
    """Whether an op allocates a local buffer, or is a loop that stores to local buffers only."""
    stores = [inner for inner in op.walk() if isinstance(inner, kernel.StoreOp)]
    local = all(store.buffer.type.local for store in stores)  # pyright: ignore[reportAttributeAccessIssue]
    return isinstance(op, kernel.LocalOp) or (isinstance(op, Loop) and local)


def is_innermost(op: Loop) -> bool:
    """Whether no loop is nested in a loop."""
    return not any(True for region in op.regions for _ in loops_in(region.block))


def relax_order(function: kernel.FuncOp) -> None:
    """Plain stores that may meet are not ordered on a GPU: eager does not say either which of them wins there."""
    for op in function.walk():
        if isinstance(op, kernel.StoreOp) and op.kind.data == "set":
            op.properties.pop("ordered", None)
            op.properties.pop("atomic", None)


def must_be_serial(op: object) -> bool:
    """Whether a store keeps its kernel to one program: its order matters, or the GPU has no such atomic operation."""
    if not isinstance(op, kernel.StoreOp):
        return False
    return op.ordered is not None or (op.atomic is not None and not has_atomic(op))


def has_atomic(op: kernel.StoreOp) -> bool:
    """Whether GPUs combine in memory what a store combines: sums of 16 bits and more, extrema of 32 and 64 bits."""
    element = op.buffer.type.element  # pyright: ignore[reportAttributeAccessIssue]
    kind = op.kind.data
    if isinstance(element, IntegerType):
        return kind != "mul" and element.width.data >= 32
    width = element.bitwidth  # pyright: ignore[reportAttributeAccessIssue]
    return (kind == "add" and width >= 16) or (kind in ("amax", "amin") and width >= 32)
