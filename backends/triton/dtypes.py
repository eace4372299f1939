"""Triton's names of element types and of scalars, and constants as text."""

from __future__ import annotations

import math
import struct

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute

from ...dialects.aten.types import is_unsigned
from ...errors import UnsupportedError

_FLOATS: dict[type[Attribute], tuple[str, str]] = {
    Float16Type: ("float16", "fp16"),
    BFloat16Type: ("bfloat16", "bf16"),
    Float32Type: ("float32", "fp32"),
    Float64Type: ("float64", "fp64"),
    Float8E4M3FNType: ("float8e4nv", "fp8e4nv"),
    Float8E4M3FNUZType: ("float8e4b8", "fp8e4b8"),
    Float8E5M2Type: ("float8e5", "fp8e5"),
    Float8E5M2FNUZType: ("float8e5b16", "fp8e5b16"),
}
_INTEGER_WIDTHS = (1, 8, 16, 32, 64)

#: dtypes in which Triton reads a Python literal as it stands; others need a typed constant
_PLAIN_LITERALS = frozenset({"float32", "int32", "int64", "int1"})


def dtype_name(element: Attribute) -> str:
    """Triton's dtype of a buffer's element or of a scalar, without `tl.`: "float32", "uint8", "int1".

    UnsupportedError for complex numbers and element types that only ATen knows.
    """
    if type(element) in _FLOATS:
        return _FLOATS[type(element)][0]
    if isinstance(element, IndexType):
        return "int64"
    if isinstance(element, IntegerType) and element.width.data in _INTEGER_WIDTHS:
        return f"{'uint' if is_unsigned(element) else 'int'}{element.width.data}"
    raise UnsupportedError(f"Triton kernels do not compute with {element}")


def pointer_name(element: Attribute) -> str:
    """The type of a buffer argument in a kernel's signature: "*fp32", "*i64", "*u8", "*i1"."""
    if type(element) in _FLOATS:
        return f"*{_FLOATS[type(element)][1]}"
    name = dtype_name(element)
    return f"*{name.replace('uint', 'u').replace('int', 'i')}"


def is_float(dtype: str) -> bool:
    """Whether a dtype is a floating-point type."""
    return dtype.startswith(("float", "bfloat"))


def unsigned(dtype: str) -> str:
    """The unsigned integer type of the same width."""
    return dtype if dtype.startswith("u") else f"u{dtype}"


def signed(dtype: str) -> str:
    """The signed type of the same width; floats and bool as they are."""
    return dtype[1:] if dtype.startswith("uint") else dtype


def literal(value: bool | int | float, dtype: str) -> str:
    """A constant as a Python literal; of floats the shortest text that rounds to the value."""
    if dtype == "int1":
        return str(bool(value))
    if not is_float(dtype):
        return str(int(value))
    value = float(value)
    if math.isnan(value):
        return 'float("nan")'
    if math.isinf(value):
        return 'float("inf")' if value > 0 else '-float("inf")'
    return _shortest(value) if dtype == "float32" else repr(value)


def _shortest(value: float) -> str:
    """The shortest decimal that rounds to a float32."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if float(text) == value or _round32(float(text)) == value:
            return repr(float(text))
    return repr(value)


def _round32(value: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf


def typed_constant(text: str, dtype: str) -> str:
    """A scalar tensor of a dtype from a literal."""
    return f"tl.full([], {text}, tl.{dtype})"


def is_plain_literal(dtype: str) -> bool:
    """Whether a literal of this dtype may stand where a tensor is expected."""
    return dtype in _PLAIN_LITERALS
