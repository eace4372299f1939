"""Attributes that hold several index expressions: the axes of a loop nest and the index map of an access."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, BaseParser
from xdsl.printer import Printer

from .expr import Expr
from .parse import parse_expr

Axis = tuple[str, Expr]


def parse_axes_body(parser: BaseParser) -> tuple[Axis, ...]:
    """Parse `i0 in s0, i1 in 4096` (possibly empty) up to, not including, a closing bracket or `|`."""
    axes: list[Axis] = []
    while (name := parser.parse_optional_identifier()) is not None:
        parser.parse_keyword("in")
        axes.append((name, parse_expr(parser)))
        if parser.parse_optional_punctuation(",") is None:
            break
    return tuple(axes)


def format_axes(axes: Iterable[Axis]) -> str:
    """`i0 in s0, i1 in 4096`."""
    return ", ".join(f"{name} in {size}" for name, size in axes)


@irdl_attr_definition
class AxesAttr(Data[tuple[Axis, ...]]):
    """Named axes of a loop nest with their sizes, outermost first: `#sym.axes<i0 in s0, i1 in 4096>`.

    A name is a symbol in the index expressions of the nest's body and ranges over 0 .. size - 1.
    """

    name = "sym.axes"

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(*axes: Axis) -> AxesAttr:
        """The attribute for the given (name, size) pairs; equal arguments give the same object."""
        return AxesAttr(axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes, outermost first."""
        return tuple(name for name, _ in self.data)

    @property
    def sizes(self) -> tuple[Expr, ...]:
        """Sizes of the axes, outermost first."""
        return tuple(size for _, size in self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Axis, ...]:
        """Parse `<i0 in s0, ...>`."""
        with parser.in_angle_brackets():
            return parse_axes_body(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print `<i0 in s0, ...>`."""
        printer.print_string(f"<{format_axes(self.data)}>")


@irdl_attr_definition
class MapAttr(Data[tuple[Expr, ...]]):
    """A list of index expressions, one per dimension: `#sym.map<i0, 2*i1 + 1>`.

    Symbols are axes of enclosing nests, sizes of the function, and `d0, d1, ...`: the dynamic index operands
    of the op that carries the map, in order.
    """

    name = "sym.map"

    @staticmethod
    @lru_cache(maxsize=16384)
    def of(*exprs: Expr) -> MapAttr:
        """The attribute for the given expressions; equal arguments give the same object."""
        return MapAttr(exprs)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Expr, ...]:
        """Parse `<e, ...>`."""
        with parser.in_angle_brackets():
            return parse_exprs_until(parser, ">")

    def print_parameter(self, printer: Printer) -> None:
        """Print `<e, ...>`."""
        printer.print_string(f"<{', '.join(map(str, self.data))}>")


def parse_exprs_until(parser: BaseParser, closing: str) -> tuple[Expr, ...]:
    """Parse a possibly empty comma-separated list of expressions before the (unconsumed) closing bracket."""
    if closing == ">" and parser._current_token.text == ">":  # pyright: ignore[reportPrivateUsage]
        return ()
    if closing == "]" and parser._current_token.text == "]":  # pyright: ignore[reportPrivateUsage]
        return ()
    exprs = [parse_expr(parser)]
    while parser.parse_optional_punctuation(",") is not None:
        exprs.append(parse_expr(parser))
    return tuple(exprs)
