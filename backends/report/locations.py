"""Places in the user's source, numbered for the report, and the text of the lines around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc
from xdsl.ir import Attribute, Operation

#: lines shown before and behind one that made an op
_CONTEXT = 3
_MOST_BYTES = 2_000_000

Place = tuple[int, int]
"""(number of the file, line from 1)."""


@dataclass
class Places:
    """Numbers files in the order in which they come."""

    files: dict[str, int] = field(default_factory=dict)

    def of(self, op: Operation) -> list[Place]:
        """The places of an op, each once."""
        return list(dict.fromkeys(self._of(op.location)))

    def below(self, op: Operation) -> list[Place]:
        """The places of an op and of all that it holds, sorted."""
        return sorted({place for inner in op.walk() for place in self._of(inner.location)})

    def _of(self, location: Attribute) -> Iterator[Place]:
        if isinstance(location, FileLineColLoc):
            name = location.filename.data
            yield self.files.setdefault(name, len(self.files)), location.line.data
        elif isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
            for part in location.locations:
                yield from self._of(part)

    def sources(self, places: Iterable[Place]) -> list[dict[str, object]]:
        """For each file its name and the lines around the places, `[number, text]`; none for one that is not there."""
        wanted: dict[int, set[int]] = {}
        for file, line in places:
            wanted.setdefault(file, set()).update(range(max(1, line - _CONTEXT), line + _CONTEXT + 1))
        names = list(self.files)
        return [
            {"file": file, "name": names[file], "lines": _lines(Path(names[file]), numbers)}
            for file, numbers in sorted(wanted.items())
        ]


def _lines(path: Path, numbers: set[int]) -> list[tuple[int, str]]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        text = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [(number, text[number - 1]) for number in sorted(numbers) if number <= len(text)]
