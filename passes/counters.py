"""Debug counters: let a person switch single rewrites off, and a bisecting tool find the guilty one.

A pass asks `counter("loop-fuse")` before each decision of that kind. With no counter configured that costs one
context-variable read and answers True. `skip` refuses the first n, `count` allows only so many after them; MLIR's
spelling: `loop-fuse-skip=47,loop-fuse-count=1`. Names begin with the pass; one that decides several things has a
counter for each kind, as `kernel-tile-lanes`. What cannot be left out asks none: see WITHOUT_COUNTER.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..errors import UserError
from ..records import dataclass


@dataclass
class Counter:
    """Limits of one counter, how often it was asked, and how often it said yes."""

    skip: int = 0
    count: int | None = None
    asked: int = 0
    allowed: int = 0

    def ask(self) -> bool:
        """Whether this occurrence is allowed."""
        position = self.asked
        self.asked += 1
        answer = position >= self.skip and (self.count is None or position < self.skip + self.count)
        self.allowed += answer
        return answer


_counters: ContextVar[dict[str, Counter] | None] = ContextVar("inductile_counters", default=None)


def counter(name: str) -> bool:
    """Whether the next rewrite counted under `name` may happen."""
    counters = _counters.get()
    if counters is None:
        return True
    return counters.setdefault(name, Counter()).ask()


def active() -> dict[str, Counter]:
    """The counters of the innermost `counting()`, empty outside of one; they grow as passes ask."""
    return _counters.get() or {}


def parse_counters(text: str) -> dict[str, Counter]:
    """Parse `a-skip=3,a-count=1,b-skip=2`.

    Raises UserError for anything else.
    """
    counters: dict[str, Counter] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        name, _, limit = key.rpartition("-")
        if not name or limit not in ("skip", "count") or not value.isdigit():
            raise UserError(f"cannot read the counter {part!r}", "write NAME-skip=N or NAME-count=N")
        setattr(counters.setdefault(name, Counter()), limit, int(value))
    return counters


#: passes and code generators that ask no counter, and why nothing in them can be left out
WITHOUT_COUNTER: dict[str, str] = {
    "lower-loop-to-kernel": "every op has one translation; what is fused, and what is in place, loop-fuse and "
    "loop-bufferize have decided",
    "module-attach-target": "it says what a program is for, and changes no op",
    "host-inline": "only whole programs can be planned and emitted; graph-outline-repeats has decided what is called",
    "kernel-apply-schedule": "it does what a script says, op by op: leave ops out of the script",
    "kernel-assign-registers": "what is left in local buffers of a GPU has no other place",
    "kernel-insert-barriers": "without one, threads race",
    "kernel-place-locals": "what does not fit the stack has no other place",
    "kernel-spill": "what fits no register tile has to be in memory",
    "c": "it spells out ops and their schedule; inductile-bisect compares its code with the reference backend",
    "cpp": "it spells out ops and their schedule; inductile-bisect compares its code with the reference backend",
    "triton": "it spells out ops and their schedule; inductile-bisect compares its code with the reference backend",
}


@contextmanager
def counting(counters: dict[str, Counter] | None = None) -> Iterator[dict[str, Counter]]:
    """Apply counters inside, and report in them how often each was asked; an outer block's do not apply inside."""
    active = {} if counters is None else counters
    token = _counters.set(active)
    try:
        yield active
    finally:
        _counters.reset(token)
