"""The text of ops as data: an op lists the parts that it is written in, and each part reads what it prints.

    SYNTAX = (operand("source"), word("to"), operand("target"))        // host.copy %y to %x

Types of operands are not written, for values stand in front of their uses. Parts print a space in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr, f32, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer

from ..records import dataclass
from .access import (
    parse_dynamic,
    parse_parameters,
    parse_ssa,
    parse_ssa_list,
    print_dynamic,
    print_ssa_list,
    segments,
    string_attr,
)
from .sym import MapAttr, SymAttr, parse_expr, parse_exprs_until


@dataclass
class Read:
    """What was read of an op: operands by the name of their group; parameters of its body that stand in front of it."""

    operands: dict[str, Sequence[SSAValue]] = field(default_factory=dict)
    properties: dict[str, Attribute] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    types: Sequence[Attribute] = ()
    parameters: list[Parser.Argument] | None = None


@dataclass(frozen=True)
class Part:
    """A piece of text of an op, and how it is printed again."""

    read: Callable[[Parser, Read], object]
    print: Callable[[Printer, Any], object]


@dataclass(frozen=True)
class Kind:
    """A kind of attributes: how one is read and printed."""

    read: Callable[[Parser], Attribute]
    print: Callable[[Printer, Any], object]


class AssemblyOp(IRDLOperation):
    """An op whose text is a row of parts."""

    SYNTAX: ClassVar[tuple[Part, ...]] = ()

    @classmethod
    def result_types_of(cls, read: Read) -> Sequence[Attribute]:
        """The types of the results: those that are written, unless an op knows them."""
        return read.types

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse the parts in order."""
        read = Read()
        for part in cls.SYNTAX:
            part.read(parser, read)
        names, has_sizes = _groups(cls)
        groups = [read.operands.get(name, ()) for name in names]
        if has_sizes:
            read.properties["operandSegmentSizes"] = segments(*map(len, groups))
        operands = [value for group in groups for value in group]
        types = cls.result_types_of(read)
        return cls.create(operands=operands, result_types=types, properties=read.properties, regions=read.regions)

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        for part in self.SYNTAX:
            part.print(printer, self)


@lru_cache(maxsize=256)
def _groups(cls: type[IRDLOperation]) -> tuple[tuple[str, ...], bool]:
    """The names of an op's groups of operands, in order, and whether it says how many are in each."""
    definition = cls.get_irdl_definition()
    has_sizes = any(isinstance(option, AttrSizedOperandSegments) for option in definition.options)
    return tuple(name for name, _ in definition.operands), has_sizes


def _integers(value: ArrayAttr[IntegerAttr]) -> str:
    return f"[{', '.join(str(each.value.data) for each in value)}]"


def _number(parser: Parser) -> Attribute:
    return IntegerAttr(parser.parse_integer(allow_boolean=False, allow_negative=False), i64)


def _numbers(parser: Parser) -> Attribute:
    return ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _number(parser)))


def _texts(parser: Parser) -> Attribute:
    return ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: TEXT.read(parser)))


def _print_texts(printer: Printer, value: ArrayAttr) -> None:
    with printer.in_square_brackets():
        printer.print_list(value, lambda each: TEXT.print(printer, each))


def _float(value: float) -> str:
    """A number of float32 with all of its digits, as parsers read it."""
    text = f"{value:.9g}"
    return f"{value:.8e}" if "e" in text else text


NUMBER = Kind(_number, lambda printer, value: printer.print_string(str(value.value.data)))
NUMBERS = Kind(_numbers, lambda printer, value: printer.print_string(_integers(value)))
FLOAT = Kind(
    lambda parser: FloatAttr(float(parser.parse_number()), f32),
    lambda printer, value: printer.print_string(_float(value.value.data)),
)
NAME = Kind(
    lambda parser: string_attr(parser.parse_identifier()), lambda printer, value: printer.print_string(value.data)
)
TEXT = Kind(
    lambda parser: StringAttr(parser.parse_str_literal()),
    lambda printer, value: printer.print_string_literal(value.data),
)
TEXTS = Kind(_texts, _print_texts)
EXPR = Kind(lambda parser: SymAttr.of(parse_expr(parser)), lambda printer, value: printer.print_string(str(value.data)))
TYPE = Kind(Parser.parse_type, Printer.print_attribute)
CALLEE = Kind(
    lambda parser: SymbolRefAttr(parser.parse_symbol_name()),
    lambda printer, value: printer.print_symbol_name(value.root_reference.data),
)


def word(text: str) -> Part:
    """A word that always stands there."""
    return Part(lambda parser, _: parser.parse_keyword(text), lambda printer, _: printer.print_string(f" {text}"))


def mark(text: Any) -> Part:
    """A comma or a colon."""
    shown = "," if text == "," else f" {text}"
    return Part(lambda parser, _: parser.parse_punctuation(text), lambda printer, _: printer.print_string(shown))


def flag(name: str) -> Part:
    """A word that is there where a property is set."""
    return one_of(name, (name,), lambda _: UnitAttr())


def one_of(name: str, words: Sequence[str], make: Callable[[str], Attribute] = string_attr, usual: str = "") -> Part:
    """One of some words as a property; the usual one is left out, if there is one, else the property may be."""

    def read(parser: Parser, into: Read) -> None:
        found = parser.parse_optional_keyword_in(words) or usual
        if found:
            into.properties[name] = make(found)

    def show(printer: Printer, op: IRDLOperation) -> None:
        value = op.properties.get(name)
        text = value.data if isinstance(value, StringAttr) else name
        if value is not None and text != usual:
            printer.print_string(f" {text}")

    return Part(read, show)


