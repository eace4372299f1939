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


def half(rows: Sequence[T]) -> list[T]:
    """Every second of the rows, in their order, drawn by the commit alone."""
    if os.environ.get("INDUCTILE_WHOLE", "0") not in ("", "0"):
        return list(rows)
    return half_of(commit(), rows)


def half_of(commit: str, rows: Sequence[T]) -> list[T]:
    """The half that a commit takes."""
    taken = random.Random(commit).sample(range(len(rows)), (len(rows) + 1) // 2)
    return [rows[k] for k in sorted(taken)]
