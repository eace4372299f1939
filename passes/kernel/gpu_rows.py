"""What rows that programs of a GPU work on are like: what they read, what lanes keep, how often they divide."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.loop import MONOIDS
from ...dialects.sym import ZERO, Ranges, symbol
from ..analysis.loops import Loop
from ..analysis.nests import Access, is_unit
from .gpu_nest import GpuNest
from .tiles import covers, extent_of

#: vectors that a program multiplies with a row of a matrix at most: its lanes keep a sum for each
MOST_VECTORS = 8
#: how many times as many bytes as of the vectors there are of the matrix at least
VECTOR_SHARE = 8
#: divisions of the elements of a row by numbers of the row from which on a thread takes twice as many elements: it
#: prepares each such number
DIVISIONS = 4
#: neighbours of a row that share a number, as a scale, at least
GROUP = 16
#: numbers of 4 bits in a byte, each for an element of the vector
_HALVES = 2


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
    """Bytes of an element of each row of its own that a program multiplies with a vector; scales of groups are none."""
    own, along = [loop.axis.data for loop in nest.chain], op.axis.data
    loads = (a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
    rows = (a for a in loads if is_unit(a.stride(along)) and any(a.stride(axis) is not ZERO for axis in own))
    return list({a.op.map: a.bytes for a in rows}.values())


def bytes_of_vector(nest: GpuNest, op: Loop) -> int:
    """Bytes that each program reads of what all of them multiply with rows of their own."""
    own = [loop.axis.data for loop in nest.chain]
    loads = (a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
    shared = (a for a in loads if a.stride(op.axis.data) is not ZERO and all(a.stride(axis) is ZERO for axis in own))
    return nest.sizes.trips(op) * sum({a.op.map: a.bytes for a in shared}.values())


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
    of several, such as the weight of a norm, then. Rows of 4 bits have two elements of the vector for each of theirs,
    and numbers of groups of them beside them.
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
    matrix = [a for a in rows if is_unit(a.stride(a.loops[-1].axis.data))]
    groups = all(a in matrix or _is_of_groups(a) for a in rows)
    if not matrix or not groups or any(a.loops[-1] is not inner[-1] for a in rows):
        return False
    last = [a for a in shared if a.loops[-1] is inner[-1]]
    strides, front = {_stride_along(a) for a in last}, {_stride_along(a) for a in shared if a not in last}
    stride = next(iter(strides), None)
    if len(strides) != 1 or stride not in (1, _HALVES) or not front <= {1}:
        return False
    buffers = {a.op.buffer for a in last}
    if len(inner) == 1:
        return len(buffers) == 1 and len(shared) <= _HALVES
    length = nest.sizes.trips(inner[-1]) * stride
    return all(nest.sizes.trips(op) == length for op in inner[:-1])


def has_halves(nest: GpuNest) -> bool:
    """Whether each byte of the rows of `multiplies_vector` has numbers for two neighbours of the vector."""
    own, op = [loop.axis.data for loop in nest.chain], nest.innermost()[-1]
    loads = (a for a in nest.accesses if isinstance(a.op, kernel.LoadOp) and a.loops[-1] is op)
    return any(_stride_along(a) == _HALVES and all(a.stride(axis) is ZERO for axis in own) for a in loads)


def _stride_along(access: Access) -> int | None:
    """Elements between neighbours along the innermost loop around an access; None where that is no constant."""
    stride = access.stride(access.loops[-1].axis.data)
    return None if stride is None else stride.as_int()


def _is_of_groups(access: Access) -> bool:
    """Whether an access is to the same element for `GROUP` neighbours along its innermost loop, or more."""
    axis = access.loops[-1].axis.data
    if axis in access.varying:
        return False
    atoms = [atom for monomial, _ in access.index.terms for atom in monomial if axis in atom.free_symbols]
    return bool(atoms) and all(
        atom.kind == "floordiv" and atom.args[0] is symbol(axis) and (atom.args[1].as_int() or 0) >= GROUP
        for atom in atoms
    )


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
