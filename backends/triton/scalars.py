"""Scalar ops: every op becomes one expression over scalars or block tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from ... import extensions
from ...dialects import kernel, scalar
from ...errors import UnsupportedError
from ...passes.analysis.nests import element_bytes
from ...passes.kernel.approximate import may_approximate
from ..printing.operators import CMPI
from .context import Context
from .dtypes import dtype_name, is_float, literal, signed, unsigned
from .functions import (
    APPROXIMATE,
    DIGITS,
    EXP_OR_ZERO,
    FLOAT,
    FLOAT_COMPARISONS,
    INFIX,
    NVIDIA,
    QUOTIENTS,
    SIGNED,
    TO_FLOAT,
    UNSIGNED,
    Spelling,
)
from .values import Value, union

_PLACE = re.compile(r"\{(\d)(t?)\}")


def _hint(value: SSAValue, default: str) -> str:
    return value.name_hint or default


def _bind(context: Context, op: Operation, text: str, dtype: str, operands: Sequence[Value]) -> None:
    result = op.results[0]
    context.values[result] = context.define(text, dtype, union(*operands), _hint(result, "v"))


def _result_dtype(op: Operation) -> str:
    return dtype_name(op.results[0].type)


def spell(context: Context, spelling: str, operands: Sequence[Value]) -> str:
    """Put operands into a text of the tables."""
    all_literal = all(v.literal for v in operands)

    def place(match: re.Match[str]) -> str:
        value = operands[int(match[1])]
        return context.typed(value) if match[2] or all_literal else context.tensor(value)

    return _PLACE.sub(place, spelling)


def _operands(context: Context, op: Operation) -> list[Value]:
    return [context.value(v) for v in op.operands]


def as_dtype(context: Context, value: Value, dtype: str) -> Value:
    """The same bits as another integer type of the same width."""
    if value.dtype == dtype:
        return value
    if value.literal:
        number = int(value.text)
        if dtype.startswith("u") and number < 0:
            number += 1 << int(dtype[4:])
        return Value(str(number), dtype, (), True)
    return context.define(f"{value}.to(tl.{dtype}, bitcast=True)", dtype, value.dims, value.text)


def _infix(context: Context, op: Operation) -> None:
    operands = _operands(context, op)
    dtype = _result_dtype(op)
    if not is_float(dtype):
        operands = [as_dtype(context, v, dtype) for v in operands]
    elif isinstance(op, arith.MulfOp):
        operands = _beside_bytes(context, op, operands)
    _bind(context, op, spell(context, f"{{0}} {INFIX[type(op)]} {{1}}", operands), dtype, operands)


def _beside_bytes(context: Context, op: Operation, operands: list[Value]) -> list[Value]:
    """A vector that is multiplied with rows made of bytes, as a block of one dimension; the other operands as they are.

    A thread loads 16 bytes of a row, and 4 or 8 floats of a vector, and Triton brings one to where the other is. It
    would move the rows, of which there are several, unless it sees that the vector is one.
    """
    loop = op.parent_op()
    if len(context.frame) != 2 or not isinstance(loop, kernel.ReduceOp) or loop.mapping.data != "vector":
        return operands
    found = list(operands)
    for k, rows in ((0, 1), (1, 0)):
        vector = operands[k]
        meets = vector.dims == context.frame[-1:] and len(operands[rows].dims) == 2
        if meets and _is_of_bytes(op.operands[rows]):
            block = f"tl.reshape({vector}, [{context.block_of(vector.dims[0])}])"
            text = context.along(block, vector.dims[0])
            found[k] = context.define(text, vector.dtype, vector.dims, f"{vector}_vector")
    return found


def _is_of_bytes(value: SSAValue, depth: int = 8) -> bool:
    """Whether a value is computed from an element of 8 bits."""
    maker = value.owner
    if isinstance(maker, kernel.LoadOp):
        return element_bytes(maker.buffer.type) == 1
    if not isinstance(maker, Operation) or maker.regions or not depth:
        return False
    return any(_is_of_bytes(each, depth - 1) for each in maker.operands)


def _with_sign(table: dict[type[Operation], str], convert: Callable[[str], str]):
    def emit(context: Context, op: Operation) -> None:
        dtype = _result_dtype(op)
        operands = [as_dtype(context, v, convert(dtype)) for v in _operands(context, op)]
        text = spell(context, table[type(op)], operands)
        result = op.results[0]
        value = context.define(text, convert(dtype), union(*operands), _hint(result, "v"))
        context.values[result] = value

    return emit


def _float(context: Context, op: Operation) -> None:
    operands = _operands(context, op)
    if isinstance(op, math.FmaOp):
        operands = _beside_bytes(context, op, operands)
    spelling: Spelling = FLOAT[type(op)] if type(op) in FLOAT else extensions.table("inductile.triton")[type(op)]
    if context.nvidia and operands[0].dtype == "float32":
        spelling = _for_nvidia(op, spelling)
    if not isinstance(spelling, str):
        spelling = spelling.get(operands[0].dtype, spelling[""])
    _bind(context, op, spell(context, spelling, operands), _result_dtype(op), operands)


def _for_nvidia(op: Operation, default: Spelling) -> Spelling:
    if isinstance(op, arith.DivfOp):
        return QUOTIENTS[kernel.mark_of(op, kernel.DIVISOR), may_approximate(op)]
    if not may_approximate(op):
        return NVIDIA.get(type(op), default)
    return EXP_OR_ZERO if kernel.mark_of(op, kernel.TINY) else APPROXIMATE.get(type(op), default)


def _constant(context: Context, op: arith.ConstantOp) -> None:
    attr = op.value
    if not isinstance(attr, FloatAttr | IntegerAttr):
        raise UnsupportedError("constants of kernels are scalars")
    dtype = _result_dtype(op)
    text = literal(attr.value.data, dtype)
    if text == "-0.0":  # which Triton would read as 0
        text = f"prelude.negate(tl.full([], 0.0, tl.{dtype}))"
        context.values[op.result] = context.define(text, dtype, (), "negative_zero")
        return
    context.values[op.result] = Value(text, dtype, (), True)


def _compare_floats(context: Context, op: arith.CmpfOp) -> None:
    operands = _operands(context, op)
    _bind(context, op, spell(context, FLOAT_COMPARISONS[op.predicate.value.data], operands), "int1", operands)


def _compare_integers(context: Context, op: arith.CmpiOp) -> None:
    operator, is_unsigned = CMPI[op.predicate.value.data]
    operands = _operands(context, op)
    dtype = dtype_name(op.lhs.type)
    if is_unsigned is not None and dtype == "int1":
        # a bool of Triton is signed: True is -1
        operands = [_cast(context, v, "int32") for v in operands]
    else:
        wanted = unsigned(dtype) if is_unsigned else dtype
        operands = [as_dtype(context, v, wanted) for v in operands]
    _bind(context, op, spell(context, f"{{0}} {operator} {{1}}", operands), "int1", operands)


def _cast(context: Context, value: Value, dtype: str) -> Value:
    if value.literal:
        return Value(str(int(value.text == "True")), dtype, (), True)
    return context.define(f"{value}.to(tl.{dtype})", dtype, value.dims, value.text)


def _select(context: Context, op: arith.SelectOp) -> None:
    condition, then, other = _operands(context, op)
    dtype = signed(_result_dtype(op))
    if not is_float(dtype):
        then, other = as_dtype(context, then, dtype), as_dtype(context, other, dtype)
    # two literals have no dtype of their own
    left = context.typed(then) if then.literal and other.literal else context.tensor(then)
    text = f"tl.where({context.typed(condition)}, {left}, {context.tensor(other)})"
    _bind(context, op, text, dtype, (condition, then, other))


def _convert(context: Context, op: Operation) -> None:
    """`scalar.cast`, `widen` and `narrow`; the sign of integers is that of the element types."""
    if op.results[0] in context.values:  # a load has widened already
        return
    assert isinstance(op, scalar.CONVERSIONS)
    source, target = dtype_name(op.source_element), dtype_name(op.target_element)
    (value,) = _operands(context, op)
    if not is_float(source):
        value = as_dtype(context, value, source)
    if context.nvidia and (source, target) in TO_FLOAT and value.dims:
        pack = "2" if op.results[0] in context.in_registers else "4"
        text = spell(context, TO_FLOAT[source, target], (value,)).replace("pack", pack)
    elif target == "int1" and source != "int1":
        text = f"{context.typed(value)} != 0"
    else:
        text = f"{context.typed(value)}.to(tl.{target})"
    _bind(context, op, text, target, (value,))


def _digits(context: Context, op: Operation) -> None:
    assert isinstance(op, scalar.LowDigitsOp | scalar.HighDigitsOp)
    (value,) = operands = _operands(context, op)
    of_blocks, otherwise = DIGITS[type(op)]
    text = spell(context, of_blocks if context.nvidia and value.dims else otherwise, operands)
    dtype = dtype_name(op.result.type)
    _bind(context, op, text.replace("less", str(op.zero)).replace("type", f"tl.{dtype}"), dtype, operands)


def _index(context: Context, op: kernel.IndexOp) -> None:
    """An index as int64; it is computed in the kernel's index type where that has room for it."""
    code = context.index(op.expr.data, op.dynamic, is_offset=False)
    value = op.expr.data.as_int()
    if value is not None:
        context.values[op.value] = Value(str(value), "int64", (), True)
        return
    if context.width == "tl.int64":
        text = code.text
    elif code.dims:
        text = f"{code.closed}.to(tl.int64)"
    else:  # a loop's counter may be a plain int
        text = f"tl.cast({code.text}, tl.int64)"
    context.values[op.value] = context.define(text, "int64", code.dims, _hint(op.value, "index"))


