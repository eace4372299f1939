"""Allocations under the names of their buffers, for snapshots of torch's allocator.

A snapshot has the frames of whoever allocates: files, lines and names of functions. A generated program is one
function, whose lines nobody knows. So while torch keeps a history of its memory, a second text of the program runs, in
which each allocation is made inside of a frame of its own: named after the buffer and the kernel that first has it, at
the user's line. Light to import, as graphs from the cache are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import torch

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

Result = TypeVar("Result")
is_recorded: Callable[[], bool] = getattr(torch._C, "_cuda_isHistoryEnabled", lambda: False)
"""Whether torch keeps a history of the memory of GPUs; one without CUDA has none to keep."""


def at(name: str, file: str, line: int, make: Callable[[], Result]) -> Result:
    """What a function makes, made inside of a frame that says where."""
    return _frame(name, file, line)(make)


def _make(make: Callable[[], Any]) -> Any:
    return make()


@cache
def _frame(name: str, file: str, line: int) -> Callable[[Callable[[], Any]], Any]:
    """A function under a name, whose one statement is on a line of a file."""
    code = _make.__code__.replace(co_name=name, co_qualname=name, co_filename=file, co_firstlineno=max(line - 1, 0))
    return FunctionType(code, {})


def allocating(line: str, op: Operation, position: Callable[[Operation], int]) -> str:
    """A line of a program, `t0 = empty(...)`, whose right side is made inside of a frame.

    position: where an op of the program stands
    """
    left, sign, right = line.partition(" = ")
    users = sorted({user for result in op.results for user in _users(result)}, key=position)
    file, number = _place([op, *users])
    return f"{left}{sign}at({_name(op, users)!r}, {file!r}, {number}, lambda: {right})"


def _name(op: Operation, users: Sequence[Operation]) -> str:
    """The op that is called, or the buffer with the first kernel that has it: `softmax for softmax_0`."""
    from ...dialects import host
    from ...dialects.aten import CallOp

    if not isinstance(op, host.EmptyOp):
        return op.shown if isinstance(op, CallOp) else op.name
    what = op.out.name_hint or "buffer"
    launch = next((user for user in users if isinstance(user, host.LaunchOp)), None)
    return what if launch is None else f"{what} for {launch.kernel.root_reference.data}"


def _place(ops: Iterable[Operation]) -> tuple[str, int]:
    """File and line of the first op that has them."""
    from ...passes.remarks import format_location

    for text in filter(None, (format_location(op.location) for op in ops)):
        file, _, line = text.rpartition(":")
        return (file, int(line)) if line.isdigit() else (text, 1)
    return "<inductile>", 1


def _users(value: SSAValue) -> Iterator[Operation]:
    """The ops that use a value, or a part of its memory."""
    from ...dialects import host

    for use in value.uses:
        user = use.operation
        if isinstance(user, host.ViewOp | host.EmptyOp):
            yield from _users(user.out)
        elif not isinstance(user, host.FreeOp):
            yield user
