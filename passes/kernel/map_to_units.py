"""What the passes share that map nests onto matrix units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import Float32Type, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from ...dialects import kernel
from ...dialects.effects import has_side_effect
from ...dialects.scalar import NarrowOp, WidenOp
from ...machines import GpuTarget
from ..analysis.effects import needed_by
from ..analysis.loops import loops_around
from ..common.choices import chosen_tile
from ..common.implementations import MOST_OF_CHAIN
from ..counters import counter
from ..remarks import remark
from .gpu_blocks import power_above
from .kernel_pass import KernelFacts, KernelPass
from .products import NARROW, RowsNest, Tile
from .scheduled import is_mapped
from .transforms import range_of, set_mapping, set_range


class MapToUnits(KernelPass):
    """A pass that maps kernels whose nests are all of a kind, and says what warps and stages they have."""

    loop_products: bool

    @property
    def wanted(self) -> Tile:
        """The tile that the options ask for."""
        raise NotImplementedError

    def may_map(self, function: kernel.FuncOp) -> bool:
        """Whether it is worth looking at the nests of a kernel."""
        return any(isinstance(op, kernel.ReduceOp) for op in function.walk())

    def nests_of(self, function: kernel.FuncOp, facts: KernelFacts) -> Sequence[RowsNest] | str:
        """The nests of a kernel, or why matrix units do not compute them."""
        raise NotImplementedError

    def tile_of(self, nest: Any, facts: KernelFacts, wanted: Any) -> Any:
        """The tile of a nest, with the numbers that are wanted."""
        raise NotImplementedError

    def map(self, nest: Any, rows: kernel.ForOp, columns: Any, tile: Any, facts: KernelFacts) -> None:
        """Write a schedule into a nest whose parallel loops are on the grid, rows and columns the innermost of them.

        columns: None in a nest that has none
        """
        raise NotImplementedError

    def cover(self, columns: kernel.ForOp | None, inner: Sequence[kernel.ReduceOp], facts: KernelFacts) -> None:
        """Give a program all columns at once, and let products in the bodies of sums run on matrix units."""
        if columns is not None:
            set_mapping(columns, "vector", max(16, power_above(facts.sizes.trips(columns))))
        for op in inner:
            round_factors(op)
            set_mapping(op, "matrix", max(16, min(MOST_OF_CHAIN, power_above(facts.sizes.trips(op)))))

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Map a kernel that is not tiled yet, and is of the kind."""
        chosen = chosen_tile(function)
        if (not self.loop_products and chosen is None) or is_mapped(function) or not self.may_map(function):
            return
        nests = self.nests_of(function, facts)
        if isinstance(nests, str):
            remark("missed", self.name, function, f"not on matrix units: {nests}")
        elif counter(self.name):
            wanted = self.wanted
            if chosen is not None:
                wanted = wanted.chosen(chosen).fitted(wanted)
            tiles = [self.tile_of(nest, facts, wanted) for nest in nests]
            for nest, tile in zip(nests, tiles, strict=True):
                rows, *columns = _put_on_grid(nest)[len(nest.batch) :]
                self.map(nest, rows, columns[0] if columns else None, tile, facts)
                remark("passed", self.name, function, "on matrix units", **tile.told())
            function.properties["num_warps"] = IntegerAttr(max(tile.warps for tile in tiles), i64)
            function.properties["num_stages"] = IntegerAttr(min(tile.stages for tile in tiles), i64)
            function.properties["target"] = StringAttr(facts.target.name)
            if len(nests) == 1 and (resident := getattr(tiles[0], "resident", 0)):
                function.properties["programs"] = IntegerAttr(resident * facts.target.processors, i64)


def _put_on_grid(nest: RowsNest) -> list[kernel.ForOp]:
    """Let the parallel loops of a nest be the grid, in the order in which programs are numbered."""
    ranges = [range_of(loop) for loop in nest.loops]
    chain = sorted(nest.loops, key=lambda loop: len(loops_around(loop)))
    for loop, axis in zip(chain, ranges, strict=True):
        set_range(loop, axis)
        set_mapping(loop, "grid")
    return chain


def has_units(target: GpuTarget, element: Attribute) -> bool:
    """Whether a target multiplies tiles of a type; float32 takes ordinary instructions where there are no units."""
    return element == Float32Type() or str(element) in target.matrix_units


def objection_to_inner(op: object, target: GpuTarget) -> str | None:
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


def round_factors(op: kernel.ReduceOp) -> None:
    """Round the factors of products in 16 bits that were computed more exactly than a library would have read them."""
    products = kernel.products_of(op, chained=True)
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
    needed = set[Operation]().union(*(needed_by(op, block) for op in sums))
    last: Operation = sums[-1]
    for op in front:
        if op not in needed and op not in sums:
            op.detach()
            block.insert_op_after(op, last)
            last = op
