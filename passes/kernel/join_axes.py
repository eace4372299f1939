"""The pass `kernel-join-axes`."""

from __future__ import annotations

from math import prod

from xdsl.ir import Block

from ...dialects import kernel
from ...dialects.sym import ZERO
from ...records import dataclass
from ..analysis.loops import Loop, kernel_names, substitute_axes
from ..counters import counter
from .gpu_blocks import TOLERATED_WASTE, GpuBlocks, power_above, tile_along, waste
from .gpu_legality import is_innermost
from .gpu_nest import GpuNest
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_for_gpu
from .spread import has_programs
from .tiles import extent_of, is_grid
from .transforms import join_reductions, linearise, perfect_chain, range_of, rebuild_chain, reduction_chain, set_mapping


@dataclass(frozen=True)
class KernelJoinAxes(KernelPass, kernels=free_for_gpu):
    """Join axes of a GPU kernel that fill no tile one by one: one loop over all their iterations (loop collapsing).

    Level: kernel.

    Precondition: behind `kernel-map`; kernels that are tiled, or are not for a GPU, stay as they are.
    Guarantee: three kinds of axes become one each, whose index is divided anew in each lane. The axes of an elementwise
    nest on the grid, if their tiles would idle, or hide from Triton which places lie side by side; the joined axis has
    its tile. Reductions in each other that are all a program does, if tiles as long as a row would idle; the joined
    one has its tile, which need not end where rows do, for nothing is kept of the elements. And perfect nests of loops
    of constant length inside of a program, if one tile covers all their iterations.

        kernel.for i0 in 0 to 1000 map grid { kernel.for i1 in 0 to 33 map grid { ... kernel.load %x[40*i0 + i1] ... } }
    becomes
        kernel.for i2 in 0 to 33000 map grid tile 128 {
          ... kernel.load %x[40*(i2 floordiv 33) + (i2 mod 33)] ... }
    """

    name = "kernel-join-axes"
    elements: int = 0
    longest_row: int = 0
    step: int = 0
    least_per_thread: int = 0
    edge_bytes: int = 0

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Join axes in every kernel that will be for a GPU."""
        if not has_programs(function):
            return
        blocks = GpuBlocks.of(facts.target, self)
        for loop in [each for each in function.body.block.ops if isinstance(each, Loop)]:
            if isinstance(loop, kernel.ForOp) and is_grid(loop):
                _join_in_programs(GpuNest(function, loop, facts.target, facts.sizes, blocks))
            else:
                _join_rows(function, loop, blocks)


def _join_in_programs(nest: GpuNest) -> None:
    if nest.column_axis is not None:
        return
    if nest.is_flat:
        if len(nest.chain) > 1:
            _join_grid(nest)
        return
    _join_sums(nest)
    for op in _loops(nest.body):
        _join_rows(nest.function, op, nest.blocks)


def _loops(block: Block) -> list[Loop]:
    return [op for op in block.ops if isinstance(op, Loop)]


def _join_grid(nest: GpuNest) -> None:
    """One axis over all iterations of a flat nest, of which tiles waste next to nothing."""
    if not all(loop.hi.data.is_constant for loop in nest.chain[1:]):
        return
    _, suits = nest.elementwise_tiles()
    if suits or not counter(KernelJoinAxes.name):
        return
    tile = nest.budget()
    joined = _joined(nest.function, nest.chain)
    set_mapping(joined, "grid", tile)


def _joined(function: kernel.FuncOp, chain: list[kernel.ForOp]) -> kernel.ForOp:
    joined, values = linearise([range_of(loop) for loop in chain], kernel_names(function))
    (loop,) = rebuild_chain(chain, [joined])
    substitute_axes(loop.body.block, values)
    return loop


def _join_sums(nest: GpuNest) -> None:
    """Make one reduction over all elements of the reductions over rows and within each row.

    It does so where these are all that a program does, and where tiles as long as a row would leave lanes idle.
    """
    loops, blocks = _loops(nest.body), nest.blocks
    if len(loops) != 1 or not isinstance(loops[0], kernel.ReduceOp):
        return
    chain = reduction_chain(loops[0])
    lengths = [extent_of(op).as_int() or 0 for op in chain]
    row, total = lengths[-1], prod(lengths)
    wasteful = waste(row, power_above(row)) > TOLERATED_WASTE and row <= blocks.longest_row
    whole = row % blocks.least_per_thread == 0 and is_innermost(chain[-1])
    if len(chain) == 1 or not total or any(op.lo.data is not ZERO for op in chain) or not (wasteful and whole):
        return
    if counter(KernelJoinAxes.name):
        joined = join_reductions(chain, kernel_names(nest.function))
        set_mapping(joined, "vector", tile_along(total, blocks.step))


def _join_rows(function: kernel.FuncOp, op: Loop, blocks: GpuBlocks) -> None:
    """Join perfect nests in an op, itself included, that a tile covers."""
    if isinstance(op, kernel.ForOp):
        chain = perfect_chain(op)
        lengths = [extent_of(loop).as_int() for loop in chain]
        fixed = len(chain) > 1 and None not in lengths and all(loop.lo.data is ZERO for loop in chain)
        covered = fixed and prod(length for length in lengths if length) <= blocks.longest_row
        if covered and counter(KernelJoinAxes.name):
            op = _joined(function, chain)
    for region in op.regions:
        for inner in _loops(region.block):
            _join_rows(function, inner, blocks)
