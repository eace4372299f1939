"""The pass `kernel-map-products`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from ...dialects import kernel
from ...dialects.effects import has_side_effect
from ...dialects.scalar import NarrowOp, WidenOp
from ...machines import GpuTarget
from ..analysis.sizes import Sizes
from ..common.choices import chosen_tile
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .products import NARROW, ProductNest, ProductTile, product_nests, product_tile
from .scheduled import is_mapped, untiled_for_gpu
from .transforms import range_of, set_mapping, set_range

#: what a chosen tile says
_SIZES = ("rows", "columns", "depth", "warps", "stages")


@dataclass(frozen=True)
class KernelMapProducts(KernelPass, kernels=untiled_for_gpu):
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
    computed more exactly are rounded, as eager rounds them. The other options are the numbers of the schedule, to try
    others.

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
    swizzle: int = 8

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Map every kernel that is a product, and is not tiled yet."""
        chosen = chosen_tile(function)
        if not self.loop_products and chosen is None:
            return
        if is_mapped(function) or not any(isinstance(inner, kernel.ReduceOp) for inner in function.walk()):
            return
        sizes = facts.sizes
        nests = product_nests(function, sizes)
        if not isinstance(nests, str):
            lacking = [nest.element for nest in nests if not has_units(facts.target, nest.element)]
            nests = f"the target has no matrix units for {lacking[0]}" if lacking else nests
        if isinstance(nests, str):
            remark("missed", self.name, function, f"not on matrix units: {nests}")
        elif counter(self.name):
            self._map(function, nests, sizes, facts.target, chosen or ())

    def _map(
        self,
        function: kernel.FuncOp,
        nests: Sequence[ProductNest],
        sizes: Sizes,
        target: GpuTarget,
        chosen: tuple[int, ...],
    ) -> None:
        """Write a schedule into a kernel; all nests have warps and stages in common."""
        wanted = ProductTile(self.tile_rows, self.tile_columns, self.tile_depth, self.warps, self.stages)
        if len(chosen) == len(_SIZES):
            wanted = ProductTile(*chosen).fitted(wanted)
        tiles = [product_tile(nest, sizes, target, wanted) for nest in nests]
        for nest, tile in zip(nests, tiles, strict=True):
            _map(nest, tile, self.swizzle)
            remark("passed", self.name, function, "on matrix units", **vars(tile))
        function.properties["num_warps"] = IntegerAttr(max(tile.warps for tile in tiles), i64)
        function.properties["num_stages"] = IntegerAttr(min(tile.stages for tile in tiles), i64)
        function.properties["target"] = StringAttr(target.name)


def has_units(target: GpuTarget, element: Attribute) -> bool:
    """Whether a target multiplies tiles of a type; float32 takes ordinary instructions where there are no units."""
    return element == Float32Type() or str(element) in target.matrix_units


def _map(nest: ProductNest, tile: ProductTile, swizzle: int) -> None:
    """Write a schedule into a nest."""
    ranges = [range_of(loop) for loop in nest.loops]
    chain = loops_outside_in(nest.loops)
    for loop, axis in zip(chain, ranges, strict=True):
        set_range(loop, axis)
        set_mapping(loop, "grid")
    *_, rows, columns = chain
    set_mapping(rows, "grid", tile.rows)
    set_mapping(columns, "grid", tile.columns)
    if swizzle > 1:
        rows.properties["swizzle"] = IntegerAttr(swizzle, i64)
    for op in nest.sums:
        round_factors(op)
        set_mapping(op, "matrix", tile.depth)
    sink(nest.sums)


def round_factors(op: kernel.ReduceOp) -> None:
    """Round the factors of products in 16 bits that were computed more exactly than a library would have read them."""
    products = kernel.products_of(op)
    assert not isinstance(products, str)
    for product in products:
        element = NARROW.get(product.precision or "")
        for place, factor in enumerate((product.left, product.right)):
            if element is None or kernel.operand_of(factor).type == element:
                continue
            narrow = NarrowOp.of(factor, factor.type, element)
            widen = WidenOp.of(narrow.results[0], element, factor.type)
            op.body.block.insert_ops_before([narrow, widen], product.op)
            product.op.operands[place] = widen.results[0]


def sink(sums: Sequence[kernel.ReduceOp]) -> None:
    """Move what sums do not need behind them, unless something is stored in front of one."""
    block = sums[0].parent
    assert block is not None
    front = list(block.ops)[: list(block.ops).index(sums[-1])]
    if any(has_side_effect(op) for op in front):
        return
    needed: set[Operation] = set()
    for op in reversed([*front, sums[-1]]):
        if op in sums or op in needed:
            inner = (value.owner for each in op.walk() for value in each.operands)
            needed.update(owner for owner in inner if isinstance(owner, Operation) and owner.parent is block)
    last: Operation = sums[-1]
    for op in front:
        if op not in needed and op not in sums:
            op.detach()
            block.insert_op_after(op, last)
            last = op


def loops_outside_in(loops: Sequence[kernel.ForOp]) -> list[kernel.ForOp]:
    """Loops of one nest, outermost first."""
    return sorted(loops, key=_depth)


def _depth(loop: kernel.ForOp) -> int:
    """How many ops are around a loop."""
    count, parent = 0, loop.parent_op()
    while parent is not None:
        count, parent = count + 1, parent.parent_op()
    return count
