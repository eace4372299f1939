"""Reading text: the lexer and the parser that are used wherever IR is read, which is untrusted.

xDSL's own lexer matches a string by a regular expression that backtracks: a string of 32 characters that is not closed
keeps it busy for hours. Here one expression with possessive quantifiers finds each token in time linear in its length,
and tokens are made without the checks of frozen dataclasses, which is most of what reading a long file costs.
"""

from __future__ import annotations

import re
from typing import cast

from typing_extensions import override
from xdsl.context import Context
from xdsl.ir import Attribute, Region
from xdsl.parser import Parser, ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

MAX_REGIONS = 100
"""Deepest nesting of regions in text; loops of a program nest a tenth as deep."""
MAX_ATTRIBUTES = 64
"""Deepest nesting of attributes and types."""

_STRING = r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'
_BARE = r"[A-Za-z_][A-Za-z0-9_$.]*+"
_SUFFIX = r"(?:[0-9]++|[A-Za-z$._-][A-Za-z0-9$._-]*+)"
_SPACE = re.compile(r"(?:[ \t\n\r\f\v]++|//[^\n]*+)*+")
_TOKEN = re.compile(
    rf"""(?P<PERCENT_IDENT>%{_SUFFIX}) | (?P<BARE_IDENT>{_BARE})
    | (?P<file>\{{-\#|\#-\}}) | (?P<punctuation>->|\.\.\.|[:,(){{}}\[\]<>=+/*?|-])
    | (?P<HEX>0x[0-9a-fA-F]++) | (?P<FLOAT_LIT>[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?+) | (?P<INTEGER_LIT>[0-9]++)
    | (?P<EXCLAMATION_IDENT>!{_SUFFIX}) | (?P<HASH_IDENT>\#{_SUFFIX}) | (?P<CARET_IDENT>\^{_SUFFIX})
    | (?P<AT_IDENT>@(?:{_BARE}|{_STRING})) | (?P<string>{_STRING})""",
    re.VERBOSE,
)
_KINDS: dict[str, MLIRTokenKind] = {
    name: MLIRTokenKind[name]
    for name in (
        "PERCENT_IDENT", "BARE_IDENT", "FLOAT_LIT", "INTEGER_LIT", "EXCLAMATION_IDENT", "HASH_IDENT", "CARET_IDENT",
        "AT_IDENT",
    )
} | {"HEX": MLIRTokenKind.INTEGER_LIT}  # fmt: skip


def _token(kind: MLIRTokenKind, start: int, end: int, text: Input[str]) -> MLIRToken:
    """A token; its fields are written past the checks of a frozen dataclass."""
    span = object.__new__(Span)
    fields = span.__dict__
    fields["start"], fields["end"], fields["input"] = start, end, text
    token = cast("MLIRToken", object.__new__(MLIRToken.__origin__))  # pyright: ignore
    fields = token.__dict__
    fields["kind"], fields["span"] = kind, span
    return token


class Lexer(MLIRLexer):
    """Tokens of MLIR's syntax, in time linear in the text."""

    @override
    def lex(self) -> MLIRToken:
        content = self.input.content
        space = _SPACE.match(content, self.pos)
        assert space is not None
        start = space.end()
        match = _TOKEN.match(content, start)
        if match is None:
            return self._no_token(start)
        end = self.pos = match.end()
        group = match.lastgroup
        assert group is not None
        kind = _KINDS.get(group)
        if kind is not None:
            return _token(kind, start, end, self.input)
        if group == "string":
            return self._string(start, end)
        return _token(KIND_BY_PUNCTUATION_SPELLING[match[group]], start, end, self.input)  # pyright: ignore

    def _string(self, start: int, end: int) -> MLIRToken:
        literal = StringLiteral(start, end, self.input)
        plain = "\\" not in literal.text or literal.bytes_contents.isascii()
        return MLIRToken(MLIRTokenKind.STRING_LIT if plain else MLIRTokenKind.BYTES_LIT, literal)

    def _no_token(self, start: int) -> MLIRToken:
        if start >= self.input.len:
            self.pos = start
            return _token(MLIRTokenKind.EOF, start, start, self.input)
        character = self.input.content[start]
        if character == '"' or self.input.content.startswith('@"', start):
            problem = 'a string is not closed on its line, or has an escape that is none of \\n \\t \\\\ \\" \\41'
        else:
            problem = f"unexpected character {character!r}"
        raise ParseError(Span(start, start + 1, self.input), problem)


class Reader(Parser):
    """A parser of IR with our lexer, and limits on nesting that keep text from exhausting the stack."""

    def __init__(self, context: Context, text: str, name: str = "<unknown>") -> None:
        super().__init__(context, "", name)
        self._regions = self._attributes = 0
        self._parser_state = ParserState(Lexer(Input(text, name)))

    @override
    def parse_optional_region(self, arguments: object = None) -> Region | None:
        if self._regions >= MAX_REGIONS:
            self.raise_error(f"regions are nested more than {MAX_REGIONS} deep")
        self._regions += 1
        region = super().parse_optional_region(arguments)  # pyright: ignore
        self._regions -= 1
        return region

    @override
    def parse_optional_attribute(self) -> Attribute | None:
        self._enter()
        found = super().parse_optional_attribute()
        self._attributes -= 1
        return found

    @override
    def parse_optional_type(self) -> Attribute | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._enter()
        found = super().parse_optional_type()
        self._attributes -= 1
        return found

    def _enter(self) -> None:
        if self._attributes >= MAX_ATTRIBUTES:
            self.raise_error(f"attributes are nested more than {MAX_ATTRIBUTES} deep")
        self._attributes += 1
