"""Text of argument values: each says what it is, so that one parser reads them all.

3   s0 + 1   1.0e-12   -inf   true   none   "text"   complex(1.0, 0.0)   [s0, 4]   tuple(1, %x)   {key = 1}
torch.float32   torch.channels_last   torch.strided   device("cuda:0")   operator("aten::mm")   @graph   %value
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..access import parse_ssa
from ..sym import MapAttr, SymAttr, parse_expr
from .attributes import (
    NONE,
    ComplexAttr,
    DeviceAttr,
    LayoutAttr,
    MemoryFormatAttr,
    NoneAttr,
    OperandAttr,
    OperatorAttr,
    TupleAttr,
)
from .literals import float_text, parse_float, parse_optional_float
from .types import TORCH_NAMES, OpaqueDtype, element_type, torch_name
from .values import Reference, encode, encode_list, float_attr, operand_attr

_LAYOUTS = frozenset({
    "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn",
})  # fmt: skip
_MEMORY_FORMATS = frozenset({"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"})
_WORDS: dict[str, Attribute] = {"none": NONE, "true": encode(True, []), "false": encode(False, [])}
_CALLS: dict[str, Callable[[str], Attribute]] = {"device": DeviceAttr, "operator": OperatorAttr}
MAX_NESTING = 64
"""Deepest nesting of lists and dictionaries in text, which is untrusted."""


def print_value(printer: Printer, attribute: Attribute, dynamic: Sequence[SSAValue]) -> None:
    """Print a value; `dynamic` are the operands that `#aten.operand` counts."""
    match attribute:
        case OperandAttr():
            printer.print_ssa_value(dynamic[attribute.data])
        case ArrayAttr():
            with printer.in_square_brackets():
                printer.print_list(attribute.data, lambda item: print_value(printer, item, dynamic))
        case TupleAttr():
            printer.print_string("tuple")
            with printer.in_parens():
                printer.print_list(attribute.data.data, lambda item: print_value(printer, item, dynamic))
        case DictionaryAttr():
            with printer.in_braces():
                printer.print_list(attribute.data.items(), lambda item: _print_item(printer, item, dynamic))
        case _:
            printer.print_string(_text(attribute))


def _print_item(printer: Printer, item: tuple[str, Attribute], dynamic: Sequence[SSAValue]) -> None:
    printer.print_identifier_or_string_literal(item[0])
    printer.print_string(" = ")
    print_value(printer, item[1], dynamic)


def _quoted(text: str) -> str:
    return str(StringAttr(text))


def _text(attribute: Attribute) -> str:
    match attribute:
        case SymAttr():
            return str(attribute.data)
        case MapAttr():
            return f"[{', '.join(map(str, attribute.data))}]"
        case FloatAttr():
            return float_text(attribute.value.data)
        case IntegerAttr():
            return "true" if attribute.value.data else "false"
        case NoneAttr():
            return "none"
        case ComplexAttr():
            return f"complex({', '.join(attribute.data)})"
        case DeviceAttr():
            return f"device({_quoted(attribute.data)})"
        case OperatorAttr():
            return f"operator({_quoted(attribute.data)})"
        case LayoutAttr() | MemoryFormatAttr():
            return f"torch.{attribute.data}"
        case OpaqueDtype():
            return f"torch.{attribute.data}"
        case _ if attribute in TORCH_NAMES:
            return f"torch.{torch_name(attribute)}"
        case _:
            return str(attribute)  # strings, symbol references, and attributes of other dialects


def parse_value(parser: Parser, dynamic: list[SSAValue], depth: int = 0) -> Attribute:
    """Parse a value; operands are appended to `dynamic`."""
    if depth > MAX_NESTING:
        parser.raise_error(f"values are nested more than {MAX_NESTING} deep")
    token = parser._current_token  # pyright: ignore[reportPrivateUsage]
    match token.kind:
        case MLIRTokenKind.PERCENT_IDENT:
            dynamic.append(parse_ssa(parser))
            return operand_attr(len(dynamic) - 1)
        case MLIRTokenKind.L_SQUARE:
            items = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_value(parser, dynamic, depth + 1)
            )
            return _list(items)
        case MLIRTokenKind.L_BRACE:
            pairs = parser.parse_comma_separated_list(
                parser.Delimiter.BRACES, lambda: _parse_item(parser, dynamic, depth + 1)
            )
            return DictionaryAttr(dict(pairs))
        case MLIRTokenKind.STRING_LIT:
            return encode(parser.parse_str_literal(), dynamic)
        case MLIRTokenKind.AT_IDENT:
            return encode(Reference(parser.parse_symbol_name().data), dynamic)
        case MLIRTokenKind.HASH_IDENT | MLIRTokenKind.EXCLAMATION_IDENT:
            return parser.parse_attribute()
        case MLIRTokenKind.BARE_IDENT:
            word = _parse_optional_word(parser, token.text, dynamic, depth)
            if word is not None:
                return word
        case _:
            pass
    number = parse_optional_float(parser)
    return float_attr(number) if number is not None else SymAttr.of(parse_expr(parser))


def _list(items: list[Attribute]) -> Attribute:
    exprs = [item.data for item in items if isinstance(item, SymAttr)]
    return encode_list(exprs, []) if len(exprs) == len(items) else ArrayAttr(items)


def _parse_item(parser: Parser, dynamic: list[SSAValue], depth: int) -> tuple[str, Attribute]:
    key = parser.parse_optional_str_literal()
    if key is None:
        key = parser.parse_identifier()
    parser.parse_punctuation("=")
    return key, parse_value(parser, dynamic, depth)


def _parse_optional_word(parser: Parser, word: str, dynamic: list[SSAValue], depth: int) -> Attribute | None:
    """Parse what starts with a bare identifier and is no index expression."""
    if word in _WORDS:
        parser.parse_identifier()
        return _WORDS[word]
    if word.startswith("torch."):
        parser.parse_identifier()
        return _torch_constant(word.removeprefix("torch."))
    if word in _CALLS:
        parser.parse_identifier()
        with parser.in_parens():
            return _CALLS[word](parser.parse_str_literal())
    if word == "tuple":
        parser.parse_identifier()
        items = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parse_value(parser, dynamic, depth + 1)
        )
        return TupleAttr(ArrayAttr(items))
    if word == "complex":
        parser.parse_identifier()
        with parser.in_parens():
            real = parse_float(parser)
            parser.parse_punctuation(",")
            return ComplexAttr.of(complex(real, parse_float(parser)))
    return None


def _torch_constant(name: str) -> Attribute:
    if name in _LAYOUTS:
        return LayoutAttr(name)
    if name in _MEMORY_FORMATS:
        return MemoryFormatAttr(name)
    return element_type(name)


def parse_arguments(parser: Parser, positional: Callable[[], None], named: Callable[[str], None]) -> None:
    """Parse `(a, b, key = c)`; the callbacks parse each value, from behind the `=` of a named one."""
    parser.parse_punctuation("(")
    if parser.parse_optional_punctuation(")") is not None:
        return
    while True:
        start = parser.pos
        name = parser.parse_optional_identifier()
        if name is not None and parser.parse_optional_punctuation("=") is not None:
            named(name)
        else:
            parser._resume_from(start)  # pyright: ignore[reportPrivateUsage]
            positional()
        if parser.parse_optional_punctuation(",") is None:
            break
    parser.parse_punctuation(")")
