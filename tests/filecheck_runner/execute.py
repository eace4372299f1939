"""Running a parsed RUN line in this process, with the standard streams captured."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options, parse_argv_options
from filecheck.parser import Parser

from .run_lines import RunLine, RunLineError, Stage

Tool = Callable[[Sequence[str]], int | None]
"""A command line: takes the arguments without the program's name, returns the exit status (None is 0) or
raises `SystemExit`."""


CLEAN_FAILURES = (1, 2)
"""What `not` accepts: an error told to the user, or wrong arguments; any other status is a crash."""


@dataclass(frozen=True)
class Completed:
    """What one stage left: exit status, and the text written to its streams (`err` is "" when merged)."""

    status: int
    out: str
    err: str


class RunFailedError(Exception):
    """A RUN line failed; the message is the whole report."""


def load_tools(pyproject: Path) -> dict[str, Tool]:
    """The command lines that `[project.scripts]` declares, each imported when it is first run."""
    with pyproject.open("rb") as file:
        scripts: dict[str, str] = tomllib.load(file)["project"]["scripts"]

    def lazy(target: str) -> Tool:
        module, _, function = target.partition(":")
        return lambda argv: getattr(importlib.import_module(module), function)(argv)

    return {name: lazy(target) for name, target in scripts.items()}


def call(tool: Tool, argv: Sequence[str], stdin: str = "", merge_stderr: bool = False) -> Completed:
    """Run `tool` with `stdin` as its standard input; any exception but `SystemExit` passes through."""
    out = _stream()
    err = out if merge_stderr else _stream()
    with _standard_streams(_stream(stdin), out, err):
        try:
            status = tool(list(argv)) or 0
        except SystemExit as leave:
            if isinstance(leave.code, str):  # the interpreter would print it and exit with 1
                print(leave.code, file=sys.stderr)
            status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    return Completed(status, _text(out), "" if merge_stderr else _text(err))


def check(argv: Sequence[str], stdin: str) -> int:
    """Run filecheck on `stdin` (or on the file of `--input-file`), reporting to stderr; the exit status."""
    options = parse_argv_options(["filecheck", *argv])
    if options.input_file != "-":
        stdin = Path(options.input_file).read_text(encoding="utf-8")
    # filecheck's cursor runs off an input whose last line is not terminated
    content = stdin if stdin.endswith("\n") else f"{stdin}\n"
    return Matcher(options, FInput(options.input_file, content), Parser.from_opts(options)).run()


def check_options(stage: Stage) -> Options | None:
    """The filecheck options of `stage`, or None when it is another command."""
    return parse_argv_options(list(stage.argv)) if stage.argv[0] == "filecheck" else None


def run(line: RunLine, path: Path, tools: Mapping[str, Tool], upto_check: bool = False) -> str:
    """Run the pipeline of `line`, a RUN line of `path`, and return what its last stage wrote to stdout.

    With `upto_check`, a closing filecheck is left out, so that its input is returned. Raises `RunFailedError`
    when a stage ends with a status that its `not` does not announce, or with an exception: a crash is not a
    clean failure, so `not` does not excuse it.
    """
    stages = line.stages
    if upto_check and stages[-1].argv[0] == "filecheck":
        stages = stages[:-1]
    output = ""
    for stage in stages:
        completed = _run_stage(stage, output, line, path, tools)
        if completed.status not in (CLEAN_FAILURES if stage.negated else (0,)):
            actual = output if stage.argv[0] == "filecheck" else completed.out
            raise RunFailedError(_report(line, path, stage, completed, actual))
        output = completed.out
    return output


def _run_stage(stage: Stage, stdin: str, line: RunLine, path: Path, tools: Mapping[str, Tool]) -> Completed:
    name, *arguments = stage.argv
    if name == "filecheck":
        tool: Tool = functools.partial(check, stdin=stdin)
    elif name in tools:
        tool = tools[name]
    else:
        known = ", ".join([*tools, "filecheck"])
        raise RunLineError(f"{path.name}:{line.number}: unknown command {name!r}; known are {known}")
    try:
        return call(tool, arguments, stdin, stage.merge_stderr)
    except Exception as error:
        crash = f"{name} crashed: {type(error).__name__}: {error}"
        raise RunFailedError(f"{_heading(line, path)}\n{crash}") from error


def _heading(line: RunLine, path: Path) -> str:
    return f"{path.name}:{line.number}: RUN: {line.text}"


def _report(line: RunLine, path: Path, stage: Stage, completed: Completed, actual: str) -> str:
    wanted = "a failure (1 or 2)" if stage.negated else "0"
    parts = [_heading(line, path), f"{stage.argv[0]} exited with {completed.status}, expected {wanted}"]
    if completed.err:
        parts.append(f"--- stderr ---\n{completed.err.rstrip()}")
    parts.append(f"--- actual output ---\n{actual.rstrip()}" if actual.strip() else "--- no output ---")
    return "\n".join(parts)


def _stream(content: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content.encode()), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


@contextlib.contextmanager
def _standard_streams(stdin: TextIO, out: TextIO, err: TextIO) -> Iterator[None]:
    saved = sys.stdin
    sys.stdin = stdin
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
    finally:
        sys.stdin = saved
