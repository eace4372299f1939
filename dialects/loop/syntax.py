"""Syntax that loop-level nests share: `(i0 in s0, i1 in 4096)` and `on (a0, a1)`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..assembly import Part, Read
from ..sym import AxesAttr, format_axes, parse_axes_body


@lru_cache(maxsize=1024)
def axis_names(*names: str) -> ArrayAttr[StringAttr]:
    """The cached `on` property for fusion axes of the given names (`_`: none)."""
    return ArrayAttr([StringAttr(n) for n in names])


def _read_axes(parser: Parser, read: Read) -> None:
    with parser.in_parens():
        read.properties["axes"] = AxesAttr.of(*parse_axes_body(parser))


#: the axes of a nest: `(i0 in s0, i1 in 4096)`
AXES = Part(_read_axes, lambda printer, op: printer.print_string(f" ({format_axes(op.axes.data)})"))


def _read_on(parser: Parser, read: Read) -> None:
    if parser.parse_optional_keyword("on") is not None:
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
        read.properties["on"] = axis_names(*names)


def _print_on(printer: Printer, op: Any) -> None:
    if op.on is not None:
        printer.print_string(f" on ({', '.join(n.data for n in op.on)})")


#: the fusion axis of each axis, `_` for an axis private to the member: `on (a0, _, a1)`
ON = Part(_read_on, _print_on)


def verify_axes(axes: AxesAttr, on: ArrayAttr[StringAttr] | None = None) -> None:
    """Raise VerifyException unless known sizes can be, and each axis has its fusion axis, where any has."""
    for name, size in axes.data:
        known = size.as_int()
        if known is not None and known < 0:
            raise VerifyException(f"the axis {name} has the negative size {known}")
    if on is not None and len(on) != len(axes.data):
        raise VerifyException(f"on names {len(on)} fusion axes for {len(axes.data)} axes")
