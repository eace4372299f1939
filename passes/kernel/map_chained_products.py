"""The pass `kernel-map-chained-products`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.loops import loops_in
from ..analysis.sizes import Sizes
from ..common.implementations import MOST_OF_CHAIN
from .kernel_pass import KernelFacts
from .map_to_units import MapToUnits, has_units, objection_to_inner, round_factors, sink
from .products import NARROW, RowsNest, StepTile, recognised_nests, rows_and_columns
from .scheduled import untiled_for_gpu
from .transforms import set_mapping

#: what rows may be reduced by
_OF_ROWS = frozenset(("sum", "max"))


@dataclass(frozen=True)
class KernelMapChainedProducts(MapToUnits, kernels=untiled_for_gpu):
    """Map sums of products onto matrix units whose factors are made of products: tiles of rows, all columns at once.

    Level: kernel.

    Precondition: in front of `kernel-map`; loops are serial. Kernels that are tiled or mapped stay as they are, and so
    does everything without the option `loop_products`, but for products that carry a `tile`, which
    `graph-choose-products` chose.
    Guarantee: a kernel for a GPU whose nests are all perfect nests of parallel loops, around reductions whose bodies
    have products of matrices, is finished. The loop along which these products vary beside the reduction's axis, the
    rows, is the last of the grid and has a tile. A reduction is one of two kinds. A sum of products, of which one
    factor is made of the inner products and varies along the rows, and the other one along the columns: both run on
    matrix units, and a program has all columns, so that inner products are computed once for a tile of rows and a step.
    Or a sum or maximum of a row of what is made of inner products: it runs by tiles of lanes. Nothing else changes.

        kernel.for i0 in 0 to 512 { kernel.for i1 in 0 to 64 {
          %g = kernel.reduce sum i2 in 0 to 512 {
            %s = kernel.reduce sum i3 in 0 to 64 { ... }   %p = math.exp %s ...   %r = arith.mulf %p, %t
            kernel.yield %r } ... } }
    becomes
        kernel.for i0 in 0 to 512 map grid tile 64 { kernel.for i1 in 0 to 64 map vector tile 64 {
          %g = kernel.reduce sum i2 in 0 to 512 map matrix tile 64 {
            %s = kernel.reduce sum i3 in 0 to 64 map matrix tile 64 { ... } ... } ... } }
    """

    name = "kernel-map-chained-products"
    loop_products: bool = False
    chain_rows: int = 0
    chain_step: int = 0
    chain_warps: int = 0
    chain_stages: int = 0

    @property
    def wanted(self) -> StepTile:
        """The tile that the options ask for."""
        return StepTile(self.chain_rows, self.chain_step, self.chain_warps, self.chain_stages)

    def may_map(self, function: kernel.FuncOp) -> bool:
        """Whether there is a reduction with products in its body."""
        return any(isinstance(op, kernel.ReduceOp) and _has_inner(op) for op in function.walk())

    def nests_of(self, function: kernel.FuncOp, facts: KernelFacts) -> list[ChainNest] | str:
        """Reductions of what products make, of types that the target has units for."""
        return recognised_nests(function, lambda chain, sums: _nest(chain, sums, facts.sizes, facts.target))

    def tile_of(self, nest: ChainNest, facts: KernelFacts, wanted: StepTile) -> StepTile:
        """One by the columns and the depth."""
        return chain_tile(nest, facts.sizes, facts.target).fitted(wanted)

    def map(
        self,
        nest: ChainNest,
        rows: kernel.ForOp,
        columns: kernel.ForOp | None,
        tile: StepTile,
        facts: KernelFacts,
    ) -> None:
        """Tiles of rows, all columns at once, and steps along the reductions and in the products inside."""
        set_mapping(rows, "grid", tile.rows)
        for op in nest.sums:
            if columns is not None:
                round_factors(op)
            set_mapping(op, "vector" if columns is None else "matrix", tile.step)
        self.cover(columns, nest.inner, facts)
        sink(nest.sums)


@dataclass(frozen=True)
class ChainNest(RowsNest):
    """A nest of reductions with products in their bodies.

    columns: of the products that the reductions sum; None where they reduce rows
    sums:    the reductions
    inner:   the products in their bodies
    element: the type that matrix units read
    """

    columns: kernel.ForOp | None
    sums: tuple[kernel.ReduceOp, ...]
    inner: tuple[kernel.ReduceOp, ...]
    element: Attribute

    @property
    def loops(self) -> tuple[kernel.ForOp, ...]:
        """All parallel loops, in the order in which programs are numbered."""
        return (*self.batch, self.rows) if self.columns is None else (*self.batch, self.rows, self.columns)


def chain_tile(nest: ChainNest, sizes: Sizes, target: GpuTarget) -> StepTile:
    """A tile by the columns and depth; smaller where there are few rows."""
    columns = 0 if nest.columns is None else sizes.trips(nest.columns)
    longest = max(columns, *(sizes.trips(op) for op in nest.inner), 16)
    is_one = nest.columns is not None and sum(len(op.results) for op in nest.sums) == 1
    rows = prod(sizes.trips(loop) for loop in (*nest.batch, nest.rows))
    tiles = target.chains
    is_many = is_one and rows >= tiles.many_rows * target.processors
    tile = StepTile(*tiles.of(tiles.single if is_many else tiles.chained, longest))
    if isinstance(nest.element, Float32Type):
        tile = StepTile(min(tile.rows, 64), 32, tile.warps, 1)
    return tile.within(nest, nest.sums, sizes)


def _has_inner(op: kernel.ReduceOp) -> bool:
    return any(isinstance(each, kernel.ReduceOp) for each in op.body.block.ops)


def _nest(
    chain: Sequence[kernel.ForOp], sums: Sequence[kernel.ReduceOp], sizes: Sizes, target: GpuTarget
) -> ChainNest | str:
    """A nest as reductions of what products make, or why it is none."""
    inner = [each for total in sums for each in loops_in(total.body.block)]
    if not all(map(_has_inner, sums)):
        return "a reduction has no product in its body"
    objection = next((why for each in inner if (why := objection_to_inner(each, target))), None)
    if objection is not None:
        return objection
    sides: set[tuple[kernel.ForOp, kernel.ForOp | None]] = set()
    for total in sums:
        found = _sides(total, chain, sizes, target)
        if isinstance(found, str):
            return found
        sides.add(found)
    if len(sides) != 1:
        return "its reductions have several pairs of rows and columns"
    rows, columns = sides.pop()
    if columns is not None and (sizes.trips(columns) > MOST_OF_CHAIN or columns.hi.data.as_int() is None):
        return f"it has more than {MOST_OF_CHAIN} columns"
    batch = tuple(loop for loop in chain if loop not in (rows, columns))
    products = cast(list[kernel.ReduceOp], inner)
    return ChainNest(batch, rows, columns, tuple(sums), tuple(products), _element(products[0]))


def _element(op: kernel.ReduceOp) -> Attribute:
    """The type that matrix units read of the factors of a product."""
    products = kernel.products_of(op, chained=True)
    assert not isinstance(products, str)
    return NARROW.get(products[0].precision or "") or kernel.element_of(products[0]) or Float32Type()


def _sides(
    op: kernel.ReduceOp, chain: Sequence[kernel.ForOp], sizes: Sizes, target: GpuTarget
) -> tuple[kernel.ForOp, kernel.ForOp | None] | str:
    """The loops along which a reduction has its rows and columns; no columns where it reduces rows."""
    if op.combine is not None or not {c.data for c in op.combiners} <= _OF_ROWS:
        return "its reductions are no sums or maxima"
    products = kernel.products_of(op, chained=True)
    if isinstance(products, str):
        return _rows(op, chain, sizes)
    sides: set[tuple[kernel.ForOp, kernel.ForOp]] = set()
    for product in products:
        computed = [_reads_inner(factor, op) for factor in (product.left, product.right)]
        if all(computed):
            return _rows(op, chain, sizes)
        found = rows_and_columns(op, product if computed[0] else product.swapped(), chain, sizes)
        if isinstance(found, str):
            return _rows(op, chain, sizes)
        if product.precision not in NARROW and kernel.element_of(product) is None:
            return "a product reads factors of two types, and rounds none of them"
        sides.add(found)
    if len(sides) != 1 or not has_units(target, _element(op)):
        return "its products have several pairs of rows and columns, or a type without matrix units"
    return sides.pop()


def _reads_inner(value: SSAValue, total: kernel.ReduceOp) -> bool:
    """Whether a scalar of a body is made of what its loops compute."""
    op = value.owner
    if not isinstance(op, Operation) or op.parent is not total.body.block:
        return False
    return bool(op.regions) or any(_reads_inner(each, total) for each in op.operands)


def _rows(
    total: kernel.ReduceOp, chain: Sequence[kernel.ForOp], sizes: Sizes
) -> tuple[kernel.ForOp, kernel.ForOp | None] | str:
    """The loop along which the inner products of a reduction of rows vary, beside its axis."""
    found: set[kernel.ForOp] = set()
    for inner in loops_in(total.body.block):
        products = kernel.products_of(cast(kernel.ReduceOp, inner))
        assert not isinstance(products, str)
        for product in products:
            sides = kernel.axes_of(product.left), kernel.axes_of(product.right)
            along = [side for side in sides if total.axis.data in side]
            if len(along) != 1:
                return "both factors of a product vary along the reduction's axis, or none does"
            own = sides[0] if along[0] is sides[1] else sides[1]
            alone = [loop for loop in chain if loop.axis.data in own - along[0]]
            if not alone:
                return "one factor has no rows of its own: it is a product of a vector"
            found.add(max(alone, key=lambda loop: (sizes.trips(loop), chain.index(loop))))
    return (found.pop(), None) if len(found) == 1 else "its products have several axes of rows"
