"""Syntax that loop-level nests share: `(i0 in s0, i1 in 4096)` and `on (a0, a1)`."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..sym import AxesAttr, format_axes, parse_axes_body


@lru_cache(maxsize=1024)
def axis_names(*names: str) -> ArrayAttr[StringAttr]:
    """The cached `on` property for fusion axes of the given names (`_`: none)."""
    return ArrayAttr([StringAttr(n) for n in names])


def parse_nest(parser: Parser) -> AxesAttr:
    """Parse `(i0 in s0, i1 in 4096)`."""
    with parser.in_parens():
        return AxesAttr.of(*parse_axes_body(parser))


def print_nest(printer: Printer, axes: AxesAttr) -> None:
    """Print what `parse_nest` reads."""
    printer.print_string(f"({format_axes(axes.data)})")


def parse_on(parser: Parser) -> ArrayAttr[StringAttr] | None:
    """Parse an optional `on (a0, _, a1)`: the fusion axis of each axis, `_` for an axis private to the member."""
    if parser.parse_optional_keyword("on") is None:
        return None
    names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
    return axis_names(*names)


def print_on(printer: Printer, on: ArrayAttr[StringAttr] | None) -> None:
    """Print what `parse_on` reads, with a leading space."""
    if on is not None:
        printer.print_string(f" on ({', '.join(n.data for n in on)})")


def verify_axes(axes: AxesAttr, on: ArrayAttr[StringAttr] | None = None) -> None:
    """Raise VerifyException unless known sizes can be, and each axis has its fusion axis, where any has."""
    for name, size in axes.data:
        known = size.as_int()
        if known is not None and known < 0:
            raise VerifyException(f"the axis {name} has the negative size {known}")
    if on is not None and len(on) != len(axes.data):
        raise VerifyException(f"on names {len(on)} fusion axes for {len(axes.data)} axes")
