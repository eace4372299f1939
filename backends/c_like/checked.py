"""What kernels of files have in addition: no index leaves its buffer, and no loop runs for ever.

A file is data, and what a verifier cannot know is checked when it runs. In a checked kernel each buffer is a
`Checked<T>` that knows its extent; an access outside reads or writes a place of no use and is reported. Each loop takes
its iterations from a number of steps that the program has; one that wants more does not run. The report is an array
that the program owns, and any entry in it ends the program with one error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ...errors import UserError
from ..limits import max_steps, too_many_steps
from ..printing.code import Code
from .context import Context
from .literals import REPORT

#: what a checked kernel returns when something was reported
FAULT_STATUS = 63
#: bits of the first entry; the one left out says that no steps are left
OUTSIDE, MEMORY, DIVISION = 1, 4, 8


class Report:
    """The array: what went wrong, the buffer, index and extent of an access, and the steps that are left."""

    def __init__(self) -> None:
        self._steps = max_steps()
        self._numbers = (ctypes.c_int64 * 5)(0, 0, 0, 0, self._steps)

    @property
    def address(self) -> int:
        """Where the array is; the object must stay alive while kernels run."""
        return ctypes.addressof(self._numbers)

    def error(self, kernel: str, buffers: Sequence[str]) -> Exception:
        """The error of a kernel that returned `FAULT_STATUS`."""
        fault, buffer, index, extent, _ = self._numbers
        if fault & MEMORY:
            problem = f"kernel @{kernel} has a local buffer that does not fit in memory"
            return UserError(problem, "use smaller sizes")
        if fault & DIVISION:
            return UserError(f"an index expression of kernel @{kernel} divides by zero", "mend the expression")
        if fault & OUTSIDE:
            name = buffers[buffer] if 0 <= buffer < len(buffers) else "a local buffer"
            problem = f"kernel @{kernel} accesses element {index} of {name}, which has {extent}"
            return UserError(problem, "mend the index, or mask the access")
        return too_many_steps(f"kernel @{kernel}", self._steps)


def loop_head(context: Context, name: str, start: object, end: Code, step: str = "") -> str:
    """The head of a loop over a variable from `start` up to `end`."""
    advance = step or f"++{name}"
    if not context.checked:
        return f"for (int64_t {name} = {start}; {name} < {end.at(3)}; {advance})"
    return (
        f"for (int64_t {name} = {start}, {name}_end = {loop_end(context, start, end)}; {name} < {name}_end; {advance})"
    )


def loop_end(context: Context, start: object, end: Code) -> Code:
    """Where a loop ends; in a checked kernel at `start` when it has no steps left for it."""
    if not context.checked:
        return end
    context.need("checked_loops")
    return Code(f"loop_end({REPORT}, {start}, {end})")
