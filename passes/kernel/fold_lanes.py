"""The pass `kernel-fold-lanes`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from xdsl.dialects.arith import CmpiOp
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, as_expr, symbol
from ..analysis.effects import written_buffers
from ..analysis.loops import named_in_bounds, substitute_axes
from ..counters import counter
from .conditions import condition_on, resolve_conditions
from .gpu_legality import flat_nests
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_for_gpu
from .simplify_block import BlockSimplifier, remove_dead
from .split_lanes import PARTS
from .transforms import append_body, set_range

#: elements of a part of an axis at least, for a lane to compute an element of each part
SHORTEST_PART = 32


class KernelFoldLanes(KernelPass, kernels=free_for_gpu):
    """Let a lane compute an element of each part of an axis that conditions cut in equal parts (thread coarsening).

    Level: kernel.

    Precondition: in front of `kernel-map`; kernels that are tiled, or are not for a GPU, stay as they are.
    Guarantee: where conditions cut an axis of a nest that programs share out into equal parts, and two of them read the
    same, the axis is as long as a part, and an iteration does what one of each part did, without the conditions. A
    rotation, `x * cos + cat(-x[.., 64:], x[.., :64]) * sin`, reads all of x twice, half of it masked; over 64 lanes
    that compute elements `i` and `64 + i` each, both are read once and nothing is masked or selected.

        kernel.for i1 in 0 to 128 { %i = kernel.index i1  %n = kernel.index 64  %c = arith.cmpi slt, %i, %n : i64
          %v = kernel.load %x[i1]  %r = kernel.load %x[i1 + 64] if %c else %z ... kernel.store %o, %y[i1] }
    becomes
        kernel.for i1 in 0 to 64 { %v = kernel.load %x[i1]  %r = kernel.load %x[i1 + 64] ...
          kernel.store %o, %y[i1] ... kernel.store %p, %y[i1 + 64] }
    """

    name = "kernel-fold-lanes"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Fold lanes of every kernel that will be for a GPU."""
        for chain in flat_nests(function, lambda chain: _foldable(chain) is not None):
            fold_lanes(function, chain, self.name)


def _foldable(chain: Sequence[kernel.ForOp]) -> tuple[kernel.ForOp, range] | None:
    """The first loop of a perfect nest that can be folded, and its parts."""
    ops = list(chain[-1].body.block.ops)
    bounds = named_in_bounds(chain)
    for loop in (each for each in chain if each.axis.data not in bounds):
        parts = _parts(loop, ops)
        if parts and parts.step >= SHORTEST_PART and _shares(loop, ops, parts):
            return loop, parts
    return None


def fold_lanes(function: kernel.FuncOp, chain: Sequence[kernel.ForOp], counted: str) -> None:
    """Fold the first axis of a perfect nest that can be; `counted` is the pass that asks.

    The iterations of the nest must not depend on each other, and its innermost block holds no loops.
    """
    found = _foldable(chain)
    if found is not None and counter(counted):
        _fold(found[0], chain[-1], found[1])
        BlockSimplifier(written_buffers(function.body.block)).run(chain[-1].body.block)
        remove_dead(chain[-1].body.block)


def _parts(loop: kernel.ForOp, ops: Sequence[Operation]) -> range | None:
    """Where the equal parts of an axis start, and where it ends; None if conditions cut it in others."""
    length = loop.hi.data.as_int()
    if loop.lo.data is not ZERO or length is None:
        return None
    cuts = {found[0] for op in ops if (found := condition_on(op, loop)) is not None and 0 < found[0] < length}
    count = len(cuts) + 1
    if not 1 < count <= PARTS or length % count:
        return None
    parts = range(0, length + 1, length // count)
    return parts if cuts == set(parts[1:-1]) else None


def _shares(loop: kernel.ForOp, ops: Sequence[Operation], parts: range) -> bool:
    """Whether two parts read the same places of a buffer that the kernel only reads, every lane another one."""
    reads = [_reads(loop, ops, start) for start in parts[:-1]]
    return any(not one.isdisjoint(other) for one, other in combinations(reads, 2))


def _reads(loop: kernel.ForOp, ops: Sequence[Operation], start: int) -> set[tuple[SSAValue, Expr]]:
    axis = loop.axis.data
    found: set[tuple[SSAValue, Expr]] = set()
    for op in ops:
        if isinstance(op, kernel.LoadOp) and not op.dynamic and axis in (index := op.map.data[0]).free_symbols:
            only_read = all(isinstance(use.operation, kernel.LoadOp) for use in op.buffer.uses)
            if only_read and _is_read(op, loop, start):
                found.add((op.buffer, index.subs({axis: symbol(axis) + as_expr(start)})))
    return found


def _is_read(op: kernel.LoadOp, loop: kernel.ForOp, start: int) -> bool:
    """Whether a load reads memory in the part that begins at `start`, as far as conditions on the axis tell."""
    if op.mask is None:
        return True
    found = condition_on(op.mask.owner, loop) if isinstance(op.mask.owner, CmpiOp) else None
    return found is None or (start < found[0]) == found[1]


def _fold(loop: kernel.ForOp, innermost: kernel.ForOp, parts: range) -> None:
    axis = loop.axis.data
    copies = [innermost.clone() for _ in parts[1:-1]]
    for start, part in zip(parts, (innermost, *copies), strict=False):
        block = part.body.block
        resolve_conditions(block, loop, start)
        if part is not innermost:
            substitute_axes(block, {axis: symbol(axis) + as_expr(start)})
            append_body(innermost.body.block, block)
    set_range(loop, (axis, ZERO, as_expr(parts.step)))