def prop(name: str, kind: Kind, before: str = "") -> Part:
    """A property that always stands there, perhaps behind a word."""

    def read(parser: Parser, into: Read) -> None:
        if before:
            parser.parse_keyword(before)
        into.properties[name] = kind.read(parser)

    def show(printer: Printer, op: IRDLOperation) -> None:
        printer.print_string(f" {before} " if before else " ")
        kind.print(printer, op.properties[name])

    return Part(read, show)


def clause(name: str, kind: Kind) -> Part:
    """A property behind its name, where it is set: `block 2048`."""

    def read(parser: Parser, into: Read) -> None:
        if parser.parse_optional_keyword(name) is not None:
            into.properties[name] = kind.read(parser)

    def show(printer: Printer, op: IRDLOperation) -> None:
        if name in op.properties:
            printer.print_string(f" {name} ")
            kind.print(printer, op.properties[name])

    return Part(read, show)


def operand(name: str, kind: type[Any] | None = None) -> Part:
    """One operand, of a type of the given class."""

    def read(parser: Parser, into: Read) -> None:
        value = parse_ssa(parser)
        if kind is not None and not isinstance(value.type, kind):
            parser.raise_error(f"expected a !{kind.name} as {name}, got {value.type}")
        into.operands[name] = (value,)

    def show(printer: Printer, op: IRDLOperation) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(getattr(op, name))

    return Part(read, show)


def operands(name: str) -> Part:
    """Any number of operands: `%a, %b`."""

    def read(parser: Parser, into: Read) -> None:
        into.operands[name] = parse_ssa_list(parser)

    def show(printer: Printer, op: IRDLOperation) -> None:
        if values := getattr(op, name):
            printer.print_string(" ")
            print_ssa_list(printer, values)

    return Part(read, show)


def _mask(*groups: str) -> Part:
    words = dict(zip(groups, ("if", "else"), strict=False))

    def read(parser: Parser, into: Read) -> None:
        if parser.parse_optional_keyword("if") is not None:
            into.operands[groups[0]] = (parse_ssa(parser),)
            for name in groups[1:]:
                parser.parse_keyword(words[name])
                into.operands[name] = (parse_ssa(parser),)

    def show(printer: Printer, op: IRDLOperation) -> None:
        for name in groups if getattr(op, groups[0]) is not None else ():
            printer.print_string(f" {words[name]} ")
            printer.print_ssa_value(getattr(op, name))

    return Part(read, show)


#: where an access happens, `if %mask`, and the value of a load elsewhere, `if %mask else %other`
MASK, MASK_OTHER = _mask("mask"), _mask("mask", "other")


def _read_dynamic(parser: Parser, into: Read) -> None:
    into.operands["dynamic"] = parse_dynamic(parser)


#: the values of loaded indices in what stands in front: `(d0 = %j)`
DYNAMIC = Part(_read_dynamic, lambda printer, op: print_dynamic(printer, op.dynamic))


def _read_indices(parser: Parser, into: Read) -> None:
    with parser.in_square_brackets():
        into.properties["map"] = MapAttr.of(*parse_exprs_until(parser, "]"))


#: the index map of an access, right behind the tensor: `[i0, d0 + 1]`
INDICES = Part(_read_indices, lambda printer, op: printer.print_string(f"[{', '.join(map(str, op.map.data))}]"))


def call_arguments(name: str) -> Part:
    """The operands of a call, right behind its callee: `(%a, %b)`."""

    def read(parser: Parser, into: Read) -> None:
        with parser.in_parens():
            into.operands[name] = parse_ssa_list(parser)

    def show(printer: Printer, op: IRDLOperation) -> None:
        with printer.in_parens():
            print_ssa_list(printer, getattr(op, name))

    return Part(read, show)


def region(number: int = 0, before: str = "", optional: bool = False) -> Part:
    """The region of a number, perhaps behind a word; where it may be missing, the word tells."""

    def read(parser: Parser, into: Read) -> None:
        if not before or (parser.parse_optional_keyword if optional else parser.parse_keyword)(before) is not None:
            into.regions.append(parser.parse_region(into.parameters if number == 0 else None))

    def show(printer: Printer, op: IRDLOperation) -> None:
        if number < len(op.regions):
            printer.print_string(f" {before} " if before else " ")
            printer.print_region(op.regions[number], print_entry_block_args="sym_name" not in op.properties)

    return Part(read, show)


def _read_signature(parser: Parser, into: Read) -> None:
    into.properties["sym_name"] = parser.parse_symbol_name()
    into.parameters = parse_parameters(parser)


def _print_signature(printer: Printer, op: Any) -> None:
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    with printer.in_parens():
        printer.print_list(op.body.block.args, printer.print_block_argument)


#: the name of a function, and the parameters of its body: `@f(%x: T, %y: U)`
SIGNATURE = Part(_read_signature, _print_signature)


def types(optional: bool = False) -> Part:
    """The types of the results, `: T, U`; nothing where there may be none."""

    def read(parser: Parser, into: Read) -> None:
        if (parser.parse_optional_punctuation if optional else parser.parse_punctuation)(":") is not None:
            into.types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)

    def show(printer: Printer, op: IRDLOperation) -> None:
        if op.results or not optional:
            printer.print_string(" : ")
            printer.print_list(op.result_types, printer.print_attribute)

    return Part(read, show)
