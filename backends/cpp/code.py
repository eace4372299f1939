"""C++ expressions as text with a binding strength, identifiers, and exact constants."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Container
from dataclasses import dataclass
from functools import cache

from .prelude import reserved_names

#: C++ name of the last parameter of a checked kernel
REPORT = "report"

# Binding strengths, tightest first.
ATOM, UNARY, PRODUCT, SUM, LOOSE = range(5)


@dataclass(frozen=True)
class Code:
    """An expression. `level` is the strength of its outermost operator."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as `level`."""
        return self.text if self.level <= level else f"({self.text})"

    def __str__(self) -> str:
        return self.text


def binary(operator: str, level: int, left: Code, right: Code) -> Code:
    """`left operator right` for a left-associative operator; never reassociates."""
    return Code(f"{left.at(level)} {operator} {right.at(level - 1)}", level)


def compare(operator: str, left: Code, right: Code) -> Code:
    """A comparison or a bitwise operator: operands bind like sums at least."""
    return Code(f"{left.at(SUM)} {operator} {right.at(SUM)}", LOOSE)


def call(function: str, *arguments: Code) -> Code:
    """`function(arguments)`."""
    return Code(f"{function}({', '.join(a.text for a in arguments)})")


def conditional(condition: Code, then: Code, other: Code) -> Code:
    """`condition ? then : other`."""
    return Code(f"{condition.at(LOOSE - 1)} ? {then.at(SUM)} : {other.at(SUM)}", LOOSE)


_KEYWORDS = frozenset({
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char16_t", "char32_t", "class", "compl", "const", "constexpr", "const_cast", "continue", "decltype", "default",
    "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "return",
    "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual",
    "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "main", "linux", "unix", "failed", "lane", "lanes",
    "restrict", "begin", "end", "all_failed", "report",
})  # fmt: skip
_MAX_NAME = 60
_SUFFIXES = ("_data", "_extent", "_memory", "_end")


@cache
def _reserved() -> frozenset[str]:
    return _KEYWORDS | reserved_names()


def identifier(wanted: str, taken: Container[str]) -> str:
    """A C++ identifier like `wanted`: other characters become `_`, and a number makes it unique."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", wanted)[:_MAX_NAME]
    name = re.sub(r"__+", "_", name)
    if not name or not name[0].isalpha():
        name = "v" + name
    if name.endswith(_SUFFIXES):  # names of checked kernels are made of others and these
        name += "_v"
    candidate, number = name, 2
    while candidate in taken or candidate in _reserved():
        candidate, number = f"{name}_{number}", number + 1
    return candidate


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


def int_literal(value: int, width: int) -> Code:
    """A constant of a signless type with `width` bits, of the right C++ type: `5`, `5L`, `int8_t(5)`."""
    value = (value + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    if width == 1:
        return Code("true" if value else "false")
    if width < 32:
        return Code(f"int{width}_t({value})")
    suffix = "L" if width == 64 else ""
    if value == -(1 << (width - 1)):
        return Code(f"({value + 1}{suffix} - 1)")
    return Code(f"{value}{suffix}", UNARY if value < 0 else ATOM)
