"""Long tables that repeat one mechanism: each commit runs a part of them, and in time all are run.

`INDUCTILE_WHOLE=1 make test` runs the whole tables.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@cache
def commit() -> str:
    """The commit of this tree; a fixed word where there is no repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:
        return "none"
    return done.stdout.strip() if done.returncode == 0 else "none"


def part(rows: Sequence[T], of: int) -> list[T]:
    """One of `of` rows, in their order, drawn by the commit alone."""
    if os.environ.get("INDUCTILE_WHOLE", "0") not in ("", "0"):
        return list(rows)
    return part_of(commit(), rows, of)


def part_of(commit: str, rows: Sequence[T], of: int) -> list[T]:
    """The rows that a commit takes."""
    taken = random.Random(commit).sample(range(len(rows)), -(-len(rows) // of))
    return [rows[k] for k in sorted(taken)]
