"""An IR file with the places of its ops, for messages that say `file:line:col`."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..dialects.aten.fitting import misfit
from ..dialects.aten.ops import AtenOp
from ..dialects.aten.outside import outside_effect
from ..dialects.reading import Reader
from ..errors import UserError
from ..passes.verification import Violation, find_violation
from ..records import dataclass

_MAX_LINE = 160


class _LocatingParser(Reader):
    """A parser that remembers where each op starts."""

    def __init__(self, context: Context, text: str, name: str, starts: dict[Operation, int]) -> None:
        self._starts = starts
        super().__init__(context, text, name)

    def parse_operation(self) -> Operation:
        """Parse an op and remember its start."""
        start = self._current_token.span.start
        op = super().parse_operation()
        self._starts[op] = start
        return op


@dataclass
class Source:
    """Text of an IR file, or of a part of one that starts behind `first_line` lines."""

    text: str
    name: str
    first_line: int = 0
    allow_effects: bool = False
    """Whether the file may call what has effects outside its tensors."""
    _starts: dict[Operation, int] = field(default_factory=dict, repr=False)
    _line_starts: list[int] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._line_starts = [0, *(k + 1 for k, character in enumerate(self.text) if character == "\n")]

    def parse(self, context: Context) -> ModuleOp:
        """Parse a module.

        Raises UserError with `file:line:col` and the start of the offending line for malformed text.
        """
        parser = None
        if not self.text.strip():
            raise UserError(f"{self.name}: error: it is empty")
        try:
            parser = _LocatingParser(context, self.text, self.name, self._starts)
            return parser.parse_module()
        except UserError:
            raise
        except ParseError as error:
            raise UserError(self._message(error.span.start, error.msg)) from error
        except RecursionError as error:
            raise UserError(self._message(_position(parser), "malformed IR: nested too deeply")) from error
        except Exception as error:  # xDSL and its dialects meet malformed text with errors of every kind
            reason = str(error).strip().splitlines()
            shown = reason[0] if reason else type(error).__name__
            if not isinstance(error, DiagnosticException | ValueError | AssertionError):
                shown = f"{type(error).__name__}: {shown}"
            raise UserError(self._message(_position(parser), f"malformed IR: {shown}")) from error

    def verify(self, module: ModuleOp) -> None:
        """Verify a module that `parse` returned. Raises UserError that names the op and the reason."""
        violation = find_violation(module) or _misfit(module)
        if violation is None:
            return self._refuse_effects(module)
        op = violation.op
        if op is not None and op in self._starts:
            raise UserError(self._message(self._starts[op], f"'{op.name}' op {violation.reason}"))
        raise UserError(f"{self.name}: error: the module does not verify: {violation}")

    def _refuse_effects(self, module: ModuleOp) -> None:
        """Raise UserError for a call with effects outside its tensors, unless they are allowed."""
        if self.allow_effects:
            return
        for op in module.walk():
            name = outside_effect(op)
            if name is not None:
                text = f"'{op.name}' op calls {name}, which may have effects outside its tensors"
                text += "; read the file, and add --allow-effects if it may"
                place = self._starts.get(op)
                message = f"{self.name}: error: {text}" if place is None else self._message(place, text)
                raise UserError(message)

    def locate_ops(self) -> None:
        """Give ops without a location their place in the file, as MLIR's parser does, so that remarks name it."""
        for op, start in self._starts.items():
            if isinstance(op.location, UnknownLoc):
                line, column = self._line_column(start)
                op.location = FileLineColLoc(StringAttr(self.name), IntAttr(line), IntAttr(column))

    def _line_column(self, position: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, position)
        return line + self.first_line, position - self._line_starts[line - 1] + 1

    def _message(self, position: int, text: str) -> str:
        line, column = self._line_column(position)
        source = self.text.split("\n")[line - self.first_line - 1]
        left = max(0, column - 1 - _MAX_LINE // 2)
        shown = source[left : left + _MAX_LINE]
        return f"{self.name}:{line}:{column}: error: {text}\n{shown}\n{' ' * (column - 1 - left)}^"


def _misfit(module: ModuleOp) -> Violation | None:
    """The first ATen op whose arguments and types do not fit. What torch traced has been through its own check."""
    for op in module.walk():
        if isinstance(op, AtenOp) and (problem := misfit(op)) is not None:
            return Violation(op, f"has arguments that do not fit: {problem}")
    return None


def _position(parser: Reader | None) -> int:
    return 0 if parser is None else parser.pos


def split_source(text: str, name: str, mark: str, allow_effects: bool = False) -> list[Source]:
    """The parts of a file between lines that are `mark`, each knowing the line at which it starts."""
    parts: list[Source] = []
    lines: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if line.rstrip() == mark:
            parts.append(Source("".join(lines), name, first, allow_effects))
            lines, first = [], number
        else:
            lines.append(line)
    return [*parts, Source("".join(lines), name, first, allow_effects)]
