"""C types of buffer elements and of scalars."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
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

#: a scalar of one of these types is a float that the type can represent
HALVES: dict[type[Attribute], str] = {
    Float16Type: "f16", BFloat16Type: "bf16", Float8E4M3FNType: "f8e4m3fn", Float8E5M2Type: "f8e5m2",
}  # fmt: skip
_BYTES = (Float8E4M3FNType, Float8E5M2Type)
_INTEGER_WIDTHS = (8, 16, 32, 64)


def scalar_ctype(scalar: Attribute) -> str:
    """C type of an SSA scalar. UnsupportedError for complex numbers and other floats of 8 bits."""
    if isinstance(scalar, Float32Type) or type(scalar) in HALVES:
        return "float"
    if isinstance(scalar, Float64Type):
        return "double"
    if isinstance(scalar, IndexType):
        return "int64_t"
    if isinstance(scalar, IntegerType):
        width = scalar.width.data
        if width == 1:
            return "bool"
        if width in _INTEGER_WIDTHS:
            return f"int{width}_t"
    raise UnsupportedError(f"kernels of a CPU do not compute with {scalar}")


def storage_ctype(element: Attribute) -> str:
    """C type of a buffer's elements in memory: bool as a byte, floats of 16 and of 8 bits as their bits."""
    if type(element) in HALVES:
        return "uint8_t" if isinstance(element, _BYTES) else "uint16_t"
    if isinstance(element, IntegerType):
        width = element.width.data
        if width == 1:
            return "uint8_t"
        return f"uint{width}_t" if is_unsigned(element) else f"int{width}_t"
    return scalar_ctype(element)


def half_name(scalar: Attribute) -> str | None:
    """Suffix of the conversion functions of a type, "f16" or "f8e5m2"; None for other types."""
    return HALVES.get(type(scalar))


def int_width(scalar: Attribute) -> int:
    """Bits of an integer or index type."""
    return scalar.width.data if isinstance(scalar, IntegerType) else 64


def is_float(scalar: Attribute) -> bool:
    """Whether a scalar type is a floating-point type that kernels compute with."""
    return isinstance(scalar, Float32Type | Float64Type) or type(scalar) in HALVES


def is_double(scalar: Attribute) -> bool:
    """Whether a scalar type is f64."""
    return isinstance(scalar, Float64Type)


def item_bytes(element: Attribute) -> int:
    """Bytes of one element in memory."""
    if isinstance(element, IntegerType):
        return max(1, element.width.data // 8)
    if isinstance(element, _BYTES):
        return 1
    return 2 if type(element) in HALVES else 8 if is_double(element) else 4
