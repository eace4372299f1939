"""Graphs that are traced beside each other: where the source of one has been left out, another may have it.

Behind a graph break the rest of a function is another graph with a page of its own. Each page is told which lines the
others came through, so that only what is in no graph counts as skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...records import dataclass

if TYPE_CHECKING:
    from .writer import Report

#: graphs that are remembered; a function that is compiled for ever more shapes adds a page each
_MOST = 50


@dataclass(frozen=True)
class Neighbour:
    """A page that is complete: where it is, its numbers of files, and the lines that its graph came from."""

    path: Path
    files: Mapping[str, int]
    reached: Collection[tuple[str, int]]

    def knows(self, other: Neighbour) -> list[tuple[int, int]]:
        """The lines of another graph in files that this page shows, as its places."""
        return sorted((self.files[file], line) for file, line in other.reached if file in self.files)


_known: deque[Neighbour] = deque(maxlen=_MOST)


def introduce(report: Report) -> None:
    """Tell the pages in the folder of a complete one of it, and it of them."""
    new = report.as_neighbour()
    for old in [each for each in _known if _are_near(each, new)]:
        for page, other in ((old, new), (new, old)):
            places = page.knows(other)
            if places and page.path.exists():
                report.append_to(page.path, "elsewhere", {"name": other.path.parent.name, "at": places})
    _known.append(new)


def _are_near(one: Neighbour, other: Neighbour) -> bool:
    return one.path.parent.parent == other.path.parent.parent and one.path != other.path
