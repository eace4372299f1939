"""Nests that are matrix products, and the tiles in which a GPU's matrix units compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from math import prod
from typing import ClassVar, Self, TypeVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute

from ...dialects import kernel
from ...machines import GpuTarget
from ...machines.nests import PRODUCT, NestShape, recorded_tile
from ...machines.product_tiles import TILES, TilePace, best_behind
from ...records import dataclass
from ..analysis.effects import independent_nests
from ..analysis.loops import is_loop
from ..analysis.nests import element_bytes
from ..analysis.sizes import Sizes
from ..common.choices import chosen_tile
from ..common.implementations import LEAST_OF_UNITS
from .gpu_blocks import power_above
from .gpu_legality import box_of, is_serial

#: what factors of float32 are rounded to, by the precision of their product
NARROW: dict[str, Attribute] = {"bf16": BFloat16Type(), "f16": Float16Type()}


@dataclass(frozen=True)
class RowsNest:
    """A perfect nest of parallel loops around reductions, and what is done with their results.

    batch:   loops along which all factors vary, or none, outermost first
    rows:    the loop along which the first factors vary alone
    """

    batch: tuple[kernel.ForOp, ...]
    rows: kernel.ForOp

    @property
    def loops(self) -> tuple[kernel.ForOp, ...]:
        """All parallel loops, in the order in which programs are numbered."""
        return (*self.batch, self.rows)


@dataclass(frozen=True)
class UnitsNest(RowsNest):
    """Such a nest whose second factors vary along columns.

    columns: the loop along which the second factors vary alone
    sums:    the reductions
    """

    columns: kernel.ForOp
    sums: tuple[kernel.ReduceOp, ...]

    @property
    def loops(self) -> tuple[kernel.ForOp, ...]:
        """All parallel loops, in the order in which programs are numbered."""
        return (*self.batch, self.rows, self.columns)


@dataclass(frozen=True)
class ProductNest(UnitsNest):
    """A nest whose reductions sum products over the depth.

    element: the type that matrix units read
    factors: how many different factors of one side one loop over the depth reads at most, and of the other side
    """

    element: Attribute
    factors: tuple[int, int] = (1, 1)


Recognised = TypeVar("Recognised", bound=RowsNest)
#: what the loops of a nest and the reductions right inside of them are, or why they are nothing for matrix units
Recogniser = Callable[[Sequence[kernel.ForOp], Sequence[kernel.ReduceOp]], Recognised | str]


def recognised_nests(function: kernel.FuncOp, recognise: Recogniser[Recognised]) -> list[Recognised] | str:
    """All nests of a kernel as something that matrix units compute, or why one of them is not."""
    block = function.body.block
    ops = [op for op in block.ops if not isinstance(op, kernel.YieldOp)]
    if is_serial(function) or independent_nests(block) != set(ops):
        return "the kernel has more than nests whose programs are independent"
    found: list[Recognised] = []
    for op in ops:
        assert isinstance(op, kernel.ForOp)
        chain = box_of(op)
        body = chain[-1].body.block
        sums = [each for each in body.ops if isinstance(each, kernel.ReduceOp)]
        if not sums or sum(map(is_loop, body.ops)) != len(sums):
            return "its body is more than sums, and what is done with them"
        if any(isinstance(each, kernel.LocalOp) for each in op.walk()):
            return "it has a local buffer"
        nest = recognise(chain, sums)
        if isinstance(nest, str):
            return nest
        found.append(nest)
    return found or "it has no nest"


def turned(nest: ProductNest) -> ProductNest:
    """The same nest with columns for rows, so that the factors change places."""
    return replace(nest, rows=nest.columns, columns=nest.rows)


def product_nests(function: kernel.FuncOp, sizes: Sizes) -> list[ProductNest] | str:
    """The nests of a kernel as products, or why one of them is none that matrix units compute."""
    return recognised_nests(function, lambda chain, sums: _sides(chain, sums, sizes))


def _sides(chain: Sequence[kernel.ForOp], sums: Sequence[kernel.ReduceOp], sizes: Sizes) -> ProductNest | str:
    """Which loops of a chain run rows and columns, the same for all products."""
    products = [(op, kernel.products_of(op)) for op in sums]
    objection = next((found for _, found in products if isinstance(found, str)), None)
    if objection is not None:
        return objection
    elements = {_element(product) for _, found in products for product in found}  # pyright: ignore
    if len(elements) != 1 or (element := elements.pop()) is None:
        return "its factors are of several types, or of one without matrix units"
    sides: set[frozenset[kernel.ForOp]] = set()
    most = 1, 1
    for op, found in products:
        for product in found:
            assert isinstance(product, kernel.Product)
            pair = rows_and_columns(op, product, chain, sizes)
            if isinstance(pair, str):
                return pair
            sides.add(frozenset(pair))
        distinct = [len({getattr(each, name) for each in found}) for name in ("left", "right")]
        most = max(most[0], *distinct), max(most[1], min(distinct))
    if len(sides) != 1:
        return "its products have several pairs of rows and columns"
    rows, columns = sorted(sides.pop(), key=chain.index)
    batch = tuple(loop for loop in chain if loop not in (rows, columns))
    return ProductNest(batch, rows, columns, tuple(sums), element, most)


def _element(product: kernel.Product) -> Attribute | None:
    """The type that matrix units read of both factors, once they are rounded to it."""
    return NARROW.get(product.precision or "") or kernel.element_of(product)


def rows_and_columns(
    op: kernel.ReduceOp, product: kernel.Product, chain: Sequence[kernel.ForOp], sizes: Sizes
) -> tuple[kernel.ForOp, kernel.ForOp] | str:
    """The loop along which either factor varies alone: the longest, for what has a tile is one loop."""
    left, right = kernel.axes_of(product.left), kernel.axes_of(product.right)
    if op.axis.data not in left & right:
        return "a factor does not vary along the depth"
    found: list[kernel.ForOp] = []
    for own, other in ((left, right), (right, left)):
        alone = [loop for loop in chain if loop.axis.data in own - other]
        if not alone:
            return "one factor has no rows of its own: it is a product of a vector"
        longest = max(alone, key=lambda loop: (sizes.trips(loop), chain.index(loop)))
        if sizes.trips(longest) < LEAST_OF_UNITS and chosen_tile(op) is None:
            return f"one factor has fewer than {LEAST_OF_UNITS} rows"
        found.append(longest)
    return found[0], found[1]


@dataclass(frozen=True)
class Tile:
    """What one program computes of a nest, and how. A number that is 0 is left to the pass that maps it."""

    #: numbers of a tile that was chosen, which may end sooner
    LEAST: ClassVar[int] = 0

    @classmethod
    def chosen(cls, numbers: Sequence[int]) -> Self:
        """The tile that was chosen for a product; none of its numbers where the product is of another kind."""
        return cls(*numbers) if cls.LEAST <= len(numbers) <= len(fields(cls)) else cls()

    def fitted(self, wanted: Self) -> Self:
        """The same with the numbers that are wanted."""
        return type(self)(*(getattr(wanted, name) or number for name, number in vars(self).items()))

    def told(self) -> dict[str, int]:
        """The numbers that there are, for remarks."""
        return {name: number for name, number in vars(self).items() if number}


@dataclass(frozen=True)
class StepTile(Tile):
    """The tile of reductions of what products make: all columns of a few rows.

    rows:   of the result
    step:   elements of the reductions' axis a step
    warps:  of a program
    stages: steps that are on their way at once
    """

    LEAST: ClassVar[int] = 4

    rows: int = 0
    step: int = 0
    warps: int = 0
    stages: int = 0

    def within(self, nest: RowsNest, sums: Sequence[kernel.ReduceOp], sizes: Sizes) -> Self:
        """The same for a nest with fewer rows, or shorter reductions: of a power of two, and 16 at least."""
        rows = max(16, min(self.rows, power_above(sizes.trips(nest.rows))))
        step = max(16, min(self.step, *(power_above(sizes.trips(op)) for op in sums)))
        return type(self)(rows, step, self.warps if rows >= 64 else min(self.warps, 4), self.stages)


#: elements of results that a thread keeps at most: half of its registers
MOST_SUMS = 128
_LEAST_ROWS = 64
"""Rows of a turned tile, of which no fewer keep units busy."""


@dataclass(frozen=True)
class ProductTile(Tile):
    """The tile of a product.

    rows, columns: of the result
    depth:  elements of the depth a step
    warps:  of a program
    stages: steps that are on their way at once
    parts:  of the depth, which `loop-split-products` made a batch
    resident: programs of a processor that take the tiles in turns (persistent); 0: each tile has a program
    last_rows, last_columns, last_depth: of those behind whole waves (`kernel-split-last-wave`); 0: they are the same
    turned: 1 where the factor of the columns is the first one, which matrix units read from registers, and the result
        is computed transposed
    """

    LEAST: ClassVar[int] = 5

    rows: int = 0
    columns: int = 0
    depth: int = 0
    warps: int = 0
    stages: int = 0
    parts: int = 0
    resident: int = 0
    last_rows: int = 0
    last_columns: int = 0
    last_depth: int = 0
    turned: int = 0

    def bytes(self, element: int, factors: tuple[int, int]) -> int:
        """Shared memory of all stages, for elements of so many bytes and so many factors of the longer side."""
        longer, shorter = max(self.rows, self.columns), min(self.rows, self.columns)
        return (max(factors) * longer + min(factors) * shorter) * self.depth * element * self.stages

    def sums(self, factors: tuple[int, int], warp: int) -> int:
        """Elements of results that one thread keeps."""
        return self.rows * self.columns * max(factors) // (self.warps * warp)

    def within_registers(self, factors: tuple[int, int], warp: int) -> ProductTile:
        """The same with fewer rows, and a stage more, where registers do not hold the sums of so many factors."""
        tile = self
        while tile.sums(factors, warp) > MOST_SUMS and tile.rows > _LEAST_ROWS:
            tile = replace(tile, rows=tile.rows // 2, stages=self.stages + 1)
        return tile


def product_tile(
    nest: ProductNest, sizes: Sizes, target: GpuTarget, wanted: ProductTile, may_take_turns: bool, may_split: bool
) -> ProductTile:
    """What is wanted, else the tile of the same product that was recorded, else that of the least time by its pace.

    Steps are shorter where longer ones would be padded more. Numbers of `wanted` that are not 0 are taken as they are,
    and where it has rows programs take turns only if it says so.

    may_take_turns: whether programs may take tiles in turns, which is measured with a copy engine alone
    may_split:      whether tiles behind whole waves may be smaller, as in a kernel of constant sizes
    """
    size = element_bytes(nest.element)
    rows, columns = sizes.trips(nest.rows), sizes.trips(nest.columns)
    batch, depth = prod(map(sizes.trips, nest.batch)), max(sizes.trips(op) for op in nest.sums)
    deep = min(depth, depth * size // 2)  # steps are of so many bytes, and paces are those of 16 bits
    reads_behind = _reads_behind(nest)
    shape = NestShape(PRODUCT, str(nest.element), (batch, rows, columns, depth), ("behind",) if reads_behind else ())
    recorded = ProductTile.chosen(recorded_tile(shape, target.nests))
    if recorded.rows and not wanted.rows and _fits(recorded, size, target, nest):
        return (recorded if may_take_turns else replace(recorded, resident=0)).fitted(wanted)
    best: tuple[float, ProductTile] | None = None
    for pace in reversed(TILES):  # the first of these fits anything
        tile = ProductTile(pace.rows, pace.columns, pace.depth, pace.warps, pace.stages, 0, pace.resident)
        tile = _of_depth(tile, depth, size, target, nest.factors).fitted(wanted)
        programs = batch * -(-rows // tile.rows) * -(-columns // tile.columns)
        is_filled = 2 * max(rows, 16) > tile.rows and 2 * max(columns, 16) > tile.columns
        is_filled &= pace.depth >= _STEP or _padded(depth, pace.depth) < _padded(depth, _STEP)
        has_turns = may_take_turns and programs > pace.resident * target.processors and depth >= _TURN * tile.depth
        is_filled &= (has_turns and not wanted.rows) or not pace.resident
        found = pace.time(programs, target.processors, deep, reads_behind), tile
        if may_split and not nest.batch and not wanted.rows and deep >= _LONG * pace.depth:
            split = best_behind(pace, rows, columns, deep, target.processors, reads_behind)
            found = found if split is None else min(found, _split(tile, split, size), key=lambda each: each[0])
        if best is None or (found[0] < best[0] and is_filled and _fits(tile, size, target, nest)):
            best = found
    assert best is not None
    return best[1]


def _padded(depth: int, step: int) -> int:
    return -(-depth // step) * step


def _split(tile: ProductTile, found: tuple[float, TilePace], element: int) -> tuple[float, ProductTile]:
    """A time with smaller tiles behind whole waves, which has to be better by more than paces err, and the tile."""
    time, last = found
    depth = last.depth * 2 // element
    split = replace(tile, last_rows=last.rows, last_columns=last.columns, last_depth=depth)
    return _DOUBT * time, split


#: steps of a depth that is long enough for smaller tiles behind whole waves
_LONG = 16
#: how much better a time with smaller tiles has to be, for it was measured for few products
_DOUBT = 1.05
#: steps of a tile, of which fewer are no time in which loads of the next tile could hide
_TURN = 3
#: elements of the depth a step, of which no fewer are better unless the last step is padded
_STEP = 64


def _reads_behind(nest: ProductNest) -> bool:
    """Whether what is done with the sums reads a matrix as large as the result."""
    block = nest.sums[0].parent
    loads = [op for op in block.ops if isinstance(op, kernel.LoadOp)] if block is not None else []
    both = {nest.rows.axis.data, nest.columns.axis.data}
    return any(both <= load.map.data[0].free_symbols for load in loads)


def _fits(tile: ProductTile, element: int, target: GpuTarget, nest: ProductNest) -> bool:
    """Whether the registers of a program hold the sums of a tile, and the memory of a processor its operands."""
    is_small = tile.rows * tile.columns <= _MOST_TWICE or not _sums_twice(nest)
    sums = tile.sums(nest.factors, target.warp)
    return is_small and sums <= MOST_SUMS and tile.bytes(element, nest.factors) <= target.shared_bytes


#: elements of a tile whose sums are added again: twice as many take 1.2 times as long on an H200, for registers spill
_MOST_TWICE = 128 * 128


def _sums_twice(nest: ProductNest) -> bool:
    """Whether sums of 8-bit floats that units add inexactly are added again, exactly, every few steps."""
    products = [each for op in nest.sums for each in kernel.products_of(op) if isinstance(each, kernel.Product)]
    return isinstance(nest.element, kernel.FLOATS8) and any(each.precision != "fast" for each in products)


def _of_depth(tile: ProductTile, depth: int, element: int, target: GpuTarget, factors: tuple[int, int]) -> ProductTile:
    """The tile with steps no longer than the depth needs, and as many stages as the memory of a processor holds."""
    step = max(16, min(tile.depth * 2 // element, 1 << max(depth - 1, 1).bit_length()))
    stages = tile.stages
    while stages > 1:
        if ProductTile(tile.rows, tile.columns, step, 0, stages).bytes(element, factors) <= target.shared_bytes:
            break
        stages -= 1
    return ProductTile(tile.rows, tile.columns, step, tile.warps, stages, tile.parts, tile.resident)
