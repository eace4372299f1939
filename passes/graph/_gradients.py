"""Gradients of matrix products as autograd leaves them: products of the flattened operands, one of them transposed."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from ...dialects.aten import AtenOp
from ...records import dataclass
from ._matmul import VIEWS, Product, product, shape_of, unflattened
from ._rules import permutation


@dataclass(frozen=True)
class ProductGradient:
    """The gradient of an operand of a product, from that of the product, and the ops that compute it.

    arranging: those of the ops that are views and copies of operands
    """

    gradient: SSAValue
    ops: tuple[Operation, ...]
    arranging: tuple[Operation, ...]


def product_gradient(value: SSAValue, of: SSAValue, is_left: bool) -> ProductGradient | None:
    """How `value` is the gradient of the left or right operand of the product `of`, if it is.

    They are gradient @ right^T and left^T @ gradient.
    """
    forward = product(of)
    found = _multiplication(value)
    if forward is None or found is None:
        return None
    op, ops = found
    left, right = op.operands
    gradient, transposed = (left, right) if is_left else (right, left)
    operand = _constant_operand(forward, is_left)
    if not _is_transposed(transposed, operand):
        return None
    if shape_of(value)[-2:] != shape_of(op.results[0])[-2:] or shape_of(value)[:-2] != _batch(value, of):
        return None
    source, arranging = unflattened(gradient, shape_of(of)) or (gradient, [])
    if isinstance(transposed.owner, Operation) and operand in transposed.owner.operands:
        arranging = [*arranging, transposed.owner]
    return ProductGradient(source, (*ops, *arranging), tuple(arranging))


def possible_gradients(of: SSAValue, is_left: bool) -> Iterator[SSAValue]:
    """Results of the multiplications that read the transposed operand of the product `of`."""
    forward = product(of)
    if forward is None:
        return
    operand = _constant_operand(forward, is_left)
    source, _ = _permuted(operand)
    permuted = [use.operation.results[0] for use in source.uses if permutation(use.operation) is not None]
    for value in (source, *permuted):
        for use in value.uses:
            user = use.operation
            if isinstance(user, AtenOp) and user.target == forward.flat.target and user is not forward.flat:
                yield user.results[0]


def _constant_operand(forward: Product, is_left: bool) -> SSAValue:
    """The operand that a gradient of the other one is multiplied with."""
    return forward.flat.operands[1 if is_left else 0]


def _is_transposed(left: SSAValue, right: SSAValue) -> bool:
    """Whether one value is the other with its last two dimensions exchanged."""
    (base, order), (other_base, other_order) = map(_permuted, (left, right))
    return base is other_base and order == (*other_order[:-2], other_order[-1], other_order[-2])


def _permuted(value: SSAValue) -> tuple[SSAValue, tuple[int, ...]]:
    """What a value is a permutation of, itself if of nothing else, and how."""
    order = permutation(value.owner) if isinstance(value.owner, Operation) else None
    if order is None:
        return value, tuple(range(len(shape_of(value))))
    assert isinstance(value.owner, Operation)
    return value.owner.operands[0], order


def _multiplication(value: SSAValue) -> tuple[AtenOp, tuple[Operation, ...]] | None:
    """The op that multiplies, where a value is its result or a view of that, and the ops between."""
    op = value.owner
    ops: tuple[Operation, ...] = ()
    if isinstance(op, AtenOp) and op.target in VIEWS:
        ops, op = (op,), op.operands[0].owner
    return (op, (*ops, op)) if isinstance(op, AtenOp) and op.target in ("aten.mm", "aten.bmm") else None


def _batch(value: SSAValue, of: SSAValue) -> tuple[object, ...]:
    """The batch dimensions that the gradient `value` of an operand of `of` should have."""
    is_flat = isinstance(value.owner, AtenOp) and value.owner.target not in VIEWS
    return shape_of(value)[:-2] if is_flat else shape_of(of)[:-2]
