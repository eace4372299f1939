"""The pass `kernel-map-softmax-sums`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import Float32Type, IntegerAttr, StringAttr, i64
from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.loop import yielded
from ...machines import GpuTarget
from ..analysis.loops import is_loop, loops_in
from ..analysis.sizes import Sizes
from ..common.choices import chosen_tile
from ..counters import counter
from ..remarks import remark
from .gpu_legality import box_of, independent_nests, is_serial
from .kernel_pass import KernelFacts, KernelPass
from .map_products import has_units, loops_outside_in, round_factors, sink
from .scheduled import is_mapped, untiled_for_gpu
from .transforms import range_of, set_mapping, set_range

#: columns of a result that a program keeps at most: what they are weighed by is computed once for all of them
MOST_COLUMNS = 256
#: elements of the inner products' depth a step at most
MOST_DEPTH = 256


@dataclass(frozen=True)
class KernelMapSoftmaxSums(KernelPass, kernels=untiled_for_gpu):
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

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Map every kernel that is such a sum, and is not tiled yet."""
        chosen = chosen_tile(function)
        if not self.loop_products and chosen is None:
            return
        reductions = (inner for inner in function.walk() if isinstance(inner, kernel.ReduceOp))
        if is_mapped(function) or not any(map(_is_softmax_sum, reductions)):
            return
        nests = softmax_nests(function, facts.sizes, facts.target)
        if isinstance(nests, str):
            remark("missed", self.name, function, f"not on matrix units: {nests}")
        elif counter(self.name):
            self._map(function, nests, facts.sizes, facts.target, chosen or ())

    def _map(
        self,
        function: kernel.FuncOp,
        nests: Sequence[SoftmaxNest],
        sizes: Sizes,
        target: GpuTarget,
        chosen: tuple[int, ...],
    ) -> None:
        """Write a schedule into a kernel; all nests have warps and stages in common."""
        wanted = SoftmaxTile(self.softmax_rows, self.softmax_step, self.softmax_warps, self.softmax_stages)
        if len(chosen) == len(vars(wanted)):
            wanted = SoftmaxTile(*chosen).fitted(wanted)
        tiles = [softmax_tile(nest, sizes, target).fitted(wanted) for nest in nests]
        for nest, tile in zip(nests, tiles, strict=True):
            _map(nest, tile, sizes)
            remark("passed", self.name, function, "on matrix units", **vars(tile))
        function.properties["num_warps"] = IntegerAttr(max(tile.warps for tile in tiles), i64)
        function.properties["num_stages"] = IntegerAttr(min(tile.stages for tile in tiles), i64)
        function.properties["target"] = StringAttr(target.name)


@dataclass(frozen=True)
class SoftmaxNest:
    """A perfect nest of parallel loops around sums over a softmax.

    batch:   loops along which everything varies, outermost first
    rows:    the loop along which the weights vary alone
    columns: the loop along which what they weigh varies alone
    sums:    the reductions `softmax_sum`
    parts:   what each of them sums
    inner:   the products in their bodies
    """

    batch: tuple[kernel.ForOp, ...]
    rows: kernel.ForOp
    columns: kernel.ForOp
    sums: tuple[kernel.ReduceOp, ...]
    parts: tuple[kernel.WeightedSum, ...]
    inner: tuple[kernel.ReduceOp, ...]

    @property
    def loops(self) -> tuple[kernel.ForOp, ...]:
        """All parallel loops, in the order in which programs are numbered."""
        return (*self.batch, self.rows, self.columns)


@dataclass(frozen=True)
class SoftmaxTile:
    """How a program computes such a nest. A number that is 0 is left to `softmax_tile`.

    rows:   of the result
    step:   elements of the softmax's axis a step
    warps:  of a program
    stages: steps that are on their way at once
    """

    rows: int = 0
    step: int = 0
    warps: int = 0
    stages: int = 0

    def fitted(self, wanted: SoftmaxTile) -> SoftmaxTile:
        """The same with the numbers that are wanted."""
        return SoftmaxTile(*(getattr(wanted, name) or getattr(self, name) for name in self.__dataclass_fields__))