def _philox(context: Context, op: scalar.PhiloxOp) -> None:
    operands = _operands(context, op)
    _bind(context, op, spell(context, "prelude.philox({0t}, {1t})", operands), "int32", operands)


HANDLERS: dict[type[Operation], Callable[..., None]] = {
    **dict.fromkeys(INFIX, _infix),
    **dict.fromkeys(SIGNED, _with_sign(SIGNED, signed)),
    **dict.fromkeys(UNSIGNED, _with_sign(UNSIGNED, unsigned)),
    **dict.fromkeys(FLOAT, _float),
    arith.ConstantOp: _constant,
    arith.CmpfOp: _compare_floats,
    arith.CmpiOp: _compare_integers,
    arith.SelectOp: _select,
    **dict.fromkeys(scalar.CONVERSIONS, _convert),
    **dict.fromkeys(DIGITS, _digits),
    scalar.PhiloxOp: _philox,
    kernel.IndexOp: _index,
}


def _added_handler(op: type[Operation]) -> Callable[..., None] | None:
    """The handler of another package; a text is a spelling like those of `FLOAT`."""
    handler = extensions.table("inductile.triton").get(op)
    return _float if isinstance(handler, str | dict) else handler


def emit(context: Context, op: Operation) -> None:
    """Emit a scalar op. UnsupportedError for one that Triton has no spelling for."""
    handler = HANDLERS.get(type(op)) or _added_handler(type(op))
    if handler is None:
        raise UnsupportedError(f"Triton kernels have no {op.name}")
    handler(context, op)
