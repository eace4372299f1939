"""The pass `kernel-hint-cache`."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.access import string_attr
from ...dialects.sym import ZERO, Expr, Ranges, bounds, symbol
from ..analysis.effects import is_local, written_buffers
from ..analysis.loops import Loop, loops_around, ops_in
from ..analysis.nests import element_bytes, is_unit
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import is_grid, is_persistent, is_tiled

KEEP, DROP = "evict_last", "evict_first"
_ACCESSES = (kernel.LoadOp, kernel.StoreOp)
#: what takes a smaller part of the cache stays in it for the next kernel: products of rows of 2048 x 1024 in bfloat16
#: and their gradients take 7.8 us on an H200 then, and 8.9 where the inputs leave it first
SHARE_OF_CACHE = 8
#: stands for each size that is not known
_SIZE = 64


class KernelHintCache(KernelPass, kernels=all_for_gpu):
    """Say which lines of a GPU's cache a program needs again: rows that fit no registers are read once a loop.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU, with the tiles and accesses that are to stay; other kernels, and those for a
    GPU without such hints, stay as they are. A hint that is there is kept.
    Guarantee: loads of what several loops of a program read are `evict_last`, until the last of them, which is
    `evict_first`, as are the stores of such kernels. A hint changes no value.

        %m = kernel.reduce max i1 ... { %a = kernel.load %x[20000*i0 + i1] ... }
        kernel.for i2 ... { %b = kernel.load %x[20000*i0 + i2] ... kernel.store %e, %y[20000*i0 + i2] ... }
    becomes
        %m = kernel.reduce max i1 ... { %a = kernel.load evict_last %x[20000*i0 + i1] ... }
        kernel.for i2 ... { %b = kernel.load evict_first %x[20000*i0 + i2] ...
          kernel.store evict_first %e, %y[20000*i0 + i2] ... }
    """

    name = "kernel-hint-cache"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Give hints in every kernel for a GPU."""
        if facts.target.hints_cache:
            for access, policy in _eviction(function, facts).items():
                if "cache" not in access.properties and counter(self.name):
                    access.properties["cache"] = string_attr(policy)


def _eviction(function: kernel.FuncOp, facts: KernelFacts) -> Mapping[Operation, str]:
    """Loads, and stores of kernels with such, with the policy that suits them.

    What several loops of a program read is kept until the last of them; results must not take its place. A buffer of
    which each program reads a part of its own, in one loop and once, is hardly needed again (a program may look
    up single elements): it goes before what is written lately and waits in the cache for its way to memory or for the
    next kernel; so do rows in registers of which a program keeps numbers alone. But the next kernel may read what is
    small as well, as a backward pass reads the inputs of the forward one: that stays. Where nobody waits for the
    results (`streams`) it is the other way round for all else that is read.
    """
    ranges = facts.ranges
    loops = {op: _loops_of(op) for op in ops_in(function) if type(op) in _ACCESSES}
    written = written_buffers(function.body.block)
    inside = {type(op) for op, path in loops.items() if path and not is_local(op.buffer)}  # pyright: ignore[reportAttributeAccessIssue]
    keeps_numbers = inside == {kernel.LoadOp}
    counts: Counter[object] = Counter()
    reads: dict[tuple[SSAValue, Loop | None], list[tuple[kernel.LoadOp, Loop]]] = {}
    for op, path in loops.items():
        own = {loop.axis.data for loop in path}
        if isinstance(op, kernel.LoadOp) and path:
            counts[op.buffer] += 1
        own_rows = keeps_numbers and not _is_for_all(op)
        repeats = any(own_rows or not is_persistent(loop, ranges) for loop in path)
        if isinstance(op, kernel.LoadOp) and repeats and own <= op.map.data[0].free_symbols:
            reads.setdefault((op.buffer, _programs_of(op)), []).append((op, _first_part(path[0])))
    found: dict[Operation, str] = {}
    streamed: dict[Operation, str] = {}
    read_once: dict[SSAValue, list[kernel.LoadOp]] = {}
    for (buffer, _), all_reads in reads.items():
        _, last = all_reads[-1]
        if buffer in written:
            continue
        if any(loop is not last for _, loop in all_reads):
            found |= {op: DROP if loop is last else KEEP for op, loop in all_reads}
        elif all(_reads_whole_lines(op) for op, _ in all_reads):
            read_once.setdefault(buffer, []).extend(op for op, _ in all_reads)
    for buffer, loads in read_once.items():
        if counts[buffer] == len(loads) and _is_large(loads[0], facts) and _are_apart(loads, facts):
            streamed |= dict.fromkeys(loads, DROP)
    if found:
        stores = [op for op, path in loops.items() if isinstance(op, kernel.StoreOp) and path]
        found |= {op: DROP for op in stores if not is_local(op.buffer)}
    if function.streams is not None and not keeps_numbers:
        once = (op for op, path in loops.items() if all(_is_whole(loop, ranges) for loop in path))
        found = {op: KEEP for op in once if _reads_neighbours(op) and op.operands[0] not in written} | found
    return streamed | found


def _is_for_all(op: Operation) -> bool:
    """Whether all programs of a grid read the same, which the cache keeps anyway."""
    programs = {loop.axis.data for loop in loops_around(op) if is_grid(loop)}
    return isinstance(op, kernel.LoadOp) and bool(programs) and programs.isdisjoint(op.map.data[0].free_symbols)


