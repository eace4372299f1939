"""Tests that run twice over one cache of whole graphs: what the second run compiles comes from the first one's entries.

So a hit has to give whatever a test asks of a compile. Tests of some folders take part, each commit draws some of them;
`INDUCTILE_TWICE=1` takes all, and `INDUCTILE_TWICE_LOG=FILE` writes a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from .rotation import commit

FOLDERS = ("semantics", "training")
_ONE_OF = 40
"""Each commit draws one of so many."""
DRAWN = pytest.StashKey[bool]()
"""Marks the tests that run twice."""


def draw(items: Sequence[pytest.Item]) -> None:
    """Mark the tests that run twice."""
    root = Path(__file__).parent
    able = [item for item in items if isinstance(item, pytest.Function) and _takes_part(item, root)]
    if os.environ.get("INDUCTILE_TWICE", "0") not in ("", "0"):
        drawn = able
    else:
        drawn = [each for each in able if random.Random(f"{commit()} {each.nodeid}").randrange(_ONE_OF) == 0]
    for item in drawn:
        item.stash[DRAWN] = True


def _takes_part(item: pytest.Function, root: Path) -> bool:
    folder = item.path.relative_to(root).parts[0] if item.path.is_relative_to(root) else ""
    everywhere = os.environ.get("INDUCTILE_TWICE", "0") == "everywhere"
    return (folder in FOLDERS or everywhere) and item.get_closest_marker("once") is None


def run_protocol(item: pytest.Function, nextitem: pytest.Item | None) -> None:
    """Run a test, and, where it passes, again with fixtures of its own."""
    with TemporaryDirectory() as folder:
        seen = item.stash[SEEN] = Seen(Path(folder))
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        # fixtures of its parents stay, as they do in front of a test of the same file
        reports = runtestprotocol(item, nextitem=item.parent, log=False)  # pyright: ignore[reportArgumentType]
        first = seen.take()
        if all(report.passed for report in reports) and first.total():
            seen.again = True
            item._initrequest()
            reports = runtestprotocol(item, nextitem=nextitem, log=False)
            failure = next((report.longreprtext for report in reports if report.failed), "")
            _log(item, first, seen.take(), failure)
        else:
            item.session._setupstate.teardown_exact(nextitem)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


@contextmanager
def run_call(item: pytest.Item) -> Iterator[None]:
    """Around the call of a test: over its cache, where it runs twice."""
    seen = item.stash.get(SEEN, None)
    if seen is None:
        yield
        return
    import torch

    torch.compiler.reset()
    try:
        with cached(seen):
            yield
    except Exception as error:
        if seen.again:
            error.add_note("in its second run, with graphs from the cache")
        raise
    finally:
        torch.compiler.reset()


def _log(item: pytest.Item, first: Counter[str], second: Counter[str], error: str = "") -> None:
    path = os.environ.get("INDUCTILE_TWICE_LOG")
    if path:
        with open(path, "a") as file:
            line = {"test": item.nodeid, "first": first, "second": second, "error": error[-2000:]}
            file.write(json.dumps(line) + "\n")


class Seen:
    """What became of the graphs of a test, which are kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outcomes: Counter[str] = Counter()
        self.texts: list[list[str]] = []
        self.again = False

    def take(self) -> Counter[str]:
        outcomes, self.outcomes = self.outcomes, Counter()
        return outcomes

    def miss(self, lines: list[str]) -> None:
        """Say how a key that is missed differs from the nearest that there was."""
        self.outcomes["miss"] += 1
        if self.again and self.texts:
            nearest = min(self.texts, key=lambda each: len(set(each) ^ set(lines)))
            others = sorted(set(nearest) - set(lines)), sorted(set(lines) - set(nearest))
            self.outcomes[f"missed: {str(others)[:600]}"] += 1
        else:
            self.texts.append(lines)


SEEN = pytest.StashKey[Seen]()


@contextmanager
def cached(seen: Seen) -> Iterator[None]:
    """The cache of graphs, which tells what becomes of them."""
    from inductile.backends.graph_cache import front
    from inductile.backends.graph_cache.store import Store

    session = front.GraphSession
    lines_of, load, revived, bypassed = session._lines_of, session._load, session._revived, front._bypassed

    def watch_lines(self: Any, *rest: Any) -> list[str]:
        vars(self)["lines"] = lines_of(self, *rest)
        return vars(self)["lines"]

    def watch_load(self: Any, *rest: Any) -> Any:
        before = seen.outcomes.total()
        loaded = load(self, *rest)
        if loaded is None and seen.outcomes.total() == before:
            seen.miss(vars(self)["lines"])
        return loaded

    def watch_revived(*rest: Any) -> Any:
        result = revived(*rest)
        seen.outcomes["hit"] += 1
        return result

    def watch_bypassed(reason: str) -> None:
        seen.outcomes[f"bypass: {reason}"] += 1
        bypassed(reason)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INDUCTILE_GRAPH_CACHE", "1")
        patch.setattr(front, "own_store", lambda: Store(seen.folder))
        patch.setattr(session, "_lines_of", watch_lines)
        patch.setattr(session, "_load", watch_load)
        patch.setattr(session, "_revived", watch_revived)
        patch.setattr(front, "_bypassed", watch_bypassed)
        yield
