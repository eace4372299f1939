"""Parsing of `// RUN:` lines into pipelines of argument lists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_RUN = re.compile(r"^\s*(?://|#)\s*RUN:\s*(.*?)\s*$")
_SUBSTITUTION = re.compile(r"%(%|[sSt](?![A-Za-z0-9_]))")
_SHELL_ONLY = re.compile(r"^(&&?|\|\||;|\d?>{1,2}.*|<.*)$")


class RunLineError(Exception):
    """A RUN line asks for something that the runner does not do."""


@dataclass(frozen=True)
class Stage:
    """One command of a pipeline."""

    argv: tuple[str, ...]
    negated: bool = False
    """Written after `not`: it must fail, cleanly."""
    merge_stderr: bool = False
    """Written with `2>&1`: the next stage reads stderr too."""


@dataclass(frozen=True)
class RunLine:
    """One `// RUN:` line: `number` counts from 1, `text` is as written with continuations joined."""

    number: int
    text: str
    stages: tuple[Stage, ...]


def parse_run_lines(source: str, path: Path, temporary: Path) -> list[RunLine]:
    """Return the RUN lines of `source`, the text of the test file at `path`.

    `%s` becomes `path`, `%S` its folder, `%t` a path inside `temporary` that is the test's own, `%%` a
    percent sign. Raises `RunLineError` for shell syntax beyond `|`, `not` and `2>&1`.
    """
    values = {"s": str(path), "S": str(path.parent), "t": str(temporary / path.stem), "%": "%"}

    def substitute(word: str) -> str:
        return _SUBSTITUTION.sub(lambda match: values[match[1]], word)

    return [RunLine(number, text, _parse_pipeline(text, substitute)) for number, text in _joined_run_lines(source)]


def _joined_run_lines(source: str) -> list[tuple[int, str]]:
    """RUN lines with their numbers; one that ends in a backslash continues on the next RUN line."""
    lines: list[tuple[int, str]] = []
    continues = False
    for number, line in enumerate(source.splitlines(), start=1):
        if not (match := _RUN.match(line)):
            continue
        text = match[1]
        if continues:
            first, before = lines.pop()
            number, text = first, f"{before} {text}"
        continues = text.endswith("\\")
        lines.append((number, text.removesuffix("\\").rstrip() if continues else text))
    if continues:
        raise RunLineError("the last RUN line ends in a backslash")
    return lines


def _parse_pipeline(text: str, substitute: Callable[[str], str]) -> tuple[Stage, ...]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RunLineError(f"{error} in: {text}") from None
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            commands.append([])
        else:
            commands[-1].append(word)
    return tuple(_parse_stage(command, text, substitute) for command in commands)


def _parse_stage(words: list[str], text: str, substitute: Callable[[str], str]) -> Stage:
    negated = words[:1] == ["not"]
    words = words[1:] if negated else words
    merge_stderr = words[-1:] == ["2>&1"]
    words = words[:-1] if merge_stderr else words
    if not words:
        raise RunLineError(f"empty command in: {text}")
    if shell := [word for word in words if _SHELL_ONLY.match(word)]:
        raise RunLineError(f"{shell[0]!r} needs a shell, which tests do not run in; in: {text}")
    return Stage(tuple(substitute(word) for word in words), negated, merge_stderr)
