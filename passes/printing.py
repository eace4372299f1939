"""IR as text."""

from __future__ import annotations

import re
from io import StringIO

from typing_extensions import override
from xdsl.dialects.builtin import LocationAttr, ModuleOp, UnknownLoc
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

from ..dialects.format import HEADER, NAMED_LOCATION

_MAX_TEXT = 160


def module_text(module: Operation, locations: bool = False, generic: bool = False) -> str:
    """The module, or another op, as text that parses back.

    With `locations` there is `loc(#loc1)` behind each op, and what the names stand for is a table at the end, so that a
    line of IR stays as short as it is without them.
    """
    stream = StringIO()
    if not locations:
        Printer(stream, print_generic_format=generic).print_op(module)
        return stream.getvalue()
    printer = _LocationPrinter(stream, generic)
    printer.print_op(module)
    printer.print_table()
    return stream.getvalue()


def file_text(module: Operation, locations: bool = False, generic: bool = False) -> str:
    """A module as a file has it: with the version of the format in front, and a newline at the end."""
    return f"{HEADER}\n{module_text(module, locations, generic)}\n"


def broken_module_text(module: ModuleOp, locations: bool = False) -> str:
    """The text of a module that may not be valid: in generic syntax, or as a comment, when it does not print."""
    reason = ""
    for generic in (False, True):
        try:
            return module_text(module, locations, generic)
        except Exception as error:  # verifiers guard what printers rely on
            reason = f"{type(error).__name__}: {error}"
    return f"// the module does not print: {reason}"


def spelled_out(text: str) -> str:
    """The text with what each name of a location stands for in place of it, and without the table: for people."""
    lines = text.split("\n")
    named = dict(line.split(" = ", 1) for line in lines if NAMED_LOCATION.match(line))
    kept = [line for line in lines if not NAMED_LOCATION.match(line)]
    return re.sub(r"loc\((#loc\d+)\)", lambda match: named.get(match[1], match[0]), "\n".join(kept))


class _LocationPrinter(Printer):
    """A printer that names locations, and remembers what the names stand for."""

    def __init__(self, text: StringIO, generic: bool) -> None:
        super().__init__(text, print_generic_format=generic, print_debuginfo=True)
        self._text = text
        self._named: dict[Attribute, str] = {}

    @override
    def print_attribute(self, attribute: Attribute) -> None:
        """Print a name in place of a location behind an op or an argument; those inside others are written out."""
        if self.printing_location or not isinstance(attribute, LocationAttr):
            super().print_attribute(attribute)
            return
        if isinstance(attribute, UnknownLoc):  # a reader takes it to be unknown without a word; a space was printed
            self._text.truncate(self._text.seek(self._text.tell() - 1))
            return
        name = self._named.setdefault(attribute, f"#loc{len(self._named) + 1}")
        self.print_string(f"loc({name})")

    def print_table(self) -> None:
        """Print a line for each name."""
        for attribute, name in self._named.items():
            self.print_string(f"\n{name} = ")
            super().print_attribute(attribute)


class _LinePrinter(Printer):
    """A printer that remembers on which line each op starts, from 0, and on which it ends."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream)
        self.text = stream
        self.lines: dict[Operation, tuple[int, int]] = {}

    def print_op(self, op: Operation) -> None:
        """Print, and note the lines."""
        start = self._current_line
        super().print_op(op)
        self.lines[op] = (start, self._current_line)


def text_and_lines(module: Operation) -> tuple[str, dict[Operation, tuple[int, int]]]:
    """The text, and the first and the last line, from 0, of each op in it."""
    stream = StringIO()
    printer = _LinePrinter(stream)
    printer.print_op(module)
    return stream.getvalue(), printer.lines


def first_line(op: Operation) -> str:
    """The first line of an op as it stands in its module, shortened."""
    top = op.get_toplevel_object()
    try:
        assert isinstance(top, Operation)
        text, lines = text_and_lines(top)
        line = text.split("\n")[lines[op][0]]
    except Exception as error:  # a module that does not verify need not print either
        return f"{op.name} (does not print: {type(error).__name__})"
    line = line.strip().removesuffix("{").rstrip()
    return line if len(line) <= _MAX_TEXT else line[: _MAX_TEXT - 3] + "..."
