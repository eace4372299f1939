"""Running the documentation: files that a page shows are written, commands that it shows are run.

    ```python title="my_pass.py"        a file
    ```python                           a program
    ```console                          commands behind `$ `, each with what it prints
    $ inductile-opt x.mlir -p my-pass
    builtin.module {
    ...                                 stands for any lines; before other text, for the start of that line
    ```
    ```sh                               commands that end well, `cd` and comments among them
    inductile-opt x.mlir -p my-pass     # what for
    ```

Blocks run in the order of the page, each from the same folder. A comment above a block, `<!-- not run: REASON -->`,
leaves it out. INDUCTILE_BLESS=1 rewrites what commands print, except where a page left lines out.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..filecheck_runner.execute import Completed, Tool, call, check
from ..warm.python import python

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]*) -->\n)?"
    r"^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
#: languages of what may be run, and of what is only read
RUN, READ = ("console", "sh", "python"), ("mlir",)
_ASSIGNMENT = re.compile(r"(\w+)=(\S*)")


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


@dataclass(frozen=True)
class Block:
    """A block of a page: a file where it has a title, else to be run, unless a reason says why not."""

    language: str
    title: str | None
    body: str
    reason: str | None
    start: int
    """Where the body stands in the text."""
    line: int


def blocks(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(m["language"], m["title"], m["body"], m["reason"], m.start("body"), text.count("\n", 0, m.start("body")))
        for m in _BLOCK.finditer(text)
    ]


def run_page(text: str, folder: Path, tools: Mapping[str, Tool]) -> Iterator[tuple[Command, str]]:
    """Write a page's files into a folder and run its blocks there; each command that shows it with what it printed.

    AssertionError for a program or a command of `sh` that does not end well.
    """
    for block in blocks(text):
        with contextlib.chdir(folder):
            if block.reason is not None:
                continue
            if block.title:
                Path(block.title).write_text(block.body)
            elif block.language == "console":
                for command in commands(block.body, block.start):
                    yield command, run(command.line, tools)
            elif block.language == "sh":
                run_script(block.body, tools)
            elif block.language == "python":
                Path("program.py").write_text(block.body)
                run_script("python program.py", tools)


def run_script(text: str, tools: Mapping[str, Tool]) -> None:
    """Run the commands of a block, each of which has to end with 0. A `cd` holds for those behind it."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["cd"]:
            os.chdir(words[1])
            continue
        environment: dict[str, str] = {}
        while words and (match := _ASSIGNMENT.fullmatch(words[0])):
            environment[match[1]] = match[2]
            del words[0]
        if words:
            done = _call(words, tools, environment)
            assert done.status == 0, f"$ {line}\n{done.out}{done.err}status {done.status}"


def _call(words: Sequence[str], tools: Mapping[str, Tool], environment: Mapping[str, str] | None = None) -> Completed:
    """Run one of our commands here, or python in a process of its own."""
    if words[0] in tools:
        assert not environment, "only python is given an environment"
        return call(tools[words[0]], words[1:])
    assert words[0] == "python", f"pages run our commands and python, not {words[0]}"
    own = {**os.environ, **(environment or {})}
    process = subprocess.run([python(), *words[1:]], capture_output=True, text=True, env=own)
    return Completed(process.returncode, process.stdout, process.stderr)


def run(line: str, tools: Mapping[str, Tool]) -> str:
    """What a command prints, standard error behind standard output.

    Of the shell, `2>/dev/null` is understood, `| sed -n '/regex/,$p'`, which prints from a line on, and `| filecheck`.
    """
    line, _, first = line.partition(" | sed -n '/")
    line, _, checks = line.partition(" | filecheck ")
    words = shlex.split(line.replace(" 2>/dev/null", ""))
    done = _call(words, tools)
    out, err = done.out, done.err
    if checks:
        done = call(lambda argv: check(argv, out), shlex.split(checks))
        out, err = done.out, err + done.err + (f"filecheck: {done.status}" if done.status else "")
    text = out + ("" if "2>/dev/null" in line else err)
    lines = [each.rstrip() for each in text.rstrip("\n").split("\n")]
    if first:
        pattern = re.compile(first.removesuffix("/,$p'"))
        lines = lines[next(k for k, each in enumerate(lines) if pattern.search(each)) :]
    return "\n".join(lines) + "\n" if any(lines) else ""


def matches(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed, where `...` stands for any lines but errors, or for the start of one.

    Lines that a page leaves out may widen the columns of a table, so that in a line whose start it leaves out two
    spaces stand for two or more.
    """

    def pattern_of(line: str) -> str:
        if line == "...":
            return r"(?:(?!error: |.*: error: ).*\n)*"
        if not line.startswith("..."):
            return re.escape(line) + r"\n"
        return ".*" + re.sub(r"(\\ ){2,}", " {2,}", re.escape(line.removeprefix("..."))) + r"\n"

    pattern = "".join(map(pattern_of, shown.splitlines()))
    return re.fullmatch(pattern, printed) is not None


def blessed(text: str, runs: Sequence[tuple[Command, str]]) -> str:
    """The page with what was printed, from the last command to the first so that places stay."""
    for command, printed in reversed(runs):
        if command.is_exact:
            text = text[: command.start] + printed + text[command.end :]
    return text
