"""Element types as PyTorch computes with them: kinds, limits, the type of computation, promotion.

An element type is the attribute that a tensor type holds (`f32`, `ui8`, `i1` for bool). Its category decides
promotion: a tensor with dimensions outranks one without, which outranks a Python number, unless the latter is of a
higher category.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from functools import cache
from typing import Literal

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

from ...dialects.aten.types import ELEMENT_TYPES, TensorType
from ...machines import eager

Kind = Literal["bool", "signed", "unsigned", "float"]

BOOL = ELEMENT_TYPES["bool"]
I32 = ELEMENT_TYPES["int32"]
I64 = ELEMENT_TYPES["int64"]
U8 = ELEMENT_TYPES["uint8"]
F16 = ELEMENT_TYPES["float16"]
BF16 = ELEMENT_TYPES["bfloat16"]
F32 = ELEMENT_TYPES["float32"]
F64 = ELEMENT_TYPES["float64"]

#: element types that bodies convert to and from float32, and do nothing else with -> their largest number
FLOAT8 = {ELEMENT_TYPES["float8_e4m3fn"]: 448.0, ELEMENT_TYPES["float8_e5m2"]: 57344.0}

#: low-precision element types, which bodies compute with in float32
LOW_PRECISION = frozenset((F16, BF16))

_FLOAT_LIMITS = {
    F16: 65504.0,
    BF16: float.fromhex("0x1.fep127"),
    F32: float.fromhex("0x1.fffffep127"),
    F64: float.fromhex("0x1.fffffffffffffp1023"),
}
_FLOAT_EPS = {F16: 2.0**-10, BF16: 2.0**-7, F32: 2.0**-23, F64: 2.0**-52}


@cache
def kind(element: Attribute) -> Kind | None:
    """How a scalar of this element type is computed with; None for a type that only ATen computes with."""
    if isinstance(element, Float16Type | BFloat16Type | Float32Type | Float64Type):
        return "float"
    if not isinstance(element, IntegerType):
        return None
    if element.width.data == 1:
        return "bool"
    return "unsigned" if element.signedness.data is Signedness.UNSIGNED else "signed"


def is_float(element: Attribute) -> bool:
    """Whether the element type is a floating-point type that bodies compute with."""
    return kind(element) == "float"


def is_integer(element: Attribute) -> bool:
    """Whether the element type is an integer, signed or not, and not bool."""
    return kind(element) in ("signed", "unsigned")


def computation_type(element: Attribute) -> Attribute:
    """The type in which a body computes values of this element type: float32 for float16 and bfloat16."""
    return F32 if element in LOW_PRECISION else element


def accumulation_type(element: Attribute, device: str, wide: bool = False) -> Attribute:
    """The type in which values are summed; `wide` is for variances, which eager's kernels may take in float64."""
    if wide and is_float(element) and eager(device).variances_in_double:
        return F64
    return computation_type(element)


def integer_limits(element: Attribute) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool element type."""
    assert isinstance(element, IntegerType)
    width = element.width.data
    if kind(element) == "signed":
        return -(1 << (width - 1)), (1 << (width - 1)) - 1
    return 0, (1 << width) - 1


def lowest(element: Attribute) -> float | int:
    """The identity of max: -inf or the smallest integer."""
    return float("-inf") if is_float(element) else integer_limits(element)[0]


def highest(element: Attribute) -> float | int:
    """The identity of min: inf or the largest integer."""
    return float("inf") if is_float(element) else integer_limits(element)[1]


def finite_limit(element: Attribute) -> float:
    """The largest finite value of a floating-point type."""
    return _FLOAT_LIMITS[element]


def rounded(value: float | int, element: Attribute) -> float:
    """A number rounded to float16 or bfloat16, to nearest even."""
    number = float(value)
    if not math.isfinite(number):
        return number
    if element == F16:
        return _packed("e", number)
    single = _packed("f", number)
    if not math.isfinite(single):
        return single
    (bits,) = struct.unpack("I", struct.pack("f", single))
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("f", struct.pack("I", bits))[0]


def reciprocal(value: float, element: Attribute) -> float:
    """1 / value, rounded to the type that values of a floating-point type are computed in: float32, or float64."""
    if value == 0 or math.isnan(value):
        return math.copysign(math.inf, value) if value == 0 else value
    return 1 / value if element == F64 else _packed("f", 1 / value)


def _packed(format_: str, number: float) -> float:
    """A finite number in a format of `struct`; infinite where it overflows."""
    try:
        return struct.unpack(format_, struct.pack(format_, number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def epsilon(element: Attribute) -> float:
    """The distance from 1 to the next number of a floating-point type."""
    return _FLOAT_EPS[element]


_CATEGORY = {"bool": 0, "signed": 1, "unsigned": 1, "float": 2}


def _category(element: Attribute) -> int:
    return _CATEGORY[kind(element) or "float"]


def number_type(value: object) -> Attribute:
    """Element type that a Python number has before promotion; a symbolic integer counts as an int."""
    if isinstance(value, bool):
        return BOOL
    return F32 if isinstance(value, float) else I64


@cache
def promote(left: Attribute, right: Attribute) -> Attribute:
    """The common type of two element types of one priority, by torch's lattice."""
    if left == right:
        return left
    low, high = sorted((left, right), key=_category)
    if _category(low) != _category(high):
        return high
    if _category(high) == 2:
        return _promote_floats(low, high)
    return _promote_integers(low, high)


def _promote_floats(left: Attribute, right: Attribute) -> Attribute:
    for wide in (F64, F32):
        if wide in (left, right):
            return wide
    return F32  # float16 with bfloat16


def _promote_integers(left: Attribute, right: Attribute) -> Attribute:
    assert isinstance(left, IntegerType) and isinstance(right, IntegerType)
    if kind(left) == kind(right):
        return max(left, right, key=lambda each: each.width.data)
    unsigned, signed = (left, right) if kind(left) == "unsigned" else (right, left)
    if signed.width.data > unsigned.width.data:
        return signed
    return IntegerType(min(64, 2 * unsigned.width.data))


def common_type(operands: Iterable[TensorType | bool | int | float | object]) -> Attribute:
    """Element type that torch promotes tensors (given by their types) and Python numbers to."""
    ranks: list[Attribute | None] = [None, None, None]
    for each in operands:
        if isinstance(each, TensorType):
            priority, element = (2 if each.shape else 1), each.element
        else:
            priority, element = 0, number_type(each)
        known = ranks[priority]
        ranks[priority] = element if known is None else promote(known, element)
    result: Attribute | None = None
    for element in reversed(ranks):
        if element is not None and (result is None or _category(element) > _category(result)):
            result = element
    assert result is not None
    return result
