"""Reading expressions from text, which is untrusted: length, nesting and size are bounded.

    sum     ::= product (("+" | "-") product)*
    product ::= unary (("*" | "floordiv" | "mod" | "ceildiv") unary)*
    unary   ::= "-" unary | primary
    primary ::= name | integer | "(" sum ")" | ("min" | "max") "(" sum ("," sum)* ")"

An identifier is consumed only where an operand may stand, so `i0 in s0` stops before `in`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.parser import BaseParser, ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input

from ..reading import Lexer
from .division import ceildiv
from .errors import SymError
from .extremum import smax, smin
from .polynomial import Expr, Monomial, accumulate, const, from_terms, symbol

MAX_NESTING = 64
"""Deepest nesting of parentheses, calls and signs."""
MAX_LENGTH = 1 << 16
"""Longest text, in characters."""
MAX_BITS = 64
"""Widest coefficient: indices are computed in 64 bits."""

_PRODUCT: Mapping[str, Callable[[Expr, Expr], Expr]] = {
    "*": lambda left, right: left * right,
    "floordiv": lambda left, right: left // right,
    "mod": lambda left, right: left % right,
    "ceildiv": ceildiv,
}
_CALLS: Mapping[str, Callable[..., Expr]] = {"min": smin, "max": smax}


def parse_expr(parser: BaseParser) -> Expr:
    """Read the longest expression at the parser's position and leave the parser behind it.

    Raises xDSL's ParseError, at the offending token, for malformed text and for what `SymError` covers.
    """
    return _sum(parser, 0)


def parse_text(text: str) -> Expr:
    """Read an expression that is all of `text`. Raises SymError with the position of the fault."""
    if len(text) > MAX_LENGTH:
        raise SymError(f"symbolic expression has {len(text)} characters; the limit is {MAX_LENGTH}")
    try:
        parser = BaseParser(ParserState(Lexer(Input(text, "<expression>"))))
        expr = parse_expr(parser)
        if parser.pos < len(text.rstrip()):
            parser.raise_error("expected an operator or the end of the expression")
    except ParseError as error:
        shown = text if len(text) <= 200 else text[:200] + "..."
        raise SymError(f"{error.msg} at column {error.span.start + 1} of {shown!r}") from None
    return expr


def _sum(parser: BaseParser, depth: int) -> Expr:
    if depth > MAX_NESTING:
        parser.raise_error(f"symbolic expression is nested more than {MAX_NESTING} deep")
    start = parser.pos
    first = _product(parser, depth)
    terms: dict[Monomial, int] = {}
    sign = 0
    while True:
        if parser.parse_optional_punctuation("+"):
            sign = 1
        elif parser.parse_optional_punctuation("-"):
            sign = -1
        else:
            break
        # One sum at the end: partial sums would cost quadratic time, and stay in the table of expressions.
        accumulate(terms, _product(parser, depth), sign)
    if not sign:
        return first
    accumulate(terms, first)
    try:
        return from_terms(terms)
    except SymError as error:
        parser.raise_error(str(error), start, parser.pos)


def _product(parser: BaseParser, depth: int) -> Expr:
    left = _unary(parser, depth)
    while True:
        start = parser.pos
        operator = "*" if parser.parse_optional_punctuation("*") else None
        operator = operator or parser.parse_optional_keyword_in(_PRODUCT)
        if operator is None:
            return left
        right = _unary(parser, depth)
        try:
            left = _PRODUCT[operator](left, right)
        except SymError as error:
            parser.raise_error(str(error), start, parser.pos)
        if any(coefficient.bit_length() > MAX_BITS for _, coefficient in left.terms):
            parser.raise_error(f"a coefficient has more than {MAX_BITS} bits", start, parser.pos)


def _unary(parser: BaseParser, depth: int) -> Expr:
    if depth > MAX_NESTING:
        parser.raise_error(f"symbolic expression is nested more than {MAX_NESTING} deep")
    if parser.parse_optional_punctuation("-"):
        return -_unary(parser, depth + 1)
    return _primary(parser, depth)


def _primary(parser: BaseParser, depth: int) -> Expr:
    if parser.parse_optional_punctuation("("):
        inner = _sum(parser, depth + 1)
        parser.parse_punctuation(")")
        return inner
    start = parser.pos
    try:
        value = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    except ValueError:  # Python refuses to convert thousands of digits
        parser.raise_error("integer literal is too long", start, parser.pos)
    if value is not None:
        if value.bit_length() > MAX_BITS:
            parser.raise_error("integer literal is too long", start, parser.pos)
        return const(value)
    name = parser.parse_optional_identifier()
    if name is None:
        parser.raise_error("expected a symbol, an integer, '(', 'min' or 'max'")
    if name in _CALLS:
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _sum(parser, depth + 1))
        try:
            return _CALLS[name](*args)
        except SymError as error:
            parser.raise_error(str(error), start, parser.pos)
    try:
        return symbol(name)
    except SymError as error:
        parser.raise_error(str(error), start, parser.pos)