def _is_softmax_sum(op: kernel.ReduceOp) -> bool:
    return {c.data for c in op.combiners} == {"softmax_sum"}


def softmax_nests(function: kernel.FuncOp, sizes: Sizes, target: GpuTarget) -> list[SoftmaxNest] | str:
    """The nests of a kernel as sums over a softmax, or why one of them is none that matrix units compute."""
    block = function.body.block
    ops = [op for op in block.ops if not isinstance(op, kernel.YieldOp)]
    if is_serial(function) or independent_nests(block) != set(ops):
        return "the kernel has more than nests whose programs are independent"
    found: list[SoftmaxNest] = []
    for op in ops:
        assert isinstance(op, kernel.ForOp)
        nest = _nest(op, sizes, target)
        if isinstance(nest, str):
            return nest
        found.append(nest)
    return found or "it has no nest"


def _nest(op: kernel.ForOp, sizes: Sizes, target: GpuTarget) -> SoftmaxNest | str:
    """A nest as sums over a softmax, or why it is none."""
    chain = box_of(op)
    body = chain[-1].body.block
    sums = [each for each in body.ops if isinstance(each, kernel.ReduceOp)]
    if not sums or sum(map(is_loop, body.ops)) != len(sums) or not all(map(_is_softmax_sum, sums)):
        return "its body is more than sums over a softmax, and what is done with them"
    if any(isinstance(each, kernel.LocalOp) for each in op.walk()):
        return "it has a local buffer"
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
    if sizes.trips(columns) > MOST_COLUMNS or columns.hi.data.as_int() is None:
        return f"it has more than {MOST_COLUMNS} columns"
    inner = [each for total in sums for each in loops_in(total.body.block)]
    objection = next((why for each in inner if (why := _objection(each, target))), None)
    if objection is not None:
        return objection
    batch = tuple(loop for loop in chain if loop not in (rows, columns))
    return SoftmaxNest(batch, rows, columns, tuple(sums), tuple(parts), tuple(inner))  # pyright: ignore[reportArgumentType]


def _sides(op: kernel.ReduceOp, chain: Sequence[kernel.ForOp], sizes: Sizes) -> list[kernel.WeightedSum] | str:
    """What a reduction sums, with the longest loops along which either factor varies alone as rows and columns."""
    x, _, value, *_ = yielded(op.body)
    scores, weighed = kernel.axes_of(x), kernel.axes_of(value)
    rows = [loop for loop in chain if loop.axis.data in scores - weighed]
    columns = [loop for loop in chain if loop.axis.data in weighed - scores]
    if len(columns) != 1 or not rows:
        return "the weights, or what they weigh, have no rows of their own"
    longest = max(rows, key=lambda loop: (sizes.trips(loop), chain.index(loop)))
    return kernel.weighted_parts(op, [longest.axis.data, columns[0].axis.data])


def _objection(op: object, target: GpuTarget) -> str | None:
    """Why a loop in the body of a sum is no product on matrix units."""
    if not isinstance(op, kernel.ReduceOp):
        return "the body of a sum has a loop that is no reduction"
    products = kernel.products_of(op)
    if isinstance(products, str):
        return products
    for product in products:
        element = kernel.element_of(product)
        narrow = product.precision in ("bf16", "f16")
        if not narrow and (element is None or not has_units(target, element)):
            return "its factors are of a type without matrix units"
    return None


#: rows, step, warps, stages by the columns and depth that they are for
_TILES = {64: SoftmaxTile(128, 64, 4, 3), 128: SoftmaxTile(128, 64, 8, 3), 256: SoftmaxTile(64, 64, 8, 2)}


