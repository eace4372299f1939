"""Lines of IR as the report keeps them: each different line and each place once, a stage as numbers of them.

A pass changes few lines of a module, and many passes change none. A page that repeated the text behind each of a
hundred passes would be slow to open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ...records import dataclass
from .locations import Place


@dataclass
class LineTable:
    """Numbers lines and places in the order in which they come, and remembers the last stage."""

    lines: dict[str, int] = field(default_factory=dict)
    places: dict[Place, int] = field(default_factory=dict)
    _last: tuple[list[int], list[int]] | None = None

    def block(self, text: Sequence[str], at: Sequence[Place | None]) -> dict[str, Any]:
        """What a stage adds to the page: its new lines and places, and, where it differs from the one before, numbers.

        `lines` has a number for each line, `at` that of the place of each, -1 where no place is known.
        """
        had, knew = len(self.lines), len(self.places)
        numbers = [self.lines.setdefault(line, len(self.lines)) for line in text]
        places = [-1 if place is None else self.places.setdefault(place, len(self.places)) for place in at]
        block: dict[str, Any] = {"new": list(self.lines)[had:], "places": list(self.places)[knew:]}
        if self._last != (numbers, places):
            block |= {"lines": numbers, "at": places}
        self._last = numbers, places
        return block
