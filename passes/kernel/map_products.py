"""The pass `kernel-map-products`."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64

from ...dialects import kernel
from ...records import dataclass
from ..common.choices import TILE, chosen_tile, is_turned
from .kernel_pass import KernelFacts
from .load_boxes import may_be_box
from .map_to_units import MapToUnits, has_units, round_factors, sink
from .products import ProductNest, ProductTile, product_nests, product_tile, turned
from .scheduled import untiled_for_gpu
from .transforms import set_mapping


def _are_boxes(nest: ProductNest) -> bool:
    """Whether a copy engine may bring all that factors are made of."""
    axes = [nest.rows.axis.data, nest.columns.axis.data]
    loads = [(each, op) for op in nest.sums for each in op.body.block.ops if isinstance(each, kernel.LoadOp)]
    return all(may_be_box(load, op, axes) for load, op in loads)


def _keep(op: kernel.ReduceOp, tile: ProductTile) -> None:
    """Write a tile onto the multiplications of a sum, as if it had been chosen for them."""
    products = kernel.products_of(op)
    assert not isinstance(products, str)
    for product in products:
        product.op.attributes[TILE] = DenseArrayBase.from_list(i64, [*vars(tile).values()])


@dataclass(frozen=True)
class KernelMapProducts(MapToUnits, kernels=untiled_for_gpu):
    """Map sums of products onto matrix units: tiles of rows and columns, and steps along the depth (tensorization).

    Level: kernel.

    Precondition: in front of `kernel-map`; loops are serial. Kernels that are tiled or mapped stay as they are, and so
    does everything without the option `loop_products`, which `graph-expand-products` has too, but for products that
    carry a `tile`, which `graph-choose-products` chose.
    Guarantee: a kernel for a GPU whose nests are all perfect nests of parallel loops, around sums over products and
    what is done with their results element by element, is finished: a loop along which the first factors vary, and one
    along which the second ones do, are the innermost loops of the grid and have tiles; the sums are `matrix`, with a
    step; and the kernel has warps and stages. What the sums do not need, such as the load of a residual, stands behind
    them, so that no registers hold it meanwhile. Nothing else changes, for the sums are what they were. The matrix
    units of the target multiply the types of the factors: 16-bit floats, int8, or float32, by ordinary instructions
    where the multiplication does not say `precision = "tf32"`. Where it says `precision = "bf16"`, factors that were
    computed more exactly are rounded, as eager rounds them. A chosen tile may turn the nest: columns are the outer loop
    then, so that their factor is the first one, which matrix units read from registers. The other options are the
    numbers of the schedule, to try others.

        kernel.for i0 in 0 to 512 { kernel.for i1 in 0 to 384 {
          %s = kernel.reduce sum i2 in 0 to 256 { ... %p = arith.mulf %a, %b : f32  kernel.yield %p } ... } }
    becomes
        kernel.for i0 in 0 to 512 map grid tile 32 swizzle 8 { kernel.for i1 in 0 to 384 map grid tile 32 {
          %s = kernel.reduce sum i2 in 0 to 256 map matrix tile 64 { ... } ... } }
    """

    name = "kernel-map-products"
    loop_products: bool = False
    tile_rows: int = 0
    tile_columns: int = 0
    tile_depth: int = 0
    stages: int = 0
    warps: int = 0
    resident: int = 0
    swizzle: int = 8

    @property
    def wanted(self) -> ProductTile:
        """The tile that the options ask for."""
        return ProductTile(
            self.tile_rows, self.tile_columns, self.tile_depth, self.warps, self.stages, 0, self.resident
        )

    def nests_of(self, function: kernel.FuncOp, facts: KernelFacts) -> list[ProductNest] | str:
        """Products of types that the target has units for."""
        nests = product_nests(function, facts.sizes)
        if isinstance(nests, str):
            return nests
        chosen = chosen_tile(function)
        if is_turned(chosen):
            nests = [turned(nest) for nest in nests]
        lacking = [nest.element for nest in nests if not has_units(facts.target, nest.element)]
        return f"the target has no matrix units for {lacking[0]}" if lacking else nests

    def tile_of(self, nest: ProductNest, facts: KernelFacts, wanted: ProductTile) -> ProductTile:
        """The largest tile of which there are enough."""
        if wanted.turned:
            wanted = wanted.within_registers(nest.factors, facts.target.warp)
        is_constant = not facts.function.symbols.data
        may_take_turns = facts.target.copies_boxes and is_constant and _are_boxes(nest)
        may_split = is_constant and sum(1 for _ in facts.function.body.block.ops) == 2  # the nest and the terminator
        tile = product_tile(nest, facts.sizes, facts.target, wanted, may_take_turns, may_split)
        return tile if may_take_turns or self.resident else replace(tile, resident=0)

    def map(
        self, nest: ProductNest, rows: kernel.ForOp, columns: kernel.ForOp, tile: ProductTile, facts: KernelFacts
    ) -> None:
        """Tiles of rows and columns, and steps along the depth."""
        sizes = (tile.columns, tile.rows) if tile.turned else (tile.rows, tile.columns)
        for loop, size in zip((rows, columns), sizes, strict=True):
            set_mapping(loop, "grid", size)
        if self.swizzle > 1:
            rows.properties["swizzle"] = IntegerAttr(self.swizzle, i64)
        for op in nest.sums:
            round_factors(op)
            set_mapping(op, "matrix", tile.depth)
            if tile.last_rows:  # `kernel-split-last-wave` reads it there
                _keep(op, tile)
        sink(nest.sums)
