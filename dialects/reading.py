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
from xdsl.ir import Attribute, Operation, Region, SSAValue, TypeAttribute
from xdsl.parser import Parser, ParserState
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRLexer,
    MLIRToken,
    MLIRTokenKind,
    PunctuationSpelling,
    StringLiteral,
)

from ..records import dataclass
from .format import NAMED_LOCATION, upgraded

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
        """A string; bytes where its escapes spell no text. xDSL prints all characters beyond ASCII as escapes."""
        literal = StringLiteral(start, end, self.input)
        kind = MLIRTokenKind.STRING_LIT if "\\" not in literal.text or _is_text(literal) else MLIRTokenKind.BYTES_LIT
        return MLIRToken(kind, literal)

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


def _is_text(literal: StringLiteral) -> bool:
    try:
        literal.bytes_contents.decode()
    except UnicodeDecodeError:
        return False
    return True


#: a type without other types inside, which ends at the first bracket that closes
_TYPE = re.compile(r'!(?:aten\.tensor|kernel\.buffer)<(?:[^<>"\n/]++|"[^<>"\n]*+")*+>')

#: `%c = arith.cmpi slt, %a, %b : i64`, which most lines of a body are like
_SCALAR_LINE = re.compile(
    r"(?P<result>%[A-Za-z0-9$._-]+) = (?P<head>(?:arith|math|scalar)\.\w++ (?:[a-z]++, )?)"
    r"(?P<operands>%[A-Za-z0-9$._-]+(?:, %[A-Za-z0-9$._-]+)*+)(?P<tail> : [a-z]++[0-9]++)(?=[ \t]*+\n)"
)


def _table_of_locations(text: str) -> int:
    """Where the table of locations begins, which is all that follows; the length of the text without one."""
    begin = len(text)
    end = len(text.rstrip())
    while end > 0:
        start = text.rfind("\n", 0, end) + 1
        if not NAMED_LOCATION.match(text, start, end):
            break
        begin, end = start, start - 1
    return begin


@dataclass(frozen=True)
class _Likeness:
    """What two lines share that differ in the names of values alone."""

    cls: type[Operation]
    operands: tuple[Attribute, ...]
    results: tuple[Attribute, ...]
    properties: dict[str, Attribute]


class _Names(dict[str, tuple[SSAValue, ...]]):
    """The values that have a name. A region begins without a copy of all of them: its own are removed behind it."""

    @override
    def copy(self) -> dict[str, tuple[SSAValue, ...]]:
        return self


class Reader(Parser):
    """A parser of IR with our lexer, and limits on nesting that keep text from exhausting the stack.

    It takes text of this format and of earlier ones (`format.py`).


    Lines of scalar ops that differ from one before them in the names of values alone are made as that one was.
    """

    def __init__(self, context: Context, text: str, name: str = "<unknown>") -> None:
        super().__init__(context, "", name)
        self.ssa_values = _Names()
        self._alike: dict[tuple[str, str, int], _Likeness] = {}
        self._types: dict[str, TypeAttribute] = {}
        self._regions = self._attributes = 0
        text = upgraded(text, name)
        begin = _table_of_locations(text)
        if begin < len(text):
            self._read_locations(text, begin, name)
        self._parser_state = ParserState(Lexer(Input(text[:begin], name)))

    def _read_locations(self, text: str, begin: int, name: str) -> None:
        """Read the table at the end of a text, since ops in front of it use the names."""
        lexer = Lexer(Input(text, name))
        lexer.pos = begin
        self._parser_state = ParserState(lexer)
        while self._current_token.kind is not MLIRTokenKind.EOF:
            self._parse_alias_def()

    @override
    def parse_operation(self) -> Operation:
        state = self._parser_state
        start = state.current_token.span.start
        line = _SCALAR_LINE.match(state.lexer.input.content, start)
        if line is None:
            return super().parse_operation()
        names = line["operands"].replace("%", "").split(", ")
        key = line["head"], line["tail"], len(names)
        known = self._alike.get(key)
        found = [self.ssa_values.get(name, ()) for name in names]
        if known is None or any(len(values) != 1 for values in found):
            return self._remembered(key, super().parse_operation())
        operands = [values[0] for values in found]
        if tuple([value.type for value in operands]) != known.operands:
            return super().parse_operation()
        state.lexer.pos = line.end()
        state.current_token = state.lexer.lex()
        op = known.cls.create(
            operands=operands, result_types=known.results, properties=dict(known.properties), attributes={}
        )
        location = self.parse_optional_location()
        if location is not None:
            op.location = location
        name = line["result"]
        span = Span(start, start + len(name), state.lexer.input)
        self._register_ssa_definition(name[1:], op.results, span)
        return op

    def _remembered(self, key: tuple[str, str, int], op: Operation) -> Operation:
        if len(op.operands) == key[2] and len(op.results) == 1 and not (op.regions or op.successors or op.attributes):
            types = tuple(value.type for value in op.operands)
            self._alike[key] = _Likeness(type(op), types, tuple(op.result_types), dict(op.properties))
        return op

    @override
    def _consume_token(self, expected_kind: MLIRTokenKind | None = None) -> MLIRToken:
        state = self._parser_state
        token = state.current_token
        assert expected_kind is None or token.kind is expected_kind
        state.current_token = state.lexer.lex()
        return token

    @override
    def _parse_optional_token(self, expected_kind: MLIRTokenKind) -> MLIRToken | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not expected_kind:
            return None
        state.current_token = state.lexer.lex()
        return token

    @override
    def parse_optional_punctuation(self, punctuation: PunctuationSpelling) -> PunctuationSpelling | None:
        state = self._parser_state
        if state.current_token.kind is not KIND_BY_PUNCTUATION_SPELLING[punctuation]:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    @override
    def parse_optional_characters(self, text: str) -> str | None:
        state = self._parser_state
        span = state.current_token.span
        if span.end - span.start != len(text) or not state.lexer.input.content.startswith(text, span.start):
            return None
        state.current_token = state.lexer.lex()
        return text

    @override
    def parse_optional_region(self, arguments: object = None) -> Region | None:
        if self._regions >= MAX_REGIONS:
            self.raise_error(f"regions are nested more than {MAX_REGIONS} deep")
        self._regions += 1
        names = self.ssa_values
        outside = len(names)
        region = super().parse_optional_region(arguments)  # pyright: ignore
        while len(names) > outside:  # no name is defined twice, so those of the region came last
            names.popitem()
        self._regions -= 1
        return region

    @override
    def parse_optional_attribute(self) -> Attribute | None:
        self._enter()
        found = super().parse_optional_attribute()
        self._attributes -= 1
        return found

    @override
    def parse_optional_type(self) -> TypeAttribute | None:
        """A type of a tensor or a buffer is made once for each text, of which a file has few."""
        state = self._parser_state
        if state.current_token.kind is not MLIRTokenKind.EXCLAMATION_IDENT:
            return super().parse_optional_type()
        match = _TYPE.match(state.lexer.input.content, state.current_token.span.start)
        known = None if match is None else self._types.get(match[0])
        if match is not None and known is not None:
            state.lexer.pos = match.end()
            state.current_token = state.lexer.lex()
            return known
        self._enter()
        found = super().parse_optional_type()
        self._attributes -= 1
        if match is not None and found is not None:
            self._types[match[0]] = found
        return found

    def _enter(self) -> None:
        if self._attributes >= MAX_ATTRIBUTES:
            self.raise_error(f"attributes are nested more than {MAX_ATTRIBUTES} deep")
        self._attributes += 1
