"""May a kernel write its result over one of its inputs?"""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import kernel
from .dependences import same_iterations
from .loops import loops_around


def may_overwrite(function: kernel.FuncOp, read: int, written: int) -> bool:
    """Whether the buffers number `read` and `written` may be the same memory.

    So it is when the first is only read, the second only written, and each element is read no later than it is
    overwritten: in an earlier op of the same block, in the same iteration of every loop around both.
    """
    arguments = function.body.block.args
    loads, stores = _users(arguments[read]), _users(arguments[written])
    if not stores or any(isinstance(op, kernel.StoreOp) for op in loads):
        return False
    if any(isinstance(op, kernel.LoadOp) for op in stores):
        return False
    return all(_read_before(load, store) for load in loads for store in stores)  # pyright: ignore[reportArgumentType]


def _users(buffer: SSAValue) -> list[Operation]:
    return [use.operation for use in buffer.uses]


def _read_before(load: kernel.LoadOp, store: kernel.StoreOp) -> bool:
    parted = _where_they_part(load, store)
    if parted is None or not precedes(*parted):
        return False
    return same_iterations([(loop, loop) for loop in loops_around(parted[0])], (load, store))


def stands_before(first: Operation, second: Operation) -> bool:
    """Whether an op of a kernel, or what it is nested in, comes before another, or what that is nested in."""
    parted = _where_they_part(first, second)
    return parted is not None and precedes(*parted)


def _where_they_part(first: Operation, second: Operation) -> tuple[Operation, Operation] | None:
    """The two ops of one block that two ops of a kernel are, or lie in; None where one lies in the other."""
    for one, other in zip(path_to(first), path_to(second), strict=False):
        if one is not other:
            return (one, other) if one.parent is other.parent else None
    return None


def path_to(op: Operation) -> list[Operation]:
    """The ops around an op, from the kernel's top level down to itself."""
    path = [op]
    while (parent := path[0].parent_op()) is not None and not isinstance(parent, kernel.FuncOp):
        path.insert(0, parent)
    return path


def precedes(first: Operation, second: Operation) -> bool:
    """Whether an op is another or stands before it in their block."""
    return first is second or first.is_before_in_block(second)


def merge_arguments(function: kernel.FuncOp, kept: int, dropped: int) -> None:
    """Let one buffer argument stand for two."""
    block = function.body.block
    kept_argument, dropped_argument = block.args[kept], block.args[dropped]
    dropped_argument.replace_all_uses_with(kept_argument)
    assert isinstance(dropped_argument, BlockArgument)
    block.erase_arg(dropped_argument)
