"""`graph-expand-products`: products and attention that are nests, and so fuse with what is around them."""

from __future__ import annotations

import math
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    StringAttr,
    i64,
)
from xdsl.ir import SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.kernel import PRECISION
from ...dialects.sym import ONE, Expr, Ranges
from ...machines import GpuTarget, Target
from ...machines.nests import PRODUCT, NestShape, nearest
from ...machines.products import RowSums, filling
from ...records import dataclass
from ..common.choices import NONE, RECORDED, TILE, Candidate, mark, mark_precision
from ..common.implementations import LEAST_OF_UNITS, MOST_OF_CHAIN, NEST
from ..remarks import remark
from ._product_pass import ProductPass, at_most
from ._replacement import type_of

_ATTENTION = frozenset({
    "aten._scaled_dot_product_cudnn_attention",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_flash_attention",
})  # fmt: skip
_PRODUCTS = frozenset({"aten.mm", "aten.addmm", "aten.bmm", "aten.baddbmm"})
_INTEGERS = "aten._int_mm"
_SCALED = "aten._scaled_mm"
#: types that matrix units multiply, float32 by ordinary instructions where it is read as it is
_OF_UNITS = (BFloat16Type, Float16Type, Float32Type)
_FLOATS = (*_OF_UNITS, Float64Type)
#: bits of the results of those of 8-bit floats
_OF_SCALED = 16
#: processors for each of few programs at least
_FEW = 8


