"""Matrix products that are marked to be nests (`graph-expand-products`); all others are ATen calls."""

from __future__ import annotations

from xdsl.dialects.arith import MulfOp, MuliOp
from xdsl.dialects.builtin import StringAttr

from ....dialects.sym import Expr
from ....passes.common.choices import KEPT_BY_NESTS
from ....passes.common.implementations import IMPLEMENTATION, NEST
from ..dtypes import is_float
from ..nests import LoopBuilder, shape_of, type_of
from ..rules import Call, Replacement, add_rule
from ..scalar import Scalar

#: overload -> the names of the factors, and of what is added
_PRODUCTS = {
    "mm": ("self", "mat2", ""),
    "bmm": ("self", "mat2", ""),
    "addmm": ("mat1", "mat2", "self"),
    "baddbmm": ("batch1", "batch2", "self"),
    "_int_mm": ("self", "mat2", ""),
}
_INTEGERS = "_int_mm"
_SCALED = "_scaled_mm"


def _unmarked(call: Call) -> str | None:
    if call.op.attributes.get(IMPLEMENTATION) != StringAttr(NEST):
        return f"{call.op.name} is a library's: graph-expand-products has not made it a nest"
    if call.op.packet == _INTEGERS:
        return None
    types = {type_of(value).element for value in (*call.op.operands, call.op.results[0])}
    return None if len(types) == 1 and all(map(is_float, types)) else "its operands are no floats of one type"


def _lower(b: LoopBuilder, call: Call) -> Replacement:
    """The sum over the depth of products, in the type of computation; what is added is so before it is rounded.

    Integers of 8 bits are multiplied and added as ones of 32.
    """
    s = b.s
    first, second, addend = _PRODUCTS[call.op.packet]
    left, right = call.tensor(first), call.tensor(second)
    kept = {name: call.op.attributes[name] for name in KEPT_BY_NESTS if name in call.op.attributes}
    is_integer = call.op.packet == _INTEGERS
    added = call.tensor(addend) if addend and call["beta"] != 0 else None  # times 0 it is not read: it may be NaN

    def element(index: tuple[Expr, ...]) -> Scalar:
        *batch, row, column = index

        def product(inner: tuple[Expr, ...]) -> Scalar:
            factors = (s.load(left, (*batch, row, *inner)), s.load(right, (*batch, *inner, column)))
            first, second = (s.cast(each, call.type.element) if is_integer else s.widen(each) for each in factors)
            found = first * second
            if kept and isinstance(found.ssa.owner, MulfOp | MuliOp):
                found.ssa.owner.attributes.update(kept)
            return found

        (total,) = s.reduce(["sum"], [shape_of(left)[-1]], product)
        if not addend:
            return total
        total = _scaled(total, call["alpha"])
        return total if added is None else total + _scaled(b.at(added, index), call["beta"])

    return b.generate(element, call.type)


def _lower_scaled(b: LoopBuilder, call: Call) -> Replacement:
    """The sum over the depth of products of 8-bit floats in float32, times a scale of each side, or of each row."""
    s = b.s
    left, right = call.tensor("self"), call.tensor("mat2")
    scales = call.tensor("scale_a"), call.tensor("scale_b")
    bias = call.optional("bias")
    kept = {name: call.op.attributes[name] for name in KEPT_BY_NESTS if name in call.op.attributes}

    def element(index: tuple[Expr, ...]) -> Scalar:
        row, column = index

        def product(inner: tuple[Expr, ...]) -> Scalar:
            found = s.widen(s.load(left, (row, *inner))) * s.widen(s.load(right, (*inner, column)))
            assert isinstance(found.ssa.owner, MulfOp)
            found.ssa.owner.attributes.update(kept)
            return found

        (total,) = s.reduce(["sum"], [shape_of(left)[-1]], product)
        for scale in scales:
            total = total * b.at(scale, index[2 - len(shape_of(scale)) :])
        return total if bias is None else total + b.at(bias, (column,))

    return b.generate(element, call.type)


def _unmarked_scaled(call: Call) -> str | None:
    is_nest = call.op.attributes.get(IMPLEMENTATION) == StringAttr(NEST)
    return None if is_nest else f"{call.op.name} is a library's: graph-expand-products has not made it a nest"


def _scaled(value: Scalar, factor: int | float | Expr) -> Scalar:
    return value if factor == 1 else value * factor


for _packet in _PRODUCTS:
    add_rule(_packet, _lower, _unmarked)
add_rule(_SCALED, _lower_scaled, _unmarked_scaled, any_dtype=True)
