"""Printing the IR around passes: watchers for the pass manager."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects.format import HEADER
from ..records import dataclass
from .manager import Instrumentation
from .printing import broken_module_text, module_text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def banner(what: str) -> str:
    """MLIR's line in front of a dump."""
    return f"// -----// IR Dump {what} //----- //"


@dataclass
class PrintIR(Instrumentation):
    """Dump the module with MLIR's banner, which other viewers recognise.

    before, after: names of the passes to dump around; None is all of them, an empty collection none
    only_changes:  dump behind one of the passes `after` only if it changed the text
    on_failure:    dump what a failing pass left, however far it came
    stream:        where to; the standard error of the moment when None
    """

    before: Collection[str] | None = ()
    after: Collection[str] | None = ()
    only_changes: bool = False
    on_failure: bool = False
    locations: bool = False
    stream: IO[str] | None = None
    _before: str = ""

    def _emit(self, what: str, module_pass: ModulePass, text: str) -> None:
        print(f"{banner(f'{what} ({module_pass.name})')}\n{text}\n", file=self.stream or sys.stderr)

    def before_pass(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        """Dump, and remember the text to see changes."""
        wanted = _is_wanted(module_pass, self.before)
        compared = self.only_changes and _is_wanted(module_pass, self.after)
        if not (wanted or compared):
            return
        text = module_text(module, self.locations)
        self._before = _digest(text)
        if wanted:
            self._emit(f"Before {module_pass.name}", module_pass, text)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Dump if asked for."""
        if not _is_wanted(module_pass, self.after):
            return
        text = module_text(module, self.locations)
        if not self.only_changes or _digest(text) != self._before:
            self._emit(f"After {module_pass.name}", module_pass, text)

    def pass_failed(self, done: int, module_pass: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Dump what the failing pass left."""
        if self.on_failure:
            self._emit(f"After {module_pass.name} Failed", module_pass, broken_module_text(module, self.locations))


def _is_wanted(module_pass: ModulePass, names: Collection[str] | None) -> bool:
    return names is None or module_pass.name in names


@dataclass
class PrintTree(Instrumentation):
    """Write the module behind each pass as `NNN-pass.mlir` into a folder; `000-input.mlir` is what came in.

    What a failing pass leaves goes to `NNN-pass.failed.mlir`.
    """

    folder: Path
    locations: bool = True
    first: int = 0

    def _write(self, name: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(f"{HEADER}\n{text}\n")

    def before_run(self, module: ModuleOp) -> None:
        """Write the input."""
        self._write(f"{self.first:03d}-input.mlir", module_text(module, self.locations))

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Write what the pass left."""
        name = f"{self.first + done + 1:03d}-{module_pass.name}.mlir"
        self._write(name, module_text(module, self.locations))

    def pass_failed(self, done: int, module_pass: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Write what the failing pass left, unless it was the check behind it that failed."""
        name = f"{self.first + done + 1:03d}-{module_pass.name}"
        if not (self.folder / f"{name}.mlir").exists():
            self._write(f"{name}.failed.mlir", broken_module_text(module, self.locations))