@dataclass(frozen=True)
class ExpandProducts(ProductPass):
    """Let products be nests: those of a matrix and few vectors where that is faster than a library, all on request.

    level:         aten
    precondition:  none; before `graph-pad-products`, which changes operands for the library
    guarantee:     the same values but for the order of sums: products are exact and summed in the type of computation,
                   float32 for 16 bits, and rounded once, with what is added. A product is marked as a nest if one of
                   its operands has few vectors, as many as the target's description says (`Target.row_sums`), and
                   the other one, which is the larger, is a matrix whose elements lie side by side along the depth, as
                   the weight of a linear layer: then it is a sum of rows, which reads each row once. What lies side by
                   side along the result is left to the library, as is everything on a target without such a number,
                   or with the option `row_products` off, and on a CPU a matrix that ops make.
                   Fused attention of so few queries is marked, too, where nothing
                   is dropped, it is not causal, and nothing but its result is read: its keys and values, which groups
                   of heads may share, are read where they lie. `lower-aten-to-loop` makes the nests.
                   With the option `loop_products` every other product is marked, too, unless it has fewer than 9 rows
                   or columns: `kernel-map-products` and `kernel-jam-rows` schedule those nests. Such a product
                   says how exact its factors are read, `precision = "bf16"`, or "f16", or with `allow_tf32` and float32
                   "tf32", with 10 bits behind the point, as the library does: what is inlined into it is more exact.
                   So is `aten._int_mm` then on a GPU, so that scales behind it are multiplied where it is summed, and
                   `aten._scaled_mm` of 8-bit floats, with `precision = "fast"` where it says `use_fast_accum`, which
                   is one without the option as well where that was faster when the most similar one was measured.

        %y = aten.mm(%x, %w) : !aten.tensor<1x2048xbf16, device = "cuda:0">
    becomes
        %y = aten.mm(%x, %w) {implementation = "nest"} : !aten.tensor<1x2048xbf16, device = "cuda:0">
    """

    name = "graph-expand-products"
    PRODUCTS: ClassVar[frozenset[str]] = _PRODUCTS | _ATTENTION | {_INTEGERS, _SCALED}

    row_products: bool = True
    loop_products: bool = False
    allow_tf32: bool = False
    choices: str = RECORDED
    """As of `graph-choose-products`: "none" leaves what records say of 8-bit floats alone."""
    vectors: int = 0
    """How many vectors there are at most, for tests and measurements, on any target; 0: as its description says."""

    def on_product(self, op: AtenOp, target: Target, ranges: Ranges) -> None:
        """Mark a product as a nest where it is asked for, or faster."""
        if op.target == _INTEGERS:
            if self.loop_products and isinstance(target, GpuTarget) and "i8" in target.matrix_units:
                self._mark_integers(op, ranges)
            return
        if op.target == _SCALED:
            if isinstance(target, GpuTarget) and (self.loop_products or self.choices != NONE):
                self._mark_scaled(op, target, ranges)
            return
        if "alpha" in op.schema.by_name and op.arg("alpha") == 0:
            remark("missed", self.name, op, "not a nest: libraries do not read factors whose product is taken 0 times")
            return
        if self.loop_products and self._mark_for_units(op, ranges):
            return
        element = type_of(op.results[0]).element
        known = target.row_sums if self.row_products else {}
        limits = RowSums(self.vectors, "the option", self.vectors) if self.vectors else known.get(str(element))
        is_float = isinstance(element, _FLOATS)
        if not isinstance(target, GpuTarget) and not self.vectors and _is_computed(op, ranges):
            return
        if is_float and limits is not None and (self.row_products or self.loop_products):
            self._mark_for_rows(op, limits, ranges, target.processors if isinstance(target, GpuTarget) else 0)

    def _mark_for_units(self, op: AtenOp, ranges: Ranges) -> bool:
        """Mark a product of matrices; False for one of few vectors, attention, and types without matrix units."""
        types = {type_of(value).element for value in (*op.operands, op.results[0])}
        element = types.pop()
        if op.target not in _PRODUCTS or types or not isinstance(element, _OF_UNITS):
            return False
        shape = type_of(op.results[0]).shape
        if any(at_most(size, LEAST_OF_UNITS - 1, ranges) for size in shape[-2:]):
            return False
        is_marked = self.mark(op, NEST, "a nest: sums of products")
        if is_marked:
            mark_precision(op, self.allow_tf32)
        return is_marked

    def _mark_integers(self, op: AtenOp, ranges: Ranges) -> None:
        """Mark a product of integers of 8 bits, whose factors matrix units read along the depth alone."""
        left, right = map(type_of, op.operands)
        if any(at_most(size, LEAST_OF_UNITS - 1, ranges) for size in type_of(op.results[0]).shape):
            remark("missed", self.name, op, f"not a nest: it has fewer than {LEAST_OF_UNITS} rows or columns")
        elif _lies_along_depth(left, -1) and _lies_along_depth(right, -2):
            self.mark(op, NEST, "a nest: sums of products of integers")
        else:
            remark("missed", self.name, op, "not a nest: a factor does not lie along the depth")

    def _mark_scaled(self, op: AtenOp, target: GpuTarget, ranges: Ranges) -> None:
        """Mark a product of 8-bit floats with scales, whose factors matrix units read along the depth alone."""
        objection, tile = _objection_to_scaled(op, target), ()
        few = None if objection is not None else self._few_scaled(op, target, ranges)
        if few is not None:
            tile = few
        elif objection is None and any(at_most(n, LEAST_OF_UNITS - 1, ranges) for n in type_of(op.results[0]).shape):
            objection = f"it has fewer than {LEAST_OF_UNITS} rows or columns"
        elif objection is None:
            shape = _shape_of_scaled(op)
            found = None if shape is None else nearest(shape, target.nests)
            tile = () if found is None else found.tile
            if not self.loop_products and (found is None or not found.is_ahead):
                objection = (
                    "nothing alike was measured" if found is None else f"the library was faster for {found.shape}"
                )
        if objection is not None:
            remark("missed", self.name, op, f"not a nest: {objection}")
        elif self.mark(op, NEST, "a nest: sums of products of 8-bit floats"):
            op.attributes.update({PRECISION: StringAttr("fast")} if op.arg("use_fast_accum") else {})
            op.attributes.update({TILE: DenseArrayBase.from_list(i64, tile)} if tile else {})

    def _few_scaled(self, op: AtenOp, target: GpuTarget, ranges: Ranges) -> tuple[int, ...] | None:
        """The tile of a product of few rows, of which one row has none: it is sums over rows; None for other products.

        The library takes as long as for 16 rows then.
        """
        rows, columns = type_of(op.results[0]).shape
        sums, known = target.row_sums.get(str(type_of(op.results[0]).element)), target.dequantised.get(_OF_SCALED)
        if sums is not None and self.row_products and at_most(rows, sums.vectors, ranges):
            return ()
        if known is None or not at_most(rows, known.units, ranges) or not columns.as_int():
            return None
        return filling(known.tiles, columns.as_int() or 0, target.processors)

    def _mark_for_rows(self, op: AtenOp, limits: RowSums, ranges: Ranges, processors: int) -> None:
        is_attention = op.target in _ATTENTION
        if is_attention and limits.shared and _objection_to_units(op, limits, ranges) is None:
            if self.mark(op, NEST, "a nest: queries of heads that share keys are rows for matrix units"):
                mark(op, Candidate(NEST, _tile_of_queries(op, limits.tile, processors)))
            return
        objection = (_objection_to_attention if is_attention else _objection)(op, limits, ranges)
        if objection is not None:
            remark("missed", self.name, op, f"not a nest: {objection}")
        else:
            what = "keys and values, for few queries" if is_attention else "rows of a matrix, for few vectors"
            self.mark(op, NEST, f"a nest: sums over {what}")


