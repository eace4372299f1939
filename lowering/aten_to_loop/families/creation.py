"""Constants, ranges, copies, conversions, and choices between elements."""

from __future__ import annotations

from typing import Any

from ....dialects.aten import AtenOp
from ....dialects.parametric import parametric
from ....dialects.sym import Expr, as_expr
from ....machines import eager
from ..dtypes import F32, F64, FLOAT8, LOW_PRECISION, is_float
from ..nests import LoopBuilder, axes_of_rank, broadcast_map, type_of
from ..pointwise import Policy, add_pointwise
from ..rules import Call, Replacement, add_rule, lowers
from ..scalar import Number, Scalar


def filled(b: LoopBuilder, call: Call, value: Number) -> Replacement:
    """A tensor of one number."""
    element = call.type.element
    if element in LOW_PRECISION:
        return b.generate(lambda _: b.s.cast(b.s.number(value, F32), element), call.type)
    return b.generate(lambda _: b.s.number(value, element), call.type)


def _fill_with(argument: str) -> Any:
    return lambda b, call: filled(b, call, call[argument])


add_rule("full full_like new_full", _fill_with("fill_value"))
add_rule("fill.Scalar", _fill_with("value"))
add_rule("scalar_tensor", _fill_with("s"))
add_rule("zeros zeros_like new_zeros zero", lambda b, call: filled(b, call, 0))
add_rule("ones ones_like new_ones", lambda b, call: filled(b, call, 1))
add_rule(
    "empty.memory_format empty_like new_empty empty_strided new_empty_strided empty_permuted",
    lambda b, call: b.empty(call.type),
    any_dtype=True,
)


def converted(b: LoopBuilder, value: Scalar, element: Any) -> Scalar:
    """A conversion that the program wrote; the way into float32 from low precision is exact."""
    return value if value.element == element else b.s.cast(b.s.widen(value), element)


@parametric
def _copy_from(b: LoopBuilder, call: Call, argument: str) -> Replacement:
    source = call.tensor(argument)
    type_ = call.type
    index_map = broadcast_map(type_of(source).shape, len(type_.shape))
    return b.generate(lambda _: converted(b, b.s.load_map(source, index_map), type_.element), type_)


@parametric
def _reject_transfer(call: Call, argument: str) -> str | None:
    source = type_of(call.tensor(argument))
    if source.device != call.type.device:
        return f"a transfer from {source.device} to {call.type.device}"
    limit = FLOAT8.get(call.type.element)
    if limit is not None and source.element != call.type.element and not _is_within(call.op.arg(argument), limit):
        return "numbers may be too large for 8 bits: versions of torch and devices differ in what becomes of them"
    return "memory to be pinned" if argument == "self" and call["pin_memory"] else None


def _is_within(value: Any, limit: float) -> bool:
    """Whether a value was clamped between a number and its negative, and at most moved and cast since."""
    op = value.owner
    while isinstance(op, AtenOp) and (op.schema.is_view or op.packet in ("_to_copy", "clone")):
        op = op.operands[0].owner
    if not isinstance(op, AtenOp) or op.packet != "clamp":
        return False
    low, high = op.arg("min"), op.arg("max")
    return isinstance(low, int | float) and isinstance(high, int | float) and -limit <= low <= high <= limit


add_rule("_to_copy", _copy_from("self"), _reject_transfer("self"), converts=True)
add_rule("copy", _copy_from("src"), _reject_transfer("src"), converts=True)
add_rule("fill.Tensor", _copy_from("value"))
add_rule("clone lift_fresh_copy", _copy_from("self"), converts=True)


@lowers("arange arange.start arange.start_step")
def _arange(b: LoopBuilder, call: Call) -> Replacement:
    """start + step * i0; floats as eager's kernels have it, in float64 on the CPU."""
    s = b.s
    start = call["start"] if call.has("start") else 0
    step = call["step"] if call.has("step") else 1
    element = call.type.element

    def body(index: tuple[Expr, ...]) -> Scalar:
        if not is_float(element):
            return s.index(as_expr(_integer(start)) + as_expr(_integer(step)) * index[0]).to(element)
        wide = F64 if element == F64 or eager(s.device).ranges_in_double else F32
        position = s.index(index[0]).to(wide)
        return converted(b, position * s.number(step, wide) + s.number(start, wide), element)

    return b.generate(body, call.type)


def _integer(value: float | int | Expr) -> int | Expr:
    return value if isinstance(value, Expr) else int(value)


@lowers("eye eye.m")
def _eye(b: LoopBuilder, call: Call) -> Replacement:
    row, column = axes_of_rank(2)
    return b.generate(lambda _: b.s.index(column - row).eq(0), call.type)


@parametric
def _triangle(b: LoopBuilder, call: Call, lower: bool) -> Replacement:
    """tril keeps column - row <= diagonal, triu column - row >= diagonal."""
    s = b.s
    source = call.tensor("self")
    rank = len(call.type.shape)
    row, column = axes_of_rank(rank)[-2:]
    distance = column - row - as_expr(call["diagonal"])

    def body(_: tuple[Expr, ...]) -> Scalar:
        position = s.index(distance)
        value = s.load_map(source, broadcast_map(call.type.shape, rank))
        return s.where(position <= 0 if lower else position >= 0, value, 0)

    return b.generate(body, call.type)


add_rule("tril", _triangle(lower=True))
add_rule("triu", _triangle(lower=False))

add_pointwise({
    "where.self where.ScalarSelf where.ScalarOther where.Scalar":
        lambda s, condition, self, other: s.where(condition, self, other),
    "masked_fill.Scalar masked_fill.Tensor": lambda s, self, mask, value: s.where(mask, value, self),
}, Policy.MOVED)  # fmt: skip
