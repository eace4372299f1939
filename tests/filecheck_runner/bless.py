"""Rewriting expected output from actual output, in the blocks that a test marks for it.

A block starts at a line `// CHECK-BLESS` (for another prefix, `// CPU-BLESS`) and consists of the check lines
of that prefix right below it. Its new text is the whole output, line by line. When a file that is run with
`--split-input-file` has several such blocks, the n-th receives the output of the n-th part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .execute import Tool, check_options, run
from .run_lines import RunLine, RunLineError

_MARKER = re.compile(r"^\s*// ([A-Za-z][\w-]*)-BLESS\s*$")
_SEPARATOR = re.compile(r"^// -----.*\n?", re.MULTILINE)
# what filecheck would read as the start of a pattern
_SPECIAL = re.compile(r"\{\{|\[\[")


def bless_file(path: Path, lines: Sequence[RunLine], tools: Mapping[str, Tool]) -> bool:
    """Rewrite the blocks of `path` from what its RUN lines print; True when the text changed.

    The first RUN line that checks a prefix provides its output. Raises `RunLineError` when a block's prefix
    is checked by none, and `RunFailedError` when a tool fails: such output is not blessed.
    """
    source = path.read_text(encoding="utf-8")
    prefixes = {match[1] for line in source.splitlines() if (match := _MARKER.match(line))}
    outputs: dict[str, str] = {}
    for line in lines:
        options = check_options(line.stages[-1])
        missing = prefixes.intersection(options.check_prefixes if options else ()) - set(outputs)
        if missing:
            outputs.update(dict.fromkeys(missing, run(line, path, tools, upto_check=True)))
    if unchecked := prefixes - set(outputs):
        raise RunLineError(f"{path.name}: no RUN line checks the prefix {min(unchecked)} of a BLESS marker")
    blessed = bless_text(source, outputs, path)
    if blessed != source:
        path.write_text(blessed, encoding="utf-8")
    return blessed != source


def bless_text(source: str, outputs: Mapping[str, str], path: Path) -> str:
    """`source` with the block of every prefix in `outputs` replaced; the rest stays byte for byte.

    Raises `RunLineError` when a prefix has several blocks, but not as many as its output has parts.
    """
    lines = source.splitlines(keepends=True)
    markers = [(index, match[1]) for index, text in enumerate(lines) if (match := _MARKER.match(text))]
    blocks = {prefix: _parts(output, prefix, markers, path) for prefix, output in outputs.items()}
    result: list[str] = []
    position = 0
    for index, prefix in markers:
        result += lines[position : index + 1]
        if not result[-1].endswith("\n"):
            result[-1] += "\n"
        result += (f"{check}\n" for check in check_lines(prefix, blocks[prefix].pop(0), path))
        position = _end_of_block(lines, index + 1, prefix)
    return "".join(result + lines[position:])


def check_lines(prefix: str, output: str, path: Path) -> list[str]:
    """Check lines that match exactly the lines of `output`, at any place in which the test file may lie."""
    checks: list[str] = []
    kind = ""
    parts = _SEPARATOR.split(output)
    for line in (line for part in parts for line in [*part.strip("\n").splitlines(), None]):
        if line is None:  # the next part starts anew: a separator stands between
            kind = ""
        elif not line.strip():
            checks.append(f"// {prefix}-EMPTY:")
        else:
            checks.append(f"// {prefix}{kind}: {_escape(line, path)}")
            kind = "-NEXT"
    return checks


def _parts(output: str, prefix: str, markers: Sequence[tuple[int, str]], path: Path) -> list[str]:
    count = sum(prefix == marked for _, marked in markers)
    if count <= 1:
        return [output]
    parts = _SEPARATOR.split(output)
    if len(parts) != count:
        raise RunLineError(f"{path.name}: {count} {prefix}-BLESS markers for an output of {len(parts)} parts")
    return parts


def _end_of_block(lines: Sequence[str], start: int, prefix: str) -> int:
    check = re.compile(rf"^\s*// {re.escape(prefix)}(-[A-Z]+(-\d+)?)?(\{{LITERAL\}})?:")
    return next((index for index in range(start, len(lines)) if not check.match(lines[index])), len(lines))


def _escape(line: str, path: Path) -> str:
    escaped = _SPECIAL.sub(lambda match: "{{" + re.escape(match[0]) + "}}", line.rstrip())
    return escaped.replace(f"{path.parent}/", "{{.*}}")
