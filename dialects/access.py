"""What loads and stores of the loop and kernel levels share: an index map, dynamic indices, a mask, and their syntax.

    %x[i0, d0 + 1] (d0 = %j) if %mask else %other

`d0, d1, ...` in the map stand for the dynamic index operands, in order; they are local to the op, so inlining a
body never captures them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i32
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from .sym import Expr, MapAttr, symbol


@lru_cache(maxsize=256)
def segments(*sizes: int) -> DenseArrayBase:
    """The `operandSegmentSizes` property for operand groups of the given sizes."""
    return DenseArrayBase.from_list(i32, sizes)


@lru_cache(maxsize=4096)
def string_attr(text: str) -> StringAttr:
    """The attribute of a name or keyword: making a new one costs a verification."""
    return StringAttr(text)


@lru_cache(maxsize=64)
def dynamic_name(position: int) -> str:
    """Name by which an index map refers to the dynamic index operand at `position`."""
    return f"d{position}"


def is_dynamic_name(name: str) -> bool:
    """Whether a symbol names a dynamic index operand (`d0`, `d1`, ...)."""
    return name[0] == "d" and name[1:].isdigit()


def parse_ssa(parser: Parser) -> SSAValue:
    """Parse an operand that is already defined; our ops infer types from operands, so none is written."""
    unresolved = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(unresolved.operand_name)
    if values is None or unresolved.index >= len(values):
        parser.raise_error(f"value %{unresolved.operand_name} is used before it is defined", unresolved.span)
    return values[unresolved.index]


def parse_ssa_list(parser: Parser) -> list[SSAValue]:
    """Parse `%a, %b, ...`, possibly empty."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(lambda: _optional_ssa(parser), lambda: parse_ssa(parser))
        or []
    )


def _optional_ssa(parser: Parser) -> SSAValue | None:
    if parser._current_token.text[:1] != "%":  # pyright: ignore[reportPrivateUsage]
        return None
    return parse_ssa(parser)


def print_ssa_list(printer: Printer, values: Sequence[SSAValue]) -> None:
    """Print `%a, %b`."""
    printer.print_list(values, printer.print_ssa_value)


def parse_parameters(parser: Parser) -> list[Parser.Argument]:
    """Parse `(%x: T, %y: U loc(...))`, the parameters of a function."""
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_parameter(parser))


def _parse_parameter(parser: Parser) -> Parser.Argument:
    parameter = parser.parse_argument()
    parameter.location = parser.parse_optional_location()
    return parameter


def parse_dynamic(parser: Parser) -> list[SSAValue]:
    """Parse an optional `(d0 = %j, d1 = %k)`."""
    dynamic: list[SSAValue] = []
    if parser.parse_optional_punctuation("(") is None:
        return dynamic
    while True:
        parser.parse_keyword(dynamic_name(len(dynamic)))
        parser.parse_punctuation("=")
        dynamic.append(parse_ssa(parser))
        if parser.parse_optional_punctuation(",") is None:
            break
    parser.parse_punctuation(")")
    return dynamic


def print_dynamic(printer: Printer, dynamic: Sequence[SSAValue]) -> None:
    """Print what `parse_dynamic` reads, with a leading space."""
    if not dynamic:
        return
    printer.print_string(" (")
    for position, value in enumerate(dynamic):
        printer.print_string(f"{', ' if position else ''}{dynamic_name(position)} = ")
        printer.print_ssa_value(value)
    printer.print_string(")")


def substitute_map(
    index_map: MapAttr,
    dynamic: Sequence[SSAValue],
    substitution: Mapping[str, Expr],
    outer_dynamic: Sequence[SSAValue] = (),
) -> tuple[MapAttr, tuple[SSAValue, ...]]:
    """Replace axis symbols in an access when its body moves into another op.

    Expressions in `substitution` may use `d0, d1, ...` for `outer_dynamic`, the dynamic operands of the access that
    pulls the body in. Own dynamic operands keep their names; outer ones are renumbered behind them.
    """
    offset = len(dynamic)
    if outer_dynamic and offset:
        renumber = {dynamic_name(k): symbol(dynamic_name(offset + k)) for k in range(len(outer_dynamic))}
        substitution = {name: expr.subs(renumber) for name, expr in substitution.items()}
    exprs = tuple(e.subs(substitution) for e in index_map.data)
    return compact_dynamic(exprs, (*dynamic, *outer_dynamic))


def compact_dynamic(exprs: tuple[Expr, ...], dynamic: Sequence[SSAValue]) -> tuple[MapAttr, tuple[SSAValue, ...]]:
    """Drop dynamic operands that no expression uses, merge equal ones, and renumber the rest."""
    if not dynamic:
        return MapAttr.of(*exprs), ()
    free = frozenset().union(*(e.free_symbols for e in exprs))
    kept: list[SSAValue] = []
    rename: dict[str, Expr] = {}
    for k, value in enumerate(dynamic):
        if dynamic_name(k) not in free:
            continue
        if value not in kept:
            kept.append(value)
        rename[dynamic_name(k)] = symbol(dynamic_name(kept.index(value)))
    if all(name == str(expr) for name, expr in rename.items()):
        return MapAttr.of(*exprs), tuple(kept)
    return MapAttr.of(*(e.subs(rename) for e in exprs)), tuple(kept)
