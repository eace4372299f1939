"""Constants and conditional expressions of C."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from ..printing.code import ATOM, LOOSE, SUM, UNARY, Code

if TYPE_CHECKING:
    from .language import Language


#: name of the last parameter of a checked kernel
REPORT = "report"


def conditional(condition: Code, then: Code, other: Code) -> Code:
    """`condition ? then : other`."""
    return Code(f"{condition.at(LOOSE - 1)} ? {then.at(SUM)} : {other.at(SUM)}", LOOSE)


def float_literal(value: float, double: bool) -> Code:
    """The shortest decimal constant that reads back to the same number; builtins for infinities and NaN."""
    suffix = "" if double else "f"
    if math.isnan(value):
        return Code(f'__builtin_nan{suffix}("")')
    if math.isinf(value):
        return Code(f"{'-' if value < 0 else ''}__builtin_inf{suffix}()", UNARY if value < 0 else ATOM)
    text = repr(value) if double else _shortest_float(value)
    if "." not in text and "e" not in text:
        text += ".0"
    return Code(text + suffix, UNARY if text.startswith("-") else ATOM)


def rounded(value: float, half: str | None) -> float:
    """A number rounded to nearest even in "f16" or "bf16"; unchanged for None."""
    if half is None or not math.isfinite(value):
        return value
    if half == "f16":
        try:
            return struct.unpack("e", struct.pack("e", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
    (bits,) = struct.unpack("I", struct.pack("f", value))
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("f", struct.pack("I", bits))[0]


def _shortest_float(value: float) -> str:
    exact = struct.pack("f", value)
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        # a decimal just above the largest float does not pack
        if abs(float(text)) <= 3.4028234663852886e38 and struct.pack("f", float(text)) == exact:
            return repr(float(text))
    return repr(value)


def int_literal(value: int, width: int, language: Language) -> Code:
    """A constant of a signless type with `width` bits, of the right C type: `5`, `5L`, `int8_t(5)`."""
    value = (value + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    if width == 1:
        return Code("true" if value else "false")
    if width < 32:
        return Code(language.converted(f"int{width}_t", str(value)))
    suffix = "L" if width == 64 else ""
    if value == -(1 << (width - 1)):
        return Code(f"({value + 1}{suffix} - 1)")
    return Code(f"{value}{suffix}", UNARY if value < 0 else ATOM)
