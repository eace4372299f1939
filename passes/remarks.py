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
from dataclasses import field
from weakref import ReferenceType, ref

from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation

from ..records import dataclass

KINDS = ("passed", "missed", "failure", "analysis")


@dataclass(frozen=True)
class Remark:
    """One remark. `location` is the user's `file:line`, a module, or empty; `figures` are named numbers and texts.

    `value` is the name of what the op computes, which is the user's or that of the ATen op. `subject` leads to the op
    while it lives, for viewers that show remarks beside ops.
    """

    kind: str
    pass_name: str
    op: str
    location: str
    reason: str
    suggestion: str = ""
    figures: dict[str, object] = field(default_factory=dict)
    subject: ReferenceType[Operation] | None = field(default=None, compare=False, repr=False)
    value: str = ""

    def __str__(self) -> str:
        return self._text(self.op)

    @property
    def about(self) -> str:
        """The op with the value that it computes, `loop.generate %gelu`, where that tells more than the op."""
        bare = self.value.rstrip("0123456789").rstrip("_")
        return self.op if not bare or bare in self.op.split(".") else f"{self.op} %{self.value}"

    def told(self) -> str:
        """The text for people who do not have the IR before them: with the value."""
        return self._text(self.about)

    def _text(self, about: str) -> str:
        where = f"{self.location}: " if self.location else ""
        figures = "".join(f" {name}={value}" for name, value in self.figures.items())
        hint = f" ({self.suggestion})" if self.suggestion else ""
        return f"{where}remark: [{self.pass_name}] {self.kind}: {about}: {self.reason}{hint}{figures}"


_sink: ContextVar[list[Remark] | None] = ContextVar("inductile_remarks", default=None)


def format_location(location: Attribute) -> str:
    """`file:line` of a location, or its name, of the first known part of a fused one, or the empty string."""
    if isinstance(location, FileLineColLoc):
        return f"{location.filename.data}:{location.line.data}"
    if isinstance(location, NameLoc):
        return location.desc.data
    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
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
    name, subject = (op.name, ref(op)) if op is not None else ("", None)
    value = (op.results[0].name_hint or "") if op is not None and op.results else ""
    sink.append(Remark(kind, pass_name, name, location, reason, suggestion, figures, subject, value))


@contextmanager
def collecting() -> Iterator[list[Remark]]:
    """Collect the remarks made inside; those of a nested block reach the outer one when the nested one ends."""
    remarks: list[Remark] = []
    token = _sink.set(remarks)
    try:
        yield remarks
    finally:
        _sink.reset(token)
        outer = _sink.get()
        if outer is not None:
            outer.extend(remarks)
