"""The pass `kernel-map-softmax-sums`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.loops import loops_in
from ..analysis.sizes import Sizes
from ..common.implementations import MOST_OF_CHAIN
from .gpu_blocks import power_above
from .kernel_pass import KernelFacts
from .load_in_lanes import lies_apart
from .map_to_units import MapToUnits, has_units, objection_to_inner, sink
from .products import StepTile, UnitsNest, recognised_nests
from .scheduled import untiled_for_gpu
from .transforms import set_mapping


@dataclass(frozen=True)
class KernelMapSoftmaxSums(MapToUnits, kernels=untiled_for_gpu):
    """Map sums over a softmax of products onto matrix units: tiles of rows, steps along the row, all columns at once.

    Level: kernel.

    Precondition: in front of `kernel-map`; loops are serial. Kernels that are tiled or mapped stay as they are, and so
    does everything without the option `loop_products`, but for products that carry a `tile`, which
    `graph-choose-products` chose.
    Guarantee: a kernel for a GPU whose nests are all perfect nests of parallel loops, around reductions `softmax_sum`
    whose x is made of products and pointwise ops, is finished. The loop along which x varies and what it weighs does
    not, the rows, is the last of the grid and has a tile; the one along which what it weighs varies alone, the
    columns, is covered by one tile, so that x is computed once. Both reductions are `matrix`, with a step; the inner
    ones are covered where they are short. The kernel has warps and stages. Nothing else changes. The other options are
    the numbers of the schedule, to try others.

        kernel.for i0 in 0 to 512 { kernel.for i1 in 0 to 64 {
          %m, %s, %t = kernel.reduce softmax_sum i2 in 0 to 512 {
            %p = kernel.reduce sum i3 in 0 to 64 { ... arith.mulf %q, %k ... }  ...  kernel.yield %x, %one, %v } ... } }
    becomes
        kernel.for i0 in 0 to 512 map grid tile 128 { kernel.for i1 in 0 to 64 map vector tile 64 {
          %m, %s, %t = kernel.reduce softmax_sum i2 in 0 to 512 map matrix tile 64 {
            %p = kernel.reduce sum i3 in 0 to 64 map matrix tile 64 { ... } ... } ... } }
    """

    name = "kernel-map-softmax-sums"
    loop_products: bool = False
    softmax_rows: int = 0
    softmax_step: int = 0
    softmax_stages: int = 0
    softmax_warps: int = 0

    @property
    def wanted(self) -> StepTile:
        """The tile that the options ask for."""
        return StepTile(self.softmax_rows, self.softmax_step, self.softmax_warps, self.softmax_stages)

    def may_map(self, function: kernel.FuncOp) -> bool:
        """Whether there is such a sum."""
        return any(isinstance(op, kernel.ReduceOp) and _is_softmax_sum(op) for op in function.walk())

    def nests_of(self, function: kernel.FuncOp, facts: KernelFacts) -> list[SoftmaxNest] | str:
        """Sums over a softmax of what the target has units for."""
        return recognised_nests(function, lambda chain, sums: _nest(chain, sums, facts.sizes, facts.target))

    def tile_of(self, nest: SoftmaxNest, facts: KernelFacts, wanted: StepTile) -> StepTile:
        """One by the size of the heads."""
        return softmax_tile(nest, facts.sizes, facts.target).fitted(wanted)

    def map(
        self, nest: SoftmaxNest, rows: kernel.ForOp, columns: kernel.ForOp, tile: StepTile, facts: KernelFacts
    ) -> None:
        """Tiles of rows, all columns at once, and steps along the softmax and in its products."""
        set_mapping(rows, "grid", tile.rows)
        for op in nest.sums:
            set_mapping(op, "matrix", tile.step)
        self.cover(columns, nest.inner, facts)
        sink(nest.sums)


@dataclass(frozen=True)
class SoftmaxNest(UnitsNest):
    """A nest whose reductions are by `softmax_sum`: the weights vary along rows alone, what they weigh along columns.

    parts: what each of the reductions sums
    inner: the products in their bodies
    """

    parts: tuple[kernel.WeightedSum, ...]
    inner: tuple[kernel.ReduceOp, ...]


def _is_softmax_sum(op: kernel.ReduceOp) -> bool:
    return {c.data for c in op.combiners} == {"softmax_sum"}


def _nest(
    chain: Sequence[kernel.ForOp], sums: Sequence[kernel.ReduceOp], sizes: Sizes, target: GpuTarget
) -> SoftmaxNest | str:
    """A nest as sums over a softmax, or why it is none."""
    if not all(map(_is_softmax_sum, sums)):
        return "its body is more than sums over a softmax, and what is done with them"
    sides: set[tuple[str, str]] = set()
    parts: list[kernel.WeightedSum] = []
    for total in sums:
        found = _sides(total, chain, sizes)
        if isinstance(found, str):
            return found
        parts += found
        sides.add((found[0].rows, found[0].columns))
        if not has_units(target, found[0].element):
            return f"the target has no matrix units for {found[0].element}"
    if len(sides) != 1:
        return "its sums have several pairs of rows and columns"
    rows, columns = (next(loop for loop in chain if loop.axis.data == axis) for axis in sides.pop())
    if sizes.trips(columns) > MOST_OF_CHAIN or columns.hi.data.as_int() is None:
        return f"it has more than {MOST_OF_CHAIN} columns"
    inner = [each for total in sums for each in loops_in(total.body.block)]
    objection = next((why for each in inner if (why := objection_to_inner(each, target))), None)
    if objection is not None:
        return objection
    batch = tuple(loop for loop in chain if loop not in (rows, columns))
    return SoftmaxNest(batch, rows, columns, tuple(sums), tuple(parts), tuple(inner))  # pyright: ignore[reportArgumentType]


def _sides(op: kernel.ReduceOp, chain: Sequence[kernel.ForOp], sizes: Sizes) -> list[kernel.WeightedSum] | str:
    """What a reduction sums, with the longest loops along which either factor varies alone as rows and columns."""
    x, _, value, *_ = yielded(op.body)
    scores = kernel.axes_of(x)
    columns = [loop for loop in chain if loop.axis.data in kernel.axes_of(value) - scores]
    weighed = frozenset[str]() if len(columns) != 1 else kernel.axes_of(_along(value, columns[0]))
    rows = [loop for loop in chain if loop.axis.data in scores - weighed]
    if len(columns) != 1 or not rows:
        return "the weights, or what they weigh, have no rows of their own"
    longest = max(rows, key=lambda loop: (sizes.trips(loop), chain.index(loop)))
    return kernel.weighted_parts(op, [longest.axis.data, columns[0].axis.data])


def _along(value: SSAValue, columns: kernel.ForOp) -> SSAValue:
    """The factor that varies along the columns; the other one, as what dropout keeps, belongs to the weights."""
    op = value.owner
    if isinstance(op, arith.MulfOp):
        along = [each for each in op.operands if columns.axis.data in kernel.axes_of(each)]
        if len(along) == 1:
            return along[0]
    return value


#: registers of a thread beside those of tiles, and of all those that it should take of the 255 that there are
_OTHER_REGISTERS, _MOST_REGISTERS = 60, 248
#: registers for an element of the scores: itself and its weight in 16 bits
_OF_SCORE = 1.5
#: registers for an element of a tile that is loaded one by one: its address and itself; each lane that loads what it
#: uses (`kernel-load-in-lanes`) has few addresses at a time
_OF_GATHERED, _OF_LANES = 3, 1


def softmax_tile(nest: SoftmaxNest, sizes: Sizes, target: GpuTarget) -> StepTile:
    """A tile by the size of the heads; smaller where there are few rows, and where a thread had too few registers."""
    longest = max(sizes.trips(nest.columns), *(sizes.trips(op) for op in nest.inner), 16)
    ops = [op for total in nest.sums for op in total.body.block.ops]
    is_small = any(isinstance(op, arith.SelectOp) or _is_gathered(op, nest) for op in ops)
    tiles = target.chains
    tile = StepTile(*tiles.of(tiles.masked if is_small else tiles.weighed, longest))
    if isinstance(nest.parts[0].element, Float32Type):
        tile = StepTile(min(tile.rows, 64), 32, tile.warps, 2)
    width = max(16, power_above(sizes.trips(nest.columns)))
    gathered = _OF_LANES if target.loads_in_lanes else _OF_GATHERED
    return _without_spills(tile.within(nest, nest.sums, sizes), nest, width, gathered)


def _without_spills(tile: StepTile, nest: SoftmaxNest, width: int, gathered: int) -> StepTile:
    """More warps, then shorter steps, until what a program keeps fits the registers of its threads."""
    gathers = gathered * sum(_is_gathered(op, nest) for total in nest.sums for op in total.body.block.ops)
    while registers_of(tile, width, len(nest.parts), gathers) > _MOST_REGISTERS:
        if tile.warps < 8 <= tile.rows // 16:
            tile = replace(tile, warps=8)
        elif tile.step > 16:
            tile = replace(tile, step=tile.step // 2)
        else:
            break
    return tile


def registers_of(tile: StepTile, width: int, sums: int, gathers: int) -> float:
    """About how many registers of 32 bits a thread takes; ptxas took 0.55 to 1.2 times as many for an H100.

    width: columns; gathers: what each element of the scores takes that is loaded one by one
    """
    scores = tile.rows * tile.step
    elements = sums * (tile.rows * width + _OF_SCORE * scores) + gathers * scores
    return _OTHER_REGISTERS + elements / (32 * tile.warps)


def _is_gathered(op: Operation, nest: SoftmaxNest) -> bool:
    """Whether an op loads a tile of rows and steps whose elements do not lie as wide loads want them."""
    rows = [nest.rows.axis.data]
    return isinstance(op, kernel.LoadOp) and any(lies_apart(op, total.axis.data, rows) for total in nest.sums)
