"""Remarks: what a pass did, what it did not do and why, for people.

    with collecting() as remarks:
        ...
        remark("missed", "loop-fuse", op, "axes differ", suggestion="make the sizes equal", bytes=4096)

Outside `collecting()` a remark costs one context-variable read. Four kinds, as in LLVM: passed, missed, failure,
analysis.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc
from xdsl.ir import Attribute, Operation

KINDS = ("passed", "missed", "failure", "analysis")


@dataclass(frozen=True)
class Remark:
    """One remark. `location` is the user's `file:line` or empty; `figures` are named numbers and short texts."""

    kind: str
    pass_name: str
    op: str
    location: str
    reason: str
    suggestion: str = ""
    figures: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        figures = "".join(f" {name}={value}" for name, value in self.figures.items())
        hint = f" ({self.suggestion})" if self.suggestion else ""
        return f"{where}remark: [{self.pass_name}] {self.kind}: {self.op}: {self.reason}{hint}{figures}"


_sink: ContextVar[list[Remark] | None] = ContextVar("inductile_remarks", default=None)


def format_location(location: Attribute) -> str:
    """`file:line` of a location, the first known part of a fused one, or the empty string."""
    if isinstance(location, FileLineColLoc):
        return f"{location.filename.data}:{location.line.data}"
    if isinstance(location, FusedLoc):
        return next((text for part in location.locations if (text := format_location(part))), "")
    return ""


def enabled() -> bool:
    """Whether somebody collects remarks; lets a pass skip the work of explaining itself."""
    return _sink.get() is not None


def remark(
    kind: str,
    pass_name: str,
    op: Operation | None,
    reason: str,
    *,
    suggestion: str = "",
    **figures: object,
) -> None:
    """Record a remark about `op` if somebody collects them."""
    sink = _sink.get()
    if sink is None:
        return
    if kind not in KINDS:
        raise ValueError(f"unknown kind of remark {kind!r}")
    location = format_location(op.location) if op is not None else ""
    sink.append(Remark(kind, pass_name, op.name if op is not None else "", location, reason, suggestion, figures))


@contextmanager
def collecting() -> Iterator[list[Remark]]:
    """Collect the remarks made inside; nested collectors each see only their own block's."""
    remarks: list[Remark] = []
    token = _sink.set(remarks)
    try:
        yield remarks
    finally:
        _sink.reset(token)
