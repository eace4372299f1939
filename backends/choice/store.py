"""What was measured, on disk: one JSON file an answer, named by what was asked, where, and of which versions.

Files are written whole or not at all, so any number of processes may share a folder. What does not read as an answer
counts as not there, and is measured and written again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ...records import dataclass
from ..c_like.cache import cache_dir, digest, is_refusal, warn_of_refusal, write_atomically

FORMAT = 1


@dataclass(frozen=True)
class Answer:
    """Microseconds of the candidates that ran, by name, and why others did not."""

    times: Mapping[str, float]
    failed: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def from_json(found: Any) -> Answer | None:
        """An answer as it was written; None for what is none."""
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            return None
        times, failed = found.get("times"), found.get("failed")
        if not isinstance(times, dict) or not isinstance(failed, dict):
            return None
        numbers = all(type(each) in (int, float) and math.isfinite(each) and each > 0 for each in times.values())
        if not numbers or not all(isinstance(each, str) for each in failed.values()):
            return None
        return Answer({str(name): float(each) for name, each in times.items()}, failed)


class Store:
    """Answers by keys: in memory, and on disk where somebody wants them kept."""

    def __init__(self) -> None:
        self._known: dict[str, Answer] = {}

    def get(self, key: str, on_disk: bool) -> Answer | None:
        """The answer to a question; None where nobody has one."""
        if key not in self._known and on_disk and (found := _read(_path(key))) is not None:
            self._known[key] = found
        return self._known.get(key)

    def put(self, key: str, answer: Answer, about: Mapping[str, Any], on_disk: bool) -> None:
        """Keep an answer; `about` is for people who look into the file."""
        self._known[key] = answer
        if not on_disk:
            return
        path = _path(key)
        content = {"format": FORMAT, **about, "times": dict(answer.times), "failed": dict(answer.failed)}
        try:
            write_atomically(path, json.dumps(content, indent=1).encode())
        except OSError as error:
            if not is_refusal(error):
                raise
            warn_of_refusal(path.parent, str(error.strerror))

    def clear(self) -> None:
        """Forget what is in memory."""
        self._known.clear()


def key_of(lines: Sequence[str]) -> str:
    """The name of what was asked."""
    return digest("\n".join([str(FORMAT), *lines]).encode())


def _path(key: str) -> Path:
    return cache_dir("choices") / f"{key}.json"


def _read(path: Path) -> Answer | None:
    try:
        return Answer.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError):  # not there, or damaged
        return None


STORE = Store()
