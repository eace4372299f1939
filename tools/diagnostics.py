"""Failures of a command line: one message each, `file:line:col: error: ...`, and an exit status that says whose fault.

0: fine; 1: an error for the user, or a finding; 2: wrong arguments; 70: a crash, which is a bug; 130: interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from ..dialects.format import upgraded
from ..errors import InductileError, PassError, UserError
from .source import Source

EXIT_USER, EXIT_CRASH, EXIT_INTERRUPTED = 1, 70, 130


def parse_file(context: Context, text: str, name: str, allow_effects: bool = False) -> ModuleOp:
    """Parse and verify a module.

    Raises UserError with `file:line:col` and the start of the offending line.
    """
    source = Source(text, name, allow_effects=allow_effects)
    module = source.parse(context)
    source.verify(module)
    return module


def read_input(path: str) -> tuple[str, str]:
    """(text, name) of a file, or of standard input for `-`."""
    try:
        text, name = (sys.stdin.read(), "<stdin>") if path == "-" else (Path(path).read_text(encoding="utf-8"), path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise UserError(f"{path}: error: cannot read it: {reason}") from error
    upgraded(text, name)  # one message for a file of many parts
    return text, name


def add_effects_flag(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:  # pyright: ignore
    """Add the flag of every tool that reads a file which may be run."""
    parser.add_argument(
        "--allow-effects", action="store_true", help="the file may call what has effects outside its tensors"
    )


def write_output(path: str | None, text: str) -> None:
    """Write text to a file, or to standard output."""
    if path is None or path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise UserError(f"{path}: error: cannot write it: {error.strerror}") from error


def print_error(error: BaseException) -> None:
    """One message on standard error, with the traceback behind it when INDUCTILE_DEBUG is set."""
    message = str(error)
    if not isinstance(error, InductileError):
        message = f"{type(error).__name__}: {message} (a bug; INDUCTILE_DEBUG=1 shows where)"
    print(message if ": error: " in message.partition("\n")[0] else f"error: {message}", file=sys.stderr)
    if os.environ.get("INDUCTILE_DEBUG"):
        traceback.print_exception(error)


def exit_status(error: BaseException) -> int:
    """The exit status for an exception that ends a command."""
    while isinstance(error, PassError) and error.__cause__ is not None:
        error = error.__cause__
    return EXIT_USER if isinstance(error, InductileError | DiagnosticException) else EXIT_CRASH


def run_tool(body: Callable[[], int]) -> int:
    """Run a command's body; turn failures into one message and an exit status."""
    try:
        return body()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_USER
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        print_error(error)
        return exit_status(error)
