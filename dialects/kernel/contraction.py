"""Contractions: reductions that sum products, which matrix units compute tile by tile.

What a reduction sums is read from its body and from nothing else, so a mapping onto matrix units changes no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    StringAttr,
    i8,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...records import dataclass
from ..effects import has_side_effect
from ..loop.body import yielded
from ..scalar import CastOp, WidenOp, number_of
from .loops import ReduceOp, loops_around
from .memory import IndexOp, LoadOp
from .types import BufferType

#: the attribute of a multiplication that says how exact its factors may be read; without it they are read as they are
PRECISION = "precision"
#: what it may say. tf32: factors of float32 have 10 bits behind the point; bf16, f16: they are rounded to that type;
#: fast: products of 8-bit floats may be added with fewer bits than float32 has, as by units that do so
PRECISIONS = ("tf32", "bf16", "f16", "fast")
#: 8-bit floats that matrix units multiply, those of one kind with those of the other, too
FLOATS8 = (Float8E4M3FNType, Float8E5M2Type)

_PRODUCTS = (arith.MulfOp, arith.MuliOp)


@dataclass(frozen=True)
class Product:
    """One product that a reduction sums: `left` varies along the rows of the result, `right` along its columns."""

    op: Operation
    left: SSAValue
    right: SSAValue

    @property
    def precision(self) -> str | None:
        """How exact factors of float32 may be read, one of `PRECISIONS`; None: as they are."""
        found = self.op.attributes.get(PRECISION)
        return found.data if isinstance(found, StringAttr) else None

    def swapped(self) -> Product:
        """The same product with its factors in the other order."""
        return Product(self.op, self.right, self.left)


def operand_of(factor: SSAValue) -> SSAValue:
    """What matrix units read for a factor: the narrow number that was widened for the multiplication, or itself."""
    op = factor.owner
    if isinstance(op, WidenOp):
        return op.operands[0]
    is_widened = isinstance(op, CastOp) and op.properties["from"] == i8 and factor.type == i32
    return op.operands[0] if is_widened and isinstance(op, CastOp) else factor


def products_of(op: ReduceOp, chained: bool = False) -> list[Product] | str:
    """The products that a reduction sums, or why it is no contraction.

    chained: whether factors may be computed from sums of products in its body
    """
    if op.combine is not None or any(combiner.data != "sum" for combiner in op.combiners):
        return "it does more than add"
    loops = [inner for inner in op.body.block.ops if inner.regions]
    if chained and all(isinstance(inner, ReduceOp) for inner in loops):
        objections = (products_of(inner) for inner in loops if isinstance(inner, ReduceOp))
        objection = next((found for found in objections if isinstance(found, str)), None)
        if objection is not None:
            return objection
    elif loops:
        return "its body has loops"
    if any(has_side_effect(inner) for inner in op.body.block.ops):
        return "its body has effects"
    if any(isinstance(inner, LoadOp) and _is_local(inner) for inner in op.body.block.ops):
        return "its body reads a local buffer"
    found: list[Product] = []
    for value in yielded(op.body):
        product = value.owner
        if not isinstance(product, _PRODUCTS) or product.parent is not op.body.block:
            return "it adds what is no product"
        found.append(Product(product, *product.operands))
    return found


def leading_products(op: ReduceOp) -> list[ReduceOp]:
    """The products in the body of a reduction that stand in front of all that is made of one, if they are several."""
    found: list[ReduceOp] = []
    made: set[SSAValue] = set()
    for each in op.body.block.ops:
        if any(value in made for inner in each.walk() for value in inner.operands):
            break
        if isinstance(each, ReduceOp):
            found.append(each)
            made.update(each.results)
    return found if len(found) > 1 else []


def element_of(product: Product) -> Attribute | None:
    """The type of both operands as matrix units read them; None where they have no units for it."""
    left, right = operand_of(product.left).type, operand_of(product.right).type
    wide = product.op.results[0].type == Float32Type()
    if wide and isinstance(left, FLOATS8) and isinstance(right, FLOATS8):
        return left
    if left != right:
        return None
    if isinstance(product.op, arith.MulfOp):
        return left if wide and isinstance(left, BFloat16Type | Float16Type | Float32Type) else None
    return left if left == i8 and product.op.results[0].type == i32 else None


def axes_of(value: SSAValue, known: dict[SSAValue, frozenset[str]] | None = None) -> frozenset[str]:
    """The axes and symbols that a scalar of a kernel depends on; what a local buffer holds counts for all around it."""
    known = {} if known is None else known
    if value not in known:
        known[value] = _axes_of(value, known)
    return known[value]


def _axes_of(value: SSAValue, known: dict[SSAValue, frozenset[str]]) -> frozenset[str]:
    op = value.owner
    if isinstance(op, Block):
        return frozenset(loop.axis.data for loop in loops_around(op.parent_op()))
    found = frozenset().union(*(axes_of(v, known) for v in op.operands if not isinstance(v.type, BufferType)))
    if isinstance(op, LoadOp):
        found |= op.map.data[0].free_symbols
        return found | _axes_around(op) if _is_local(op) else found
    if isinstance(op, IndexOp):
        return found | op.expr.data.free_symbols
    if isinstance(op, ReduceOp):
        bounds = op.lo.data.free_symbols | op.hi.data.free_symbols
        inner = frozenset().union(*(axes_of(v, known) for v in yielded(op.body)))
        return found | bounds | (inner - {op.axis.data})
    return found


def _is_local(op: LoadOp) -> bool:
    assert isinstance(op.buffer.type, BufferType)
    return op.buffer.type.local


def _axes_around(op: Operation) -> frozenset[str]:
    return frozenset(loop.axis.data for loop in loops_around(op.parent_op()))


def tiled_axes(op: ReduceOp) -> list[str]:
    """The axes of the loops around a reduction that have a tile, outermost first."""
    around = [loop for loop in loops_around(op.parent_op()) if loop.tile is not None and loop.tile.value.data > 1]
    return [loop.axis.data for loop in reversed(around)]


def oriented(op: ReduceOp, product: Product, axes: list[str]) -> tuple[Product, str, str] | str:
    """A product with the factor first that varies along the outer one of two axes, and these; or why there are none.

    axes: those that count, outermost first; both factors vary along the reduction's axis, and along one of these each
    """
    known: dict[SSAValue, frozenset[str]] = {}
    left, right = axes_of(product.left, known), axes_of(product.right, known)
    if op.axis.data not in left & right:
        return f"a factor does not vary along {op.axis.data}"
    own, other = ([axis for axis in axes if axis in of] for of in (left, right))
    if len(own) != 1 or len(other) != 1 or own == other:
        return "each factor varies along one tiled axis, another one each"
    if axes.index(own[0]) < axes.index(other[0]):
        return product, own[0], other[0]
    return product.swapped(), other[0], own[0]


def contraction_of(op: ReduceOp) -> tuple[list[Product], str, str] | str:
    """The oriented products of a reduction on matrix units with the axes of rows and columns, or why they have none."""
    products = products_of(op, chained=True)
    if isinstance(products, str):
        return products
    if not _chain_is_mapped(op):
        return "its body has a loop that does not run on matrix units"
    found: list[Product] = []
    sides: set[tuple[str, str]] = set()
    for product in products:
        if element_of(product) is None:
            return "matrix units multiply numbers of one type: f16, bf16 or f32 into f32, or i8 into i32"
        if product.precision not in (None, *PRECISIONS):
            return f"a product has the precision {product.precision}; known: {', '.join(PRECISIONS)}"
        result = oriented(op, product, tiled_axes(op))
        if isinstance(result, str):
            return result
        found.append(result[0])
        sides.add(result[1:])
    if len(sides) != 1:
        return "its products have several axes of rows or columns"
    return found, *sides.pop()


def _chain_is_mapped(op: ReduceOp) -> bool:
    """Whether all loops in the body of a reduction run on matrix units."""
    inner = [each for each in op.body.block.ops if each.regions]
    return all(isinstance(each, ReduceOp) and each.mapping.data == "matrix" for each in inner)


@dataclass(frozen=True)
class WeightedSum:
    """A sum over a softmax along an axis, as tiles compute it: of exp(x - max x), and of exp(x - max x)*left*right.

    x:       varies along the rows and the axis
    left:    a factor that does so too, or None
    right:   varies along the axis and the columns
    rows, columns: the tiled axes of the result
    """

    x: SSAValue
    left: SSAValue | None
    right: SSAValue
    rows: str
    columns: str

    @property
    def element(self) -> Attribute:
        """The type that matrix units read of both factors: the weights are rounded to that of the right one."""
        return operand_of(self.right).type


def weighted_sums_of(op: ReduceOp) -> list[WeightedSum] | str:
    """The sums of a reduction by `softmax_sum` as what matrix units compute, or why they are none."""
    if not _chain_is_mapped(op):
        return "its body has a loop that does not run on matrix units"
    return weighted_parts(op, tiled_axes(op))


def weighted_parts(op: ReduceOp, axes: list[str]) -> list[WeightedSum] | str:
    """The same with the tiled axes told, whatever the loops inside are mapped to."""
    if op.combine is not None or {combiner.data for combiner in op.combiners} != {"softmax_sum"}:
        return "it is no sum over a softmax"
    if any(has_side_effect(inner) for inner in op.body.block.ops):
        return "its body has effects"
    values = yielded(op.body)
    found: list[WeightedSum] = []
    for first in range(0, len(values), 3):
        part = _weighted(op, values[first : first + 3], axes)
        if isinstance(part, str):
            return part
        found.append(part)
    if len({(part.rows, part.columns, part.element) for part in found}) != 1:
        return "its sums have several axes of rows or columns, or types"
    return found


def _weighted(op: ReduceOp, values: Sequence[SSAValue], axes: list[str]) -> WeightedSum | str:
    """One sum: (x, 1, value)."""
    x, one, value = values
    if number_of(one) != 1:
        return "its weights are not exp(x - m) alone"
    known: dict[SSAValue, frozenset[str]] = {}
    scores = axes_of(x, known)
    own = [axis for axis in axes if axis in scores]
    left, right = _sides(value, frozenset(own), known)
    others = [axis for axis in axes if axis in axes_of(right, known)]
    if op.axis.data not in scores & axes_of(right, known):
        return f"a factor does not vary along {op.axis.data}"
    if len(own) != 1 or len(others) != 1 or own == others:
        return "the weights vary along one tiled axis, what they weigh along another one"
    if operand_of(right).type not in (BFloat16Type(), Float16Type(), Float32Type()) or x.type != Float32Type():
        return "matrix units multiply numbers of one type: f16, bf16 or f32"
    return WeightedSum(x, left, right, own[0], others[0])


def _sides(
    value: SSAValue, rows: frozenset[str], known: dict[SSAValue, frozenset[str]]
) -> tuple[SSAValue | None, SSAValue]:
    """A factor along the rows, if there is one, and the rest."""
    op = value.owner
    if isinstance(op, arith.MulfOp) and rows & axes_of(value, known):
        for one, other in (op.operands, reversed(op.operands)):
            if not rows & axes_of(other, known):
                return one, other
    return None, value
