"""Which lines of the cache a program needs again: rows that do not fit into its registers are read once a loop."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.sym import Ranges
from ...passes.kernel.axes import Loop
from ...passes.kernel.effects import written_buffers
from ...passes.kernel.tiles import is_grid, is_persistent

KEEP, DROP = "evict_last", "evict_first"


def eviction(function: kernel.FuncOp, ranges: Ranges) -> Mapping[Operation, str]:
    """Loads, and stores of kernels with such, with the policy that suits them.

    What several loops of a program read is kept until the last of them; results must not take its place.
    """
    loops = {op: _loops_of(op) for op in function.walk() if isinstance(op, kernel.LoadOp | kernel.StoreOp)}
    written = written_buffers(function.body.block)
    reads: dict[object, list[tuple[kernel.LoadOp, Loop]]] = {}
    for op, path in loops.items():
        own = {loop.axis.data for loop in path}
        repeats = any(not is_persistent(loop, ranges) for loop in path)
        if isinstance(op, kernel.LoadOp) and repeats and own <= op.map.data[0].free_symbols:
            reads.setdefault(op.buffer, []).append((op, path[0]))
    found: dict[Operation, str] = {}
    for buffer, all_reads in reads.items():
        last = all_reads[-1][1]
        if buffer not in written and any(loop is not last for _, loop in all_reads):
            found |= {op: DROP if loop is last else KEEP for op, loop in all_reads}
    if found:
        found |= {op: DROP for op, path in loops.items() if isinstance(op, kernel.StoreOp) and path}
    return found


def _loops_of(op: Operation) -> list[Loop]:
    """The loops around an access that a program runs itself, outermost first."""
    path: list[Loop] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, Loop) and not is_grid(parent):
            path.insert(0, parent)
        parent = parent.parent_op()
    return path
