"""Matrix products as ATen's `matmul` leaves them: `bmm` of flattened batches, between views, expansions and copies."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.sym import Expr
from ...records import dataclass

VIEWS = ("aten.view", "aten._unsafe_view")
_COPIES = ("aten.clone", "aten.expand")
_PRODUCTS = ("aten.mm", "aten.bmm")


@dataclass(frozen=True)
class Product:
    """`left @ right`, both of the rank of the result, and the ops that compute it from them."""

    left: SSAValue
    right: SSAValue
    ops: tuple[Operation, ...]

    @property
    def flat(self) -> AtenOp:
        """The op that multiplies."""
        return next(op for op in self.ops if isinstance(op, AtenOp) and op.target in _PRODUCTS)

    @property
    def arranging(self) -> tuple[Operation, ...]:
        """Views and copies of the operands."""
        return self.ops[self.ops.index(self.flat) + 1 :]


def shape_of(value: SSAValue) -> tuple[Expr, ...]:
    """Sizes of a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type.shape


def product(value: SSAValue) -> Product | None:
    """The matrix product that a value is, if it is one."""
    op = value.owner
    if not isinstance(op, AtenOp):
        return None
    if op.target in _PRODUCTS:
        return Product(op.operands[0], op.operands[1], (op,))
    if op.target not in VIEWS:
        return None
    inner = op.operands[0].owner
    shape = shape_of(value)
    if not isinstance(inner, AtenOp) or inner.target != "aten.bmm" or len(shape) < 3:
        return None
    batch, (rows, columns) = shape[:-2], shape[-2:]
    if shape_of(inner.results[0])[1:] != (rows, columns):
        return None
    middle = shape_of(inner.operands[0])[2]
    left = unflattened(inner.operands[0], (*batch, rows, middle))
    right = unflattened(inner.operands[1], (*batch, middle, columns))
    if left is None or right is None:
        return None
    return Product(left[0], right[0], (op, inner, *left[1], *right[1]))


def unflattened(value: SSAValue, shape: Sequence[Expr]) -> tuple[SSAValue, list[Operation]] | None:
    """What a flattened operand of that shape is a view or copy of, with batch dimensions apart, and the ops between."""
    op = value.owner
    if not isinstance(op, AtenOp) or op.target not in VIEWS:
        return None
    ops: list[Operation] = [op]
    source = op.operands[0]
    if shape_of(source) != tuple(shape):
        return None
    # copies of the same sizes only arrange memory
    while isinstance(source.owner, AtenOp) and source.owner.target in _COPIES:
        if shape_of(source.owner.operands[0]) != tuple(shape):
            break
        ops.append(source.owner)
        source = source.owner.operands[0]
    return source, ops
