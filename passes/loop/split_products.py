"""`loop-split-products`: products of few tiles sum parts of their depth beside each other."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, Float32Type, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.kernel import PRECISION
from ...dialects.loop import GenerateOp, LoadOp, ReduceOp, yielded
from ...machines import GpuTarget
from ...machines.nests import PRODUCT, NestShape, recorded_tile
from ...records import dataclass
from ..analysis.sizes import Sizes
from ..common.choices import TILE, chosen_tile
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._devices import target_of
from .split_reductions import Splitter, plan

#: the place of the number of parts among the sizes of a chosen tile
_PARTS = 5
#: elements of the depth that a part has at least, a step of matrix units
_LEAST_PART = 64


@dataclass(frozen=True)
class SplitProducts(LoopPass):
    """Sum parts of the depth of a product beside each other, and then these (split-K).

    level:         loop
    precondition:  `loop-inline` before; no `loop.fusion` yet; in front of `loop-split-reductions`
    guarantee:     the same values, the sums of float32 in another order, the same in each call. A sum of products on a
                   GPU with matrix units, whose chosen tile says `parts`, or with the option `loop_products` the one
                   that was recorded for the same product, or with `depth_parts` each one, becomes a generate of so many
                   partial sums for each element, in float32, and a sum of these in the nest, in front of what was done
                   with the sum. `kernel-map-products` has the parts as a batch, so that few rows with a long depth give
                   programs to all of a GPU. The number of parts is one that divides the depth, near the one that was
                   asked for; a depth that none divides stays whole.

        %s = loop.generate (i0 in 16, i1 in 2048) {
          %r = loop.reduce sum (r0 in 5632) { ... %x[i0, r0] * %w[r0, i1] ... } ... } : T
    becomes
        %p = loop.generate (i0 in 4, i1 in 16, i2 in 2048) {
          %r = loop.reduce sum (r0 in 1408) { ... %x[i1, 1408*i0 + r0] * %w[1408*i0 + r0, i2] ... } ... }
        %s = loop.generate (i0 in 16, i1 in 2048) {
          %r = loop.reduce sum (r0 in 4) { ... %p[r0, i0, i1] ... } ... } : T
    """

    name = "loop-split-products"

    loop_products: bool = False
    """Every product is a nest, so that nobody chose a tile: the one that was recorded for the same product counts."""
    depth_parts: int = 0
    """Parts of every product, to try others than were chosen."""

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        sizes = Sizes.of_function(function)
        for nest in [op for op in block.ops if type(op) is GenerateOp]:
            target = target_of(nest)
            if isinstance(target, GpuTarget) and target.matrix_units:
                self._visit(nest, sizes)

    def _visit(self, nest: GenerateOp, sizes: Sizes) -> None:
        """Split the one reduction of a nest."""
        sums = [op for op in nest.body.block.ops if op.regions]
        if len(sums) != 1 or not _is_product(reduce := sums[0]):
            return
        assert isinstance(reduce, ReduceOp)
        depth = sizes.product(reduce.axes.sizes)
        parts = min(self.depth_parts or self._chosen_parts(nest, reduce, sizes), depth // _LEAST_PART)
        if parts < 2:
            return
        split = plan(reduce.axes, parts, sizes, _LEAST_PART)
        if split.bound is not None:
            remark("missed", self.name, nest, f"no number of parts near {parts} divides the depth", depth=depth)
        elif counter(self.name):
            remark("passed", self.name, nest, "parts of the depth", depth=depth, parts=str(split.parts[0]))
            Splitter(nest, reduce, split, parts_first=True).run(beside_rows=False)

    def _chosen_parts(self, nest: GenerateOp, reduce: ReduceOp, sizes: Sizes) -> int:
        """The parts of the tile that was chosen, or recorded; then the nest of the parts has that tile."""
        chosen = chosen_tile(nest)
        recorded = _recorded(nest, reduce, sizes) if chosen is None and self.loop_products else ()
        tile = [*(chosen or recorded)]
        parts = tile[_PARTS] if len(tile) > _PARTS else 0
        if parts and chosen is None:
            _product(reduce).attributes[TILE] = DenseArrayBase.from_list(i64, tile)
        return parts


def _recorded(nest: GenerateOp, reduce: ReduceOp, sizes: Sizes) -> tuple[int, ...]:
    """The best tile of what was measured of the same product, where the last two axes are rows and columns."""
    target = target_of(nest)
    precision = _product(reduce).attributes.get(PRECISION)
    if not isinstance(target, GpuTarget) or not isinstance(precision, StringAttr) or len(nest.axes.data) < 2:
        return ()
    *batch, rows, columns = nest.axes.sizes
    last = frozenset(nest.axes.names[-2:])
    loads = [op for op in nest.body.block.ops if isinstance(op, LoadOp)]
    behind = any(last <= frozenset().union(*(e.free_symbols for e in op.map.data)) for op in loads)
    numbers = sizes.product(batch), sizes.of(rows), sizes.of(columns), sizes.product(reduce.axes.sizes)
    shape = NestShape(PRODUCT, precision.data, numbers, ("behind",) if behind else ())
    return recorded_tile(shape, target.nests)


def _product(reduce: ReduceOp) -> Operation:
    """The multiplication that a sum adds up."""
    owner = yielded(reduce.body)[0].owner
    assert isinstance(owner, Operation)
    return owner


def _is_product(op: object) -> bool:
    """Whether an op is sums of float32 over products, whose body has no loops."""
    if type(op) is not ReduceOp or {c.data for c in op.combiners} != {"sum"}:
        return False
    is_flat = not any(inner.regions for inner in op.body.block.ops)
    are_products = all(type(value.owner) is arith.MulfOp for value in yielded(op.body))
    return is_flat and are_products and all(isinstance(result.type, Float32Type) for result in op.results)
