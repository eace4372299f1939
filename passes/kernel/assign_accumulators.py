"""The pass `kernel-assign-accumulators`."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.loop.body import yielded
from ...dialects.raw import ops_of
from ..analysis.loops import Loop, is_loop, loops_in
from ..analysis.nests import element_bytes
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import for_cpu
from .transforms import set_mapping

#: Accumulators of a reduction in lanes without a tile fill this many bytes: two AVX-512 or four AVX2 registers.
ACCUMULATOR_BYTES = 128
#: Shorter reductions run one element after the other.
LEAST_TRIP = 8
#: lanes of the widest tile that runs in lanes; a longer one is only a hint for other targets
MOST_LANES = 256
#: steps in a block of a long sum of floats
BLOCK_STEPS = 32
#: shorter sums of floats are made in one go
LEAST_BLOCKED = 64


class KernelAssignAccumulators(KernelPass, kernels=for_cpu):
    """Say how many accumulators reductions on a CPU have, and after how many elements they begin anew.

    Level: kernel.

    Precondition: kernels for a CPU, with the loops that are to stay (`kernel-unroll-quotients`); others are left alone.
    Guarantee: a loop around others, and a reduction, is `vector` only where it runs in lanes, and its tile says in how
    many: a power of two in a reduction, whose lanes are combined in a tree. What does not fit lanes is `serial`. Long
    sums of floats have a `block`, a whole number of tiles: behind each block, and there alone, they are added in
    float64, so that rounding errors grow with the length of a block only. Lanes of a pinned nest stay as they are,
    unless they are none.

        %s = kernel.reduce sum r0 in 0 to n map vector tile 64 { ... kernel.yield %v }
    becomes
        %s = kernel.reduce sum r0 in 0 to n map vector tile 64 block 2048 { ... kernel.yield %v }
    """

    name = "kernel-assign-accumulators"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Assign accumulators in every kernel for a CPU."""
        for loop in function.body.block.ops:
            if is_loop(loop):
                _assign(loop, in_lanes=False)


def _assign(op: Loop, in_lanes: bool) -> None:
    """Assign in a loop and those inside of it; `in_lanes`: it runs once for all lanes of one around it."""
    runs_in_lanes = False
    if not in_lanes and not isinstance(op, kernel.ScanOp):
        lanes = _lanes_of_reduction(op) if isinstance(op, kernel.ReduceOp) else _lanes_of_loop(op)
        runs_in_lanes = lanes is not None
        if lanes is not None:
            set_mapping(op, "vector", lanes)
        elif op.mapping.data == "vector" and (isinstance(op, kernel.ReduceOp) or _has_loops(op)):
            set_mapping(op, "serial")
    if isinstance(op, kernel.ReduceOp) and op.block is None:
        step = op.tile.value.data if runs_in_lanes and op.tile is not None else 1
        if kernel.float_sums(op) and _is_long(op, step) and counter(KernelAssignAccumulators.name):
            op.properties["block"] = IntegerAttr(step * BLOCK_STEPS, i64)
    around = lanes_of(op) is not None
    for inner in (each for region in op.regions for each in ops_of(region.block)):
        if is_loop(inner):
            _assign(inner, in_lanes or around)


def lanes_of(op: Loop) -> int | None:
    """In how many lanes the whole body of an axis runs, accumulators and local buffers included; else None.

    A straight loop without results is `vector` as a hint alone: what is in it runs one iteration after the other.
    """
    if op.mapping.data != "vector" or op.tile is None or isinstance(op, kernel.ScanOp):
        return None
    return op.tile.value.data if isinstance(op, kernel.ReduceOp) or _has_loops(op) else None


def _lanes_of_loop(op: kernel.ForOp) -> int | None:
    """Lanes of a loop around others; None for one that does not run in lanes, or has nothing to decide."""
    if op.mapping.data != "vector" or op.tile is None or not _has_loops(op) or not fits_lanes(op, op.axis.data):
        return None
    return op.tile.value.data if is_pinned(op) else _at_most(op, min(op.tile.value.data, MOST_LANES))


def _lanes_of_reduction(op: kernel.ReduceOp) -> int | None:
    """Number of accumulators of a reduction in lanes; None for a serial one."""
    if op.mapping.data != "vector" or op.combine is not None:
        return None
    if _has_loops(op) and (op.tile is None or not fits_lanes(op, op.axis.data)):
        return None
    if op.tile is not None and is_pinned(op) and op.tile.value.data.bit_count() == 1:
        return op.tile.value.data
    trip = _trip(op)
    if trip is not None and trip < LEAST_TRIP:
        return None
    wanted = ACCUMULATOR_BYTES // max(element_bytes(v.type) for v in yielded(op.body))
    if op.tile is not None and op.tile.value.data <= MOST_LANES:
        wanted = op.tile.value.data
    return 1 << (_at_most(op, wanted).bit_length() - 1)  # a power of two, for the tree


def fits_lanes(op: Operation, axis: str) -> bool:
    """Whether the inner loops of an op run over the same range for every value of `axis`."""
    inner = [each for region in op.regions for each in loops_in(region.block)]
    return all(axis not in each.lo.data.free_symbols | each.hi.data.free_symbols for each in inner)


def _is_long(op: kernel.ReduceOp, step: int) -> bool:
    trip = _trip(op)
    return trip is None or trip // step > LEAST_BLOCKED


def _has_loops(op: Operation) -> bool:
    return any(is_loop(inner) for region in op.regions for block in region.blocks for inner in ops_of(block))


def _trip(op: Loop) -> int | None:
    return (op.hi.data - op.lo.data).as_int()


def _at_most(op: Loop, wanted: int) -> int:
    trip = _trip(op)
    return wanted if trip is None else max(1, min(wanted, trip))
