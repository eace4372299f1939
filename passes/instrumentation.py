"""Printing IR between passes, timing, statistics: watchers for the pass manager."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from .manager import Instrumentation


def module_text(module: ModuleOp, locations: bool = False, generic: bool = False) -> str:
    """The module as text that parses back; with `loc(...)` behind every op on request."""
    stream = StringIO()
    Printer(stream, print_generic_format=generic, print_debuginfo=locations).print_op(module)
    return stream.getvalue()


@dataclass
class PrintIR(Instrumentation):
    """Dump the module with MLIR's banner, which other viewers recognise.

    before, after: names of the passes to dump around; None is all of them, an empty collection none.
    only_changes:  dump behind a pass only if the text changed.
    on_failure:    dump the module in front of a pass that fails.
    """

    before: Collection[str] | None = ()
    after: Collection[str] | None = ()
    only_changes: bool = False
    on_failure: bool = False
    locations: bool = False
    stream: IO[str] = field(default_factory=lambda: sys.stderr)
    _digest: str = ""
    _snapshot: str = ""

    def _emit(self, when: str, module_pass: ModulePass, text: str) -> None:
        name = module_pass.name
        print(f"// -----// IR Dump {when} {name} ({name}) //----- //\n{text}\n", file=self.stream)

    def before_pass(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        """Dump, or remember the text for what happens later."""
        wanted = self.before is None or module_pass.name in self.before
        if not (wanted or self.only_changes or self.on_failure):
            return
        text = module_text(module, self.locations)
        self._snapshot = text if self.on_failure else ""
        self._digest = hashlib.sha256(text.encode()).hexdigest()
        if wanted:
            self._emit("Before", module_pass, text)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Dump if asked for."""
        if self.after is not None and module_pass.name not in self.after:
            return
        text = module_text(module, self.locations)
        if self.only_changes and hashlib.sha256(text.encode()).hexdigest() == self._digest:
            return
        self._emit("After", module_pass, text)

    def pass_failed(self, done: int, module_pass: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Dump what the failing pass was given."""
        if self.on_failure:
            self._emit("Before Failed", module_pass, self._snapshot)


@dataclass
class PrintTree(Instrumentation):
    """Write the module behind each pass as `NN-pass.mlir` into a folder; `00-input.mlir` is what came in."""

    folder: Path
    locations: bool = True
    first: int = 0

    def _write(self, number: int, name: str, module: ModuleOp) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{number:02d}-{name}.mlir").write_text(module_text(module, self.locations) + "\n")

    def before_run(self, module: ModuleOp) -> None:
        """Write the input."""
        self._write(self.first, "input", module)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Write what the pass left."""
        self._write(self.first + done + 1, module_pass.name, module)


@dataclass
class Timing(Instrumentation):
    """Seconds of each pass and of the verifier behind it."""

    rows: list[tuple[str, str, float]] = field(default_factory=list)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Record a pass."""
        self.rows.append((module_pass.name, "pass", seconds))

    def after_verify(self, done: int, module_pass: ModulePass, seconds: float) -> None:
        """Record a verifier run."""
        self.rows.append((module_pass.name, "verify", seconds))

    def text(self) -> str:
        """A table in MLIR's manner: seconds, share, name; verifier runs are indented below their pass."""
        total = sum(seconds for _, _, seconds in self.rows) or 1e-12
        lines = ["===- Pass execution timing report -===", f"  Total: {total:.4f} s", "   seconds   share  name"]
        for name, kind, seconds in self.rows:
            shown = name if kind == "pass" else "  (verify)"
            lines.append(f"  {seconds:8.4f}  {100 * seconds / total:5.1f}%  {shown}")
        return "\n".join(lines)

    def json(self) -> str:
        """The rows as a JSON list of {pass, kind, seconds}."""
        return json.dumps([{"pass": n, "kind": k, "seconds": s} for n, k, s in self.rows], indent=2)


@dataclass
class Statistics(Instrumentation):
    """Ops in the module before and behind each pass, by dialect."""

    rows: list[tuple[str, dict[str, int]]] = field(default_factory=list)

    @staticmethod
    def _count(module: ModuleOp) -> dict[str, int]:
        counts: dict[str, int] = {}
        for op in module.walk():
            dialect = op.name.partition(".")[0]
            counts[dialect] = counts.get(dialect, 0) + 1
        return counts

    def before_run(self, module: ModuleOp) -> None:
        """Count the input."""
        self.rows.append(("(input)", self._count(module)))

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Count behind the pass."""
        self.rows.append((module_pass.name, self._count(module)))

    def text(self) -> str:
        """One line a pass: total ops, the change, and ops by dialect."""
        lines = ["===- Pass statistics: ops behind each pass -==="]
        previous = 0
        for name, counts in self.rows:
            total = sum(counts.values())
            parts = ", ".join(f"{d} {n}" for d, n in sorted(counts.items()) if d != "builtin")
            lines.append(f"  {total:7d} {total - previous:+7d}  {name}: {parts}")
            previous = total
        return "\n".join(lines)
