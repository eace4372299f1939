"""Runs passes over a module and tells instrumentations what happens."""

from __future__ import annotations

import dataclasses
import sys
import time
import traceback
from collections.abc import Collection, Sequence
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from ..errors import InductileError, PassError, UserError
from ..records import dataclass
from .verification import find_violation


class Instrumentation:
    """Watches a run. Every hook is optional; none may change the module."""

    def before_run(self, module: ModuleOp) -> None:
        """Called once, before the first pass."""

    def before_pass(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        """Called before the pass number `done` (from 0)."""

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Called after a pass that succeeded, before the module is verified."""

    def after_verify(self, done: int, module_pass: ModulePass, seconds: float) -> None:
        """Called when the module was verified behind a pass."""

    def pass_failed(self, done: int, module_pass: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Called when a pass raised or left a module that does not verify, with the module as it is then."""


@dataclass
class PassManager:
    """A sequence of passes.

    verify_each: verify the module behind every pass; otherwise behind the last one, and where the level changes
                 (a pass whose `level` contains `->`).
    skip:        names of passes that are left out
    """

    passes: Sequence[ModulePass]
    instrumentations: Sequence[Instrumentation] = field(default_factory=tuple)
    verify_each: bool = False
    verify: bool = True
    skip: Collection[str] = ()

    def run(self, context: Context, module: ModuleOp) -> None:
        """Run all passes in place.

        Raises PassError, naming the pass, for any failure that is not a UserError.
        """
        for watcher in self.instrumentations:
            watcher.before_run(module)
        for done, module_pass in enumerate(self.passes):
            if module_pass.name in self.skip:
                continue
            try:
                self._run_one(done, module_pass, context, module)
            except Exception as error:
                for watcher in self.instrumentations:
                    watcher.pass_failed(done, module_pass, module, error)
                if isinstance(error, PassError | UserError):
                    raise
                raise PassError(module_pass.name, _reason(error, module_pass)) from error

    def _run_one(self, done: int, module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
        for watcher in self.instrumentations:
            watcher.before_pass(done, module_pass, module)
        start = time.perf_counter()
        module_pass.apply(context, module)
        seconds = time.perf_counter() - start
        for watcher in self.instrumentations:
            watcher.after_pass(done, module_pass, module, seconds)
        if self._verifies_behind(done):
            self._verify(done, module_pass, module)

    def _verify(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        start = time.perf_counter()
        violation = find_violation(module)
        seconds = time.perf_counter() - start
        if violation is not None:
            raise PassError(module_pass.name, f"the module does not verify behind it: {violation}")
        for watcher in self.instrumentations:
            watcher.after_verify(done, module_pass, seconds)

    def _verifies_behind(self, done: int) -> bool:
        if not self.verify:
            return False
        changes_level = "->" in getattr(self.passes[done], "level", "")
        return self.verify_each or changes_level or all(each.name in self.skip for each in self.passes[done + 1 :])


def is_optional(module_pass: ModulePass) -> bool:
    """Whether a pass says by `optional: ClassVar[bool] = True` that programs need not have been through it."""
    return bool(getattr(module_pass, "optional", False))


def simpler_form(module_pass: ModulePass) -> ModulePass | None:
    """What may stand for a pass that failed and that programs need: itself with the options that it names `simpler`."""
    options = getattr(module_pass, "simpler", None)
    if not options or all(getattr(module_pass, name) == value for name, value in options.items()):
        return None
    return dataclasses.replace(module_pass, **options)


def _reason(error: Exception, module_pass: ModulePass) -> str:
    if isinstance(error, InductileError):
        return str(error)
    if isinstance(error, DiagnosticException):  # what a pass says by xDSL's means
        return str(error).strip() or type(error).__name__
    return f"{type(error).__name__}: {error}{_place(error, module_pass)}"


def _place(error: Exception, module_pass: ModulePass) -> str:
    """` (file:line)` of the innermost call in the file of the pass, when the error went through it."""
    # what is typed into an interpreter has no file
    file = getattr(sys.modules.get(type(module_pass).__module__), "__file__", None)
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return f" ({file}:{lines[-1]})" if lines else ""