def _are_apart(loads: list[kernel.LoadOp], facts: KernelFacts) -> bool:
    """Whether loads of a buffer read parts of it that certainly have nothing in common."""
    if len(loads) == 1 or _follow(loads, facts.ranges):
        return True
    grids = [_grid_of(load) for load in loads]
    known = [grid for grid in grids if grid is not None]
    return len(known) == len(loads) and not any(itertools.starmap(_meet, itertools.combinations(known, 2)))


#: the place that a load reads first, and the step and the count of each axis that moves it, the largest step first
_Grid = tuple[int, tuple[tuple[int, int], ...]]


def _grid_of(load: kernel.LoadOp) -> _Grid | None:
    """The places that a load reads; None where they are no such grid, or not known."""
    index, steps = load.map.data[0], list[tuple[int, int]]()
    for loop in loops_around(load):
        step, count = index.coefficient(loop.axis.data), (loop.hi.data - loop.lo.data).as_int()
        value = ZERO if step is None else step
        if (size := value.as_int()) is None or size < 0 or count is None or loop.lo.data is not ZERO:
            return None
        steps += [(size, count)] if size else []
        index = index - symbol(loop.axis.data) * value
    first = index.as_int()
    return None if first is None else (first, tuple(sorted(steps, reverse=True)))


def _meet(one: _Grid, other: _Grid) -> bool:
    """Whether two loads may read one place."""
    (first, steps), (second, others) = one, other
    if steps == others:
        return _is_distance(second - first, steps)
    spans = [sum(step * (count - 1) for step, count in each) for each in (steps, others)]
    return first <= second + spans[1] and second <= first + spans[0]


def _is_distance(distance: int, steps: tuple[tuple[int, int], ...]) -> bool:
    """Whether two points of a grid may be so far apart."""
    if abs(distance) > sum(step * (count - 1) for step, count in steps):
        return False
    if not steps:
        return True
    (step, count), *rest = steps
    whole = distance // step
    return any(abs(k) < count and _is_distance(distance - k * step, tuple(rest)) for k in (whole, whole + 1))


def _follow(loads: list[kernel.LoadOp], ranges: Ranges) -> bool:
    """Whether loads read parts of a buffer one behind the other."""
    first = loads[0].map.data[0]
    places = [(load.map.data[0] - first).as_int() for load in loads]
    own = [[loop.axis.data for loop in loops_around(load)] for load in loads]
    axes = ((loop.axis.data, loop.hi.data) for loop in loops_around(loads[0]))
    low, high = bounds(first, Ranges.of_axes(axes, ranges))
    if low is None or high is None or None in places or any(each != own[0] for each in own):
        return False
    known = sorted(place for place in places if place is not None)
    return all(after - before > high - low for before, after in itertools.pairwise(known))


def _is_large(op: kernel.LoadOp, facts: KernelFacts) -> bool:
    """Whether a buffer would take more of the cache than the next kernel could find there."""
    kind = op.buffer.type
    assert isinstance(kind, kernel.BufferType)
    return SHARE_OF_CACHE * facts.sizes.of(kind.extent) * element_bytes(kind) > facts.target.cache_bytes


def _reads_neighbours(op: Operation) -> bool:
    """Whether the lanes of a program read memory side by side."""
    if not isinstance(op, kernel.LoadOp) or op.buffer.type.local:  # pyright: ignore[reportAttributeAccessIssue]
        return False
    index = op.map.data[0]
    return any(is_tiled(loop) and loop.axis.data in index.free_symbols for loop in loops_around(op))


def _is_whole(loop: Loop, ranges: Ranges) -> bool:
    """Whether one step covers an axis, all of it: not a part that another loop goes on from."""
    uses = (use.operation for result in loop.results for use in result.uses)
    goes_on = any(isinstance(op, kernel.ReduceOp) and op.goes_on for op in (loop, *uses))
    return not goes_on and is_persistent(loop, ranges)


def _first_part(loop: Loop) -> Loop:
    """The loop that others go on from: what a peeled loop reads, its parts read between them, each its own."""
    while isinstance(loop, kernel.ReduceOp) and loop.goes_on and isinstance(loop.init[0].owner, kernel.ReduceOp):
        loop = loop.init[0].owner
    return loop


def _loops_of(op: Operation) -> list[Loop]:
    """The loops around an access that a program runs itself, outermost first."""
    return [loop for loop in loops_around(op) if not is_grid(loop)]


def _programs_of(op: Operation) -> Loop | None:
    """The nest around an access, if programs share it out: other nests are other programs, at about the same time."""
    outermost = loops_around(op)[0]
    return outermost if is_grid(outermost) else None


def _reads_whole_lines(op: kernel.LoadOp) -> bool:
    """Whether each program reads a part of its own, neighbours in memory at a time."""
    index, loops = op.map.data[0], loops_around(op)
    programs = {loop.axis.data for loop in loops if is_grid(loop)}
    along = (loop.axis.data for loop in loops if is_tiled(loop))
    return bool(programs) and programs <= index.free_symbols and any(_are_neighbours(index, axis) for axis in along)


def _are_neighbours(index: Expr, axis: str) -> bool:
    """Whether elements lie side by side along an axis, at least where it begins: rows may follow one another on it."""
    others = dict.fromkeys(index.free_symbols, _SIZE)
    first, second = (index.evaluate({**others, axis: place}) for place in (0, 1))
    return is_unit(index.coefficient(axis)) or second - first == 1