def _shape_of_scaled(op: AtenOp) -> NestShape | None:
    """What measurements of 8-bit floats tell apart; None where a size is not known."""
    left, scale = (type_of(cast(SSAValue, op.arg(name))) for name in ("self", "scale_a"))
    known = [size.as_int() for size in (*type_of(op.results[0]).shape, left.shape[1])]
    rows, columns, depth = (size or 0 for size in known)
    fast = " fast" if op.arg("use_fast_accum") else ""
    ops = () if all(size is ONE for size in scale.shape) else ("rows",)
    shape = NestShape(PRODUCT, f"{left.element}{fast}", (1, rows, columns, depth), ops)
    return None if None in known else shape


def _objection_to_scaled(op: AtenOp, target: GpuTarget) -> str | None:
    """Why a product of 8-bit floats is left to the library; None where it is not."""
    left, right, *scales = (type_of(cast(SSAValue, op.arg(name))) for name in ("self", "mat2", "scale_a", "scale_b"))
    result = type_of(op.results[0])
    rows, columns = result.shape
    if any(str(each.element) not in target.matrix_units for each in (left, right)):
        return f"the target has no matrix units for {left.element} and {right.element}"
    if op.arg("scale_result") is not None or not isinstance(result.element, _OF_UNITS):
        return "its result is of 8 bits"
    wanted = ((rows, ONE), (ONE, columns))
    is_whole = all(size is ONE for each in scales for size in each.shape)
    fits = is_whole or all(each.shape == shape for each, shape in zip(scales, wanted, strict=True))
    if not fits or any(each.element != Float32Type() for each in scales):
        return "its scales are none of a whole side, or of each row of it"
    return None if _lies_along_depth(left, -1) and _lies_along_depth(right, -2) else "a factor lies across the depth"


def _objection_to_attention(op: AtenOp, limits: RowSums, ranges: Ranges) -> str | None:
    """Why attention is left to the library, and is no sum over few queries; None where it is not."""
    if not limits.queries:
        return "nobody has measured that for this target"
    if not at_most(_attended(op)[0].shape[-2], limits.queries, ranges):
        return f"it has more than {limits.queries} queries"
    return _objection_to_kind(op)


