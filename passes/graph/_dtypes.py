"""Which numbers the element types hold."""

from __future__ import annotations

import math
import struct

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from ...dialects.aten.types import is_unsigned

#: binary digits of the significand, exponent of the smallest number, exponent of the largest power of two
_FLOATS: dict[type[Attribute], tuple[int, int, int]] = {
    Float16Type: (11, -24, 15),
    BFloat16Type: (8, -133, 127),
    Float32Type: (24, -149, 127),
    Float64Type: (53, -1074, 1023),
}
_PACKING: dict[type[Attribute], str] = {Float16Type: "e", BFloat16Type: "f", Float32Type: "f", Float64Type: "d"}


def is_float(element: Attribute) -> bool:
    """Whether an element type is one of the floats whose rounding is known here."""
    return type(element) in _FLOATS


def integer_range(element: IntegerType) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool."""
    bits = element.width.data
    if bits == 1 or is_unsigned(element):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def is_exact(narrow: Attribute, wide: Attribute) -> bool:
    """Whether every value of `narrow` is a value of `wide`; False for types that are not known here."""
    if isinstance(narrow, IntegerType):
        low, high = integer_range(narrow)
        if isinstance(wide, IntegerType):
            return integer_range(wide)[0] <= low and high <= integer_range(wide)[1]
        return type(wide) in _FLOATS and high.bit_length() <= min(_FLOATS[type(wide)][0], _FLOATS[type(wide)][2])
    if type(narrow) not in _FLOATS or type(wide) not in _FLOATS:
        return False
    (digits, smallest, largest), (wide_digits, wide_smallest, wide_largest) = _FLOATS[type(narrow)], _FLOATS[type(wide)]
    return digits <= wide_digits and smallest >= wide_smallest and largest <= wide_largest


def holds(element: Attribute, value: float) -> bool:
    """Whether a number is exactly a value of an element type."""
    if isinstance(element, IntegerType):
        low, high = integer_range(element)
        return math.isfinite(value) and value == int(value) and low <= value <= high
    packing = _PACKING.get(type(element))
    if packing is None:
        return False
    if math.isnan(value) or math.isinf(value):
        return True
    try:
        packed = struct.pack(f"<{packing}", value)
    except OverflowError:
        return False
    if type(element) is BFloat16Type and packed[:2] != b"\0\0":
        return False
    return struct.unpack(f"<{packing}", packed)[0] == value