#: registers of a thread beside those of tiles, and of all those that it should take of the 255 that there are
_OTHER_REGISTERS, _MOST_REGISTERS = 60, 248
#: registers for an element of the scores: itself and its weight in 16 bits
_OF_SCORE = 1.5
#: registers for an element of a tile that is loaded one by one: its address and itself
_OF_GATHERED = 3
#: elements that one instruction loads, where rows are as many apart
_SIDE_BY_SIDE = 4


def softmax_tile(nest: SoftmaxNest, sizes: Sizes, target: GpuTarget) -> SoftmaxTile:
    """A tile by the size of the heads; smaller where there are few rows, and where a thread had too few registers."""
    longest = max(sizes.trips(nest.columns), *(sizes.trips(op) for op in nest.inner), 16)
    width = next((width for width in _TILES if longest <= width), 256)
    tile = _TILES[width]
    if isinstance(nest.parts[0].element, Float32Type):
        tile = SoftmaxTile(min(tile.rows, 64), 32, tile.warps, 2)
    rows = max(16, min(tile.rows, _power(sizes.trips(nest.rows))))
    step = max(16, min(tile.step, *(_power(sizes.trips(op)) for op in nest.sums)))
    warps = tile.warps if rows >= 64 else min(tile.warps, 4)
    width = max(16, _power(sizes.trips(nest.columns)))
    return _without_spills(SoftmaxTile(rows, step, warps, tile.stages), nest, width)


def _without_spills(tile: SoftmaxTile, nest: SoftmaxNest, width: int) -> SoftmaxTile:
    """More warps, then shorter steps, until what a program keeps fits the registers of its threads."""
    gathers = sum(_is_gathered(op, nest) for total in nest.sums for op in total.body.block.ops)
    while registers_of(tile, width, len(nest.parts), gathers) > _MOST_REGISTERS:
        if tile.warps < 8 <= tile.rows // 16:
            tile = replace(tile, warps=8)
        elif tile.step > 16:
            tile = replace(tile, step=tile.step // 2)
        else:
            break
    return tile


def registers_of(tile: SoftmaxTile, width: int, sums: int, gathers: int) -> float:
    """About how many registers of 32 bits a thread takes; ptxas took 0.55 to 1.2 times as many for an H100.

    width: columns; gathers: tiles of rows and steps that are loaded element by element
    """
    scores = tile.rows * tile.step
    elements = sums * (tile.rows * width + _OF_SCORE * scores) + _OF_GATHERED * gathers * scores
    return _OTHER_REGISTERS + elements / (32 * tile.warps)


def _is_gathered(op: Operation, nest: SoftmaxNest) -> bool:
    """Whether an op loads a tile of rows and steps whose elements do not lie as wide loads want them."""
    if not isinstance(op, kernel.LoadOp):
        return False
    rows, along = nest.rows.axis.data, {total.axis.data for total in nest.sums}
    axes = kernel.axes_of(op.value)
    if rows not in axes or not along & axes:
        return False
    apart = op.map.data[0].coefficient(rows)
    distance = None if apart is None else apart.as_int()
    return bool(op.dynamic) or distance is None or distance % _SIDE_BY_SIDE != 0


def _power(number: int) -> int:
    """The next power of two."""
    return 1 << max(number - 1, 0).bit_length()


def _map(nest: SoftmaxNest, tile: SoftmaxTile, sizes: Sizes) -> None:
    """Write a schedule into a nest."""
    ranges = [range_of(loop) for loop in nest.loops]
    chain = loops_outside_in(nest.loops)
    for loop, axis in zip(chain, ranges, strict=True):
        set_range(loop, axis)
        set_mapping(loop, "grid")
    *_, rows, columns = chain
    set_mapping(rows, "grid", tile.rows)
    set_mapping(columns, "vector", max(16, _power(sizes.trips(columns))))
    for op in nest.sums:
        set_mapping(op, "matrix", tile.step)
    for op in nest.inner:
        products = kernel.products_of(op)
        assert not isinstance(products, str)
        round_factors(op)
        set_mapping(op, "matrix", max(16, min(MOST_DEPTH, _power(sizes.trips(op)))))
    sink(nest.sums)
