"""One clear message for every failure of a command line: `file:line:col: error: ...`, exit code 1, no traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..errors import InductileError, UserError

_MAX_LINE = 160


def parse_file(context: Context, text: str, name: str) -> ModuleOp:
    """Parse a module.

    Raises UserError with `file:line:col` and the start of the offending line for malformed text.
    """
    try:
        return Parser(context, text, name).parse_module()
    except ParseError as error:
        raise UserError(_parse_message(error, text, name)) from error
    except (DiagnosticException, ValueError, KeyError, AssertionError, RecursionError) as error:
        reason = str(error).strip().splitlines()
        raise UserError(f"{name}: error: malformed IR: {reason[0] if reason else type(error).__name__}") from error


def _parse_message(error: ParseError, text: str, name: str) -> str:
    start = error.span.start
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1)
    source = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
    left = max(0, column - _MAX_LINE // 2)
    shown = source[left : left + _MAX_LINE]
    return f"{name}:{line}:{column + 1}: error: {error.msg}\n{shown}\n{' ' * (column - left)}^"


def verify_module(module: ModuleOp, name: str) -> None:
    """Verify a module.

    Raises UserError that names the op and the reason.
    """
    try:
        module.verify()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^-")]
        reason = lines[-1].strip("^ ") if lines else type(error).__name__
        where = next((line for line in lines if "." in line and "=" in line), "")
        shown = f"\n{where[:_MAX_LINE]}" if where and where != reason else ""
        raise UserError(f"{name}: error: the module does not verify: {reason}{shown}") from error


def read_input(path: str) -> tuple[str, str]:
    """(text, name) of a file, or of standard input for `-`."""
    if path == "-":
        return sys.stdin.read(), "<stdin>"
    try:
        return Path(path).read_text(), path
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UserError(f"{path}: error: cannot read it: {reason}") from error


def write_output(path: str | None, text: str) -> None:
    """Write text to a file, or to standard output."""
    if path is None or path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise UserError(f"{path}: error: cannot write it: {error.strerror}") from error


def run_tool(body: Callable[[], int]) -> int:
    """Run a command's body; turn failures into one message and exit code 1.

    INDUCTILE_DEBUG=1 in the environment shows the traceback as well.
    """
    try:
        return body()
    except InductileError as error:
        message = str(error)
        print(message if ": error: " in message.splitlines()[0] else f"error: {message}", file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
    except Exception as error:
        print(f"error: {type(error).__name__}: {error} (INDUCTILE_DEBUG=1 shows where)", file=sys.stderr)
    if os.environ.get("INDUCTILE_DEBUG"):
        traceback.print_exc()
    return 1
