"""Conversions between scalar types, and between scalars and what memory holds."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from ...dialects.aten.types import is_unsigned, scalar_type
from ..printing.code import LOOSE, PRODUCT, UNARY, Code, call
from .language import Needs
from .types import half_name, int_width, is_double, is_float, scalar_ctype, storage_ctype


def cast(ctype: str, value: Code) -> Code:
    """A C-style cast, which binds like a unary operator."""
    return Code(f"({ctype}){value.at(UNARY)}", UNARY)


def is_bool(scalar: Attribute) -> bool:
    """Whether a type is i1."""
    return isinstance(scalar, IntegerType) and scalar.width.data == 1


def from_storage(element: Attribute, value: Code, need: Needs) -> Code:
    """The scalar of an element read from memory."""
    half = half_name(element)
    if half is not None:
        need(half)
        return call(f"from_{half}", value)
    if is_bool(element):
        return Code(f"{value.at(PRODUCT)} != 0", LOOSE)
    if is_unsigned(element):
        return cast(scalar_ctype(scalar_type(element)), value)
    return value


def to_storage(element: Attribute, value: Code, need: Needs) -> Code:
    """What memory holds for a scalar; rounds a float that a half type cannot represent."""
    half = half_name(element)
    if half is not None:
        need(half)
        return call(f"to_{half}", value)
    if is_unsigned(element):
        return cast(storage_ctype(element), value)
    return value


def convert(value: Code, source: Attribute, target: Attribute, need: Needs) -> Code:
    """The value of an element type as another one, as `Tensor.to` converts."""
    if source == target:
        return value
    if is_float(source):
        return _from_float(value, source, target, need)
    if is_bool(target):
        return Code(f"{value.at(PRODUCT)} != 0", LOOSE)
    if is_unsigned(source):
        value = cast(storage_ctype(source), value)
    if is_float(target):
        return _round_half(cast(scalar_ctype(target), value), target, need)
    return _to_int(value, target)


def _from_float(value: Code, source: Attribute, target: Attribute, need: Needs) -> Code:
    if is_float(target):
        if is_double(source) != is_double(target):
            value = cast(scalar_ctype(target), value)
        narrows = half_name(target) is not None and half_name(source) != half_name(target)
        return _round_half(value, target, need) if narrows else value
    if is_bool(target):
        return Code(f"{value.at(PRODUCT)} != 0", LOOSE)
    # Out of range, x86 gives the smallest integer of the type converted to; going through a wide type makes
    # narrow results wrap as they do in torch.
    wide = "int64_t" if _goes_through_long(source, target) else "int32_t"
    return _to_int(truncate(wide, value, need), target, wide)


def _goes_through_long(source: Attribute, target: Attribute) -> bool:
    """Whether 32 bits may lack bits that the result has.

    A float32 of 2^31 and more is a multiple of 2^8: its low byte is 0, as that of the smallest int32 is.
    """
    width = int_width(target)
    return width == 64 or (is_unsigned(target) and (width > 8 or is_double(source)))


def truncate(ctype: str, value: Code, need: Needs) -> Code:
    """A float as int32_t, int64_t or uint64_t, rounded towards zero, with no sign of a zero."""
    need("truncate")
    return call(f"to_{ctype.removesuffix('_t')}", value)


def _round_half(value: Code, target: Attribute, need: Needs) -> Code:
    half = half_name(target)
    if half is None:
        return value
    need(half)
    return call(f"round_{half}", value)


def _to_int(value: Code, target: Attribute, ctype: str = "") -> Code:
    wanted = scalar_ctype(scalar_type(target))
    return value if wanted == ctype else cast(wanted, value)