def _objection_to_units(op: AtenOp, limits: RowSums, ranges: Ranges) -> str | None:
    """Why the queries of heads that share keys are no rows for matrix units; None where they are."""
    query, key, value = _attended(op)
    heads, of_keys, queries = query.shape[1].as_int(), key.shape[1].as_int(), query.shape[2].as_int()
    width = value.shape[-1].as_int()
    if not heads or not of_keys or not queries or not width or heads % of_keys or width > MOST_OF_CHAIN:
        return "its heads do not fit"
    if not 2 <= heads // of_keys * queries <= limits.shared:
        return f"heads that share keys have not 2 to {limits.shared} queries"
    return _objection_to_kind(op)


def _tile_of_queries(op: AtenOp, tile: tuple[int, int, int, int], processors: int) -> tuple[int, int, int, int]:
    """The tile of queries of heads that share keys: twice the warps where few programs have processors for themselves.

    Four programs of one query and 256 keys, in a token of a 1.1B Llama, take 4.7 us by eight warps on an H200, by four
    5.4.
    """
    rows, step, warps, stages = tile
    batch, heads, keys = (size.as_int() for size in _attended(op)[1].shape[:3])
    if batch is None or heads is None or keys is None or batch * heads * -(-keys // step) * _FEW > processors:
        return tile
    return rows, step, 2 * warps, stages


def _attended(op: AtenOp) -> tuple[TensorType, TensorType, TensorType]:
    """The types of queries, keys and values."""
    query, key, value = (type_of(cast(SSAValue, op.arg(name))) for name in ("query", "key", "value"))
    return query, key, value


def _objection_to_kind(op: AtenOp) -> str | None:
    """Why attention of any number of queries is no nest."""
    query, key, value = _attended(op)
    if op.arg("is_causal") or op.arg("dropout_p") != 0.0:
        return "it is causal, or drops something"
    if any(result.first_use is not None for result in op.results[1:]):
        return "others of its results are read"
    if len({each.element for each in (query, key, value, type_of(op.results[0]))}) > 1:
        return "its operands are of several types"
    heads, of_keys = query.shape[1].as_int(), key.shape[1].as_int()
    fits = query.shape[1] is key.shape[1] or (heads and of_keys and heads % of_keys == 0)
    return None if fits and key.shape[:-1] == value.shape[:-1] else "its heads do not fit"


def _is_computed(op: AtenOp, ranges: Ranges) -> bool:
    """Whether ops make the matrix of a product: `graph-multiply-quantised` chooses for one that is dequantised."""
    matrix = op.operands[-1 if at_most(type_of(op.operands[-2]).shape[-2], 1, ranges) else -2]
    while isinstance(view := matrix.owner, AtenOp) and view.schema.is_view and len(view.operands) == 1:
        matrix = view.operands[0]
    return isinstance(matrix.owner, AtenOp)


def _objection(op: AtenOp, limits: RowSums, ranges: Ranges) -> str | None:
    """Why a product is left to the library; None where it is not."""
    left, right = map(type_of, op.operands[-2:])
    result = type_of(op.results[0])
    if any(type_of(value).element != result.element for value in op.operands):
        return "its operands are of other types than its result"
    few = [(size, matrix) for size, matrix in _sides(left, right) if at_most(size, limits.vectors, ranges)]
    if not few:
        return f"it has more than {limits.vectors} vectors"
    if not any(_lies_along_depth(matrix, depth) for _, (matrix, depth) in few):
        return "the rows of its matrix do not lie along the depth"
    sums = math.prod(result.shape, start=ONE)
    if at_most(left.shape[-1], limits.short - 1, ranges) and not at_most(sums, limits.most_short, ranges):
        return f"its matrix has more than {limits.most_short} short rows"
    return None


def _sides(left: TensorType, right: TensorType) -> tuple[tuple[Expr, tuple[TensorType, int]], ...]:
    """The number of vectors in one operand, and the other operand with its dimension of the depth."""
    return (left.shape[-2], (right, -2)), (right.shape[-1], (left, -1))


def _lies_along_depth(matrix: TensorType, depth: int) -> bool:
    """Whether elements lie side by side along the depth, and there are several."""
    return matrix.strides[depth] is ONE and matrix.shape[depth] is not ONE
