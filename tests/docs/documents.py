"""Running the documentation: files that a page shows are written, commands that it shows are run.

    ```python title="my_pass.py"        a file
    ```console                          commands behind `$ `, each with what it prints
    $ inductile-opt x.mlir -p my-pass
    builtin.module {
    ...                                 stands for any lines; before other text, for the start of that line
    ```

INDUCTILE_BLESS=1 rewrites what commands print, except where a page left lines out.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..filecheck_runner.execute import Tool, call, check

_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A command of a page, what it is shown to print, and where that stands in the text."""

    line: str
    output: str
    start: int
    end: int

    @property
    def is_exact(self) -> bool:
        """Whether the page shows all that is printed."""
        return not any(line.startswith("...") for line in self.output.split("\n"))


def commands(body: str, offset: int) -> Iterator[Command]:
    """The commands of a console block; a backslash continues one on the next line."""
    for match in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
        line = re.sub(r"\\\n\s*", "", match[1])
        yield Command(line, match[2], offset + match.start(2), offset + match.end(2))


def run_page(text: str, folder: Path, tools: Mapping[str, Tool]) -> Iterator[tuple[Command, str]]:
    """Write a page's files into a folder and run its commands there; each with what it printed."""
    with contextlib.chdir(folder):
        for block in _BLOCK.finditer(text):
            language, title, body = block.groups()
            if title:
                Path(title).write_text(body)
            elif language == "console":
                for command in commands(body, block.start(3)):
                    yield command, run(command.line, tools)


def run(line: str, tools: Mapping[str, Tool]) -> str:
    """What a command prints, standard error behind standard output.

    Of the shell, `2>/dev/null` is understood, `| sed -n '/regex/,$p'`, which prints from a line on, and `| filecheck`.
    """
    line, _, first = line.partition(" | sed -n '/")
    line, _, checks = line.partition(" | filecheck ")
    words = shlex.split(line.replace(" 2>/dev/null", ""))
    if words[0] in tools:
        done = call(tools[words[0]], words[1:])
        out, err = done.out, done.err
        if checks:
            done = call(lambda argv: check(argv, out), shlex.split(checks))
            out, err = done.out, err + done.err + (f"filecheck: {done.status}" if done.status else "")
    else:
        assert words[0] == "python", f"pages run our commands and python, not {words[0]}"
        process = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
        out, err = process.stdout, process.stderr
    text = out + ("" if "2>/dev/null" in line else err)
    lines = [each.rstrip() for each in text.rstrip("\n").split("\n")]
    if first:
        pattern = re.compile(first.removesuffix("/,$p'"))
        lines = lines[next(k for k, each in enumerate(lines) if pattern.search(each)) :]
    return "\n".join(lines) + "\n" if any(lines) else ""


def matches(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, where `...` stands for any lines."""

    def pattern_of(line: str) -> str:
        if line == "...":
            return r"(?:.*\n)*"
        return (".*" if line.startswith("...") else "") + re.escape(line.removeprefix("...")) + r"\n"

    pattern = "".join(map(pattern_of, shown.splitlines()))
    return re.fullmatch(pattern, printed) is not None


def blessed(text: str, runs: Sequence[tuple[Command, str]]) -> str:
    """The page with what was printed, from the last command to the first so that places stay."""
    for command, printed in reversed(runs):
        if command.is_exact:
            text = text[: command.start] + printed + text[command.end :]
    return text
