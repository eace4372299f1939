"""`--timing`: seconds of each pass, of the verifier behind it, and of what happens around the passes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..records import dataclass
from .manager import Instrumentation

_RULE = "===" + "-" * 73 + "==="
_TITLE = "... Execution time report ..."


@dataclass
class Span:
    """A stretch of time; `children` are stretches inside it."""

    name: str
    seconds: float = 0.0
    children: list[Span] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """`{name, seconds, children}` for JSON."""
        return {"name": self.name, "seconds": self.seconds, "children": [c.as_dict() for c in self.children]}


@dataclass
class Timing(Instrumentation):
    """A tree of times, printed in MLIR's format so that scripts that read that one work."""

    root: Span = field(default_factory=lambda: Span("Total"))
    _started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Time a stretch beside the passes, such as parsing."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.root.children.append(Span(name, time.perf_counter() - start))

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Record a pass."""
        self.root.children.append(Span(module_pass.name, seconds))

    def after_verify(self, done: int, module_pass: ModulePass, seconds: float) -> None:
        """Record a verifier run, a part of the pass's stretch."""
        self.add_part("(verify)", seconds)

    def add_part(self, name: str, seconds: float) -> None:
        """Record what was done behind the pass that ran last, as a part of its stretch."""
        row = self.root.children[-1]
        row.seconds += seconds
        row.children.append(Span(name, seconds))

    def finish(self) -> Span:
        """The tree up to now; what no stretch covers is called Rest."""
        total = time.perf_counter() - self._started
        rest = total - sum(child.seconds for child in self.root.children)
        return Span("Total", total, [*self.root.children, Span("Rest", max(rest, 0.0))])

    def text(self) -> str:
        """The tree as a table: seconds, share of the total, name; parts are indented."""
        tree = self.finish()
        lines = [_RULE, _TITLE.center(len(_RULE)).rstrip(), _RULE]
        lines += [f"  Total Execution Time: {tree.seconds:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        for depth, span in [*_walk(tree.children, 0), (0, tree)]:
            share = 100 * span.seconds / (tree.seconds or 1e-12)
            lines.append(f"    {span.seconds:.4f} ({share:5.1f}%)  {'  ' * depth}{span.name}")
        return "\n".join(lines)

    def json(self) -> str:
        """The tree as JSON: nested `{name, seconds, children}`."""
        return json.dumps(self.finish().as_dict(), indent=2)


def _walk(spans: list[Span], depth: int) -> Iterator[tuple[int, Span]]:
    for span in spans:
        yield depth, span
        yield from _walk(span.children, depth + 1)
