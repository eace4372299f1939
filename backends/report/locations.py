"""Places in the user's source, numbered for the report, and the functions around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc
from xdsl.ir import Attribute, Operation

from ...records import dataclass
from .statements import Function, functions_of

#: lines shown before and behind one that made an op, where it is in no function
_CONTEXT = 3
_MOST_BYTES = 2_000_000

Place = tuple[int, int]
"""(number of the file, line from 1)."""


@dataclass
class SourceFile:
    """A file of the user's: its lines, empty where it cannot be read, its functions, and which lines are shown."""

    lines: list[str]
    functions: list[Function]
    shown: set[int] = field(default_factory=set)

    @staticmethod
    def read(path: Path) -> SourceFile:
        """The file at a path; what is not there, not readable or too long has no lines."""
        try:
            if not path.is_file() or path.stat().st_size > _MOST_BYTES:
                return SourceFile([], [])
            text = path.read_text(errors="replace")
        except (OSError, ValueError):  # a name in an IR file is any text
            return SourceFile([], [])
        return SourceFile(text.splitlines(), functions_of(text) if path.suffix == ".py" else [])

    def around(self, line: int) -> tuple[range, list[tuple[int, int]]]:
        """The lines to show for one, and the statements among them that compute something."""
        for function in self.functions:
            if function.first <= line <= function.last:
                return range(function.first, function.last + 1), function.statements
        return range(max(1, line - _CONTEXT), line + _CONTEXT + 1), []

    def show(self, lines: Iterable[int]) -> tuple[list[tuple[int, str]], list[tuple[int, int]]]:
        """What some lines add: numbers and texts that were not shown yet, and statements among them."""
        new: set[int] = set()
        statements: list[tuple[int, int]] = []
        for line in sorted(lines):
            if line in self.shown:
                continue
            wanted, inside = self.around(line)
            fresh = {number for number in wanted if number <= len(self.lines)} - self.shown
            new |= fresh
            statements += [each for each in inside if each[0] in fresh]
            self.shown |= fresh
        return [(number, self.lines[number - 1]) for number in sorted(new)], statements


@dataclass
class Places:
    """Numbers files in the order in which they come."""

    files: dict[str, int] = field(default_factory=dict)
    _read: dict[int, SourceFile] = field(default_factory=dict)

    def of(self, op: Operation) -> list[Place]:
        """The places of an op, each once."""
        return list(dict.fromkeys(self._of(op.location)))

    def below(self, op: Operation) -> list[Place]:
        """The places of an op and of all that it holds, sorted."""
        return sorted({place for inner in op.walk() for place in self._of(inner.location)})

    def place(self, file: str, line: int) -> Place:
        """The place of a line of a file."""
        return self.files.setdefault(file, len(self.files)), line

    def _of(self, location: Attribute) -> Iterator[Place]:
        if isinstance(location, FileLineColLoc):
            yield self.place(location.filename.data, location.line.data)
        elif isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
            for part in location.locations:
                yield from self._of(part)

    def sources(self, places: Iterable[Place]) -> list[dict[str, object]]:
        """For each file its name, the lines `[number, text]` of the functions around the places, as far as no earlier
        call gave them, and the statements `[first, last]` in them; no lines for a file that is not there."""
        wanted: dict[int, set[int]] = {}
        for file, line in places:
            wanted.setdefault(file, set()).add(line)
        names = list(self.files)
        blocks: list[dict[str, object]] = []
        for file, numbers in sorted(wanted.items()):
            if file not in self._read:
                self._read[file] = SourceFile.read(Path(names[file]))
            lines, statements = self._read[file].show(numbers)
            blocks.append({"file": file, "name": names[file], "lines": lines, "statements": statements})
        return blocks
