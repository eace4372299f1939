"""Floating point literals that read back to the same bits."""

from __future__ import annotations

import math

from xdsl.parser import BaseParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

_NON_FINITE = {"inf": math.inf, "nan": math.nan}


def float_text(value: float) -> str:
    """The shortest text that reads back to `value`: `0.1`, `1.0e-12`, `-0.0`, `inf`, `nan`.

    The lexer wants digits on both sides of a point, which Python leaves out before an exponent.
    """
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa}.0{exponent}{power}" if exponent and "." not in mantissa else text


def parse_float(parser: BaseParser) -> float:
    """Read what `float_text` writes, or an integer."""
    value = parse_optional_float(parser)
    if value is None:
        value = float(parser.parse_integer(allow_boolean=False))
    return value


def parse_optional_float(parser: BaseParser) -> float | None:
    """Read what `float_text` writes; None, and nothing read, when something else follows."""
    start = parser.pos
    sign = -1.0 if parser.parse_optional_punctuation("-") is not None else 1.0
    token = parser._current_token  # pyright: ignore[reportPrivateUsage]
    if token.kind == MLIRTokenKind.FLOAT_LIT:
        parser._consume_token()  # pyright: ignore[reportPrivateUsage]
        return sign * float(token.text)
    if token.kind == MLIRTokenKind.BARE_IDENT and token.text in _NON_FINITE:
        parser._consume_token()  # pyright: ignore[reportPrivateUsage]
        return sign * _NON_FINITE[token.text]
    parser._resume_from(start)  # pyright: ignore[reportPrivateUsage]
    return None
