"""What rows that programs of a GPU work on are like: what they read, what lanes keep, how often they divide."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.loop import MONOIDS
from ...dialects.sym import ZERO, Ranges
from ..analysis.loops import Loop
from ..analysis.nests import is_unit
from .gpu_nest import GpuNest
from .tiles import covers, extent_of

#: vectors that a program multiplies with a row of a matrix at most: its lanes keep a sum for each
MOST_VECTORS = 8
#: how many times as many bytes as of the vectors there are of the matrix at least
VECTOR_SHARE = 8
#: divisions of the elements of a row by numbers of the row from which on a thread takes twice as many elements: it
#: prepares each such number
DIVISIONS = 4


def bytes_of_rows(nest: GpuNest) -> int:
    """Bytes that each element of a row takes in the buffers that have a row for each program."""
    own = [loop.axis.data for loop in nest.chain]
    rows = {
        a.op.buffer: a.bytes
        for a in nest.accesses
        if isinstance(a.op, kernel.LoadOp)
        and a.loops[-1].axis.data not in own
        and is_unit(a.stride(a.loops[-1].axis.data))
        and any(a.stride(axis) is not ZERO for axis in own)
    }
    return sum(rows.values())


def bytes_of_products(nest: GpuNest, op: Loop) -> int:
    """Bytes of rows of its own that a program multiplies with an element of a vector: of each row that it reads."""
    return sum(_rows_multiplied(nest, op))


def rows_of_products(nest: GpuNest, op: Loop) -> int:
    """How many rows of its own a program multiplies with a vector for each of its results."""
    return len(_rows_multiplied(nest, op))


def _rows_multiplied(nest: GpuNest, op: Loop) -> list[int]:
    """Bytes of an element of each row of its own that a program multiplies with a vector."""
    own = [loop.axis.data for loop in nest.chain]
    loads = (a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
    return list({a.op.map: a.bytes for a in loads if any(a.stride(axis) is not ZERO for axis in own)}.values())


def accumulators(nest: GpuNest) -> int:
    """Results that each lane gathers for itself over a loop around its row."""
    inner = (op for op in nest.innermost() if isinstance(op.parent_op(), kernel.ReduceOp))
    return sum(len(op.results) for op in inner)


def only_adds_up(nest: GpuNest) -> bool:
    """Whether each program reads long rows of 16 bits an element once, or fewer, and keeps a number of them.

    Steps, the next one on its way while one is added up, are faster than all of a row in registers: the means of
    8192 rows of 8192 elements take 0.035 ms on an H200 instead of 0.039, the sums of 4096 elements 0.036. Of weights
    of 8 bits by a vector of 16 steps of 2048 elements in four warps were the best of nine.
    """
    inner, blocks = nest.innermost(), nest.blocks
    op = inner[0]
    if len(inner) > 1 or op.tile is not None or op.parent_op() is not nest.chain[-1]:
        return False
    if not isinstance(op, kernel.ReduceOp) or op.combine is not None:
        return False
    loads = [a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op]
    long = 2 * blocks.least_step <= nest.sizes.trips(op) <= blocks.longest_row
    numbers = all(MONOIDS[name.data].arity == 1 for name in op.combiners)
    return numbers and long and max((load.bytes for load in loads), default=0) == 2


def multiplies_vector(nest: GpuNest) -> bool:
    """Whether programs sum up products of rows of their own and one vector that all of them read.

    Sums in front of these, as of the squares of the vector, read what all programs read alone. The vector may be made
    of several, such as the weight of a norm, then.
    """
    inner, own = nest.innermost(), [loop.axis.data for loop in nest.chain]
    for op in inner:
        if not isinstance(op, kernel.ReduceOp) or op.combine is not None or op.parent_op() is not nest.chain[-1]:
            return False
        if op.tile is not None or any(MONOIDS[name.data].arity > 1 for name in op.combiners):
            return False
    loads = [a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] in inner]
    rows = [a for a in loads if any(a.stride(axis) is not ZERO for axis in own)]
    shared = [a for a in loads if a not in rows]
    along = all(is_unit(a.stride(a.loops[-1].axis.data)) for a in loads)
    if not rows or not along or any(a.loops[-1] is not inner[-1] for a in rows):
        return False
    buffers = {a.op.buffer for a in shared if a.loops[-1] is inner[-1]}
    if len(inner) == 1:
        return len(shared) == len(buffers) == 1
    return bool(buffers) and len({nest.sizes.trips(op) for op in inner}) == 1


def fills_one_program(nest: GpuNest) -> bool:
    """Whether what adds up several rows has a thread for each vector of them.

    Sums of products of two rows of 4096 elements, 8192 of them, take 0.0365 ms on an H200 by 512 threads each, in
    steps 0.0403 by 128 and 0.0391 by 256. Squares of one row take 0.019 in steps.
    """
    op = nest.innermost()[0]
    own = [loop.axis.data for loop in nest.chain]
    axes = [*own, op.axis.data]  # a number for each row, such as a scale, is no row
    loads = (a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
    rows = {a.op.buffer for a in loads if all(a.stride(axis) is not ZERO for axis in axes)}
    most = nest.target.warps * nest.target.warp * nest.blocks.least_per_thread
    return len(rows) > 1 and nest.sizes.trips(op) <= most


def shared_by(nest: GpuNest, ranges: Ranges) -> kernel.ForOp | None:
    """A short axis of the grid along which a sum reads the same of most that it reads: a program takes all of it.

    A matrix times few vectors, as sums over its rows: each program reads its rows once for all of the vectors.
    """
    inner = nest.innermost()
    if len(nest.chain) < 2 or not all(isinstance(op, kernel.ReduceOp) and op.combine is None for op in inner):
        return None
    loads = [a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] in inner]
    for loop in nest.chain:
        axis = loop.axis.data
        if not covers(extent_of(loop), MOST_VECTORS, ranges) or nest.sizes.trips(loop) < 2 or nest.decides_bounds(loop):
            continue
        is_shared = {a: a.stride(axis) is ZERO for a in loads}
        own, shared = (sum(nest.footprint(a) for a in loads if is_shared[a] is which) for which in (False, True))
        if own * VECTOR_SHARE <= shared:
            return loop
    return None


def keeps_several(op: Loop) -> bool:
    """Whether each lane of a reduction keeps several numbers for one result, as `welford` does."""
    return isinstance(op, kernel.ReduceOp) and any(MONOIDS[name.data].arity > 1 for name in op.combiners)


def combines_pairs(op: Loop) -> bool:
    """Whether what lanes of a reduction keep is combined pair by pair, as `argmax` does.

    Then it takes long to combine the results of rows of lanes behind the loop, while sums, and moments of lanes that
    count alike, are added up.
    """
    if not isinstance(op, kernel.ReduceOp):
        return False
    return any(MONOIDS[name.data].arity > 1 and name.data != "welford" for name in op.combiners)


def divides_often(nest: GpuNest) -> bool:
    """Whether a nest divides the elements of a row by many numbers that are the same for the whole row.

    Each thread computes the reciprocals of such divisors anew, which takes long, so that a thread should have more
    elements. The backward pass of cosine similarity has 8 such divisions: 8192 rows of 4096 take 0.094 ms on an H200
    with twice as many elements a thread, and 0.112 ms without.
    """
    return sum(map(_divisions_by_numbers, nest.innermost())) >= DIVISIONS


def _divisions_by_numbers(loop: Loop) -> int:
    """Quotients in a loop whose divisor is the same in all of its iterations, and whose dividend is not."""
    varying: set[SSAValue] = set()
    count = 0
    for op in loop.body.block.ops:
        if isinstance(op, arith.DivfOp):
            count += op.lhs in varying and op.rhs not in varying
        used = frozenset[str]()
        if isinstance(op, kernel.LoadOp):
            used = op.map.data[0].free_symbols
        elif isinstance(op, kernel.IndexOp):
            used = op.expr.data.free_symbols
        if loop.axis.data in used or any(value in varying for value in op.operands):
            varying.update(op.results)
    return count
