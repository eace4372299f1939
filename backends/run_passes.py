"""A pipeline over a graph, as torch.compile runs it: an optional pass that fails is left out."""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .. import extensions
from ..dialects.context import new_context
from ..errors import PassError, PassFailureWarning, UnsupportedError, UserError
from ..lowering.fx_import import ImportedGraph
from ..lowering.registry import pass_class
from ..lowering.reproducer import write_reproducer
from ..passes.analysis.matrix_units import without_units
from ..passes.graph.choose_products import ChooseProducts
from ..passes.manager import Instrumentation, PassManager, is_optional, simpler_form
from ..passes.printing import module_text
from ..passes.remarks import remark
from ..passes.watching import Watch, parse_flags
from .compiled import GraphReport
from .config import Config, names_of
from .observer import Observer
from .trace import Trace, trace_root

log = logging.getLogger(__name__)


class Loaded(Protocol):
    """What an import gives."""

    @property
    def imported(self) -> ImportedGraph:
        """The graph as IR."""
        ...


T = TypeVar("T", bound=Loaded)
LOADING = "load code"
"""The stage in which passes and code generators are imported; in a process that has them it takes no time."""


class _Times(Instrumentation):
    """Seconds of each pass into a report."""

    def __init__(self, report: GraphReport) -> None:
        self.report = report

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        self.report.add_seconds(module_pass.name, seconds)

    def after_verify(self, done: int, module_pass: ModulePass, seconds: float) -> None:
        self.report.add_seconds("verify", seconds)


def run_passes(
    load: Callable[[], T],
    choose: Callable[[ModuleOp], Sequence[ModulePass]],
    config: Config,
    report: GraphReport,
    trace: Trace | None = None,
    observer: Observer | None = None,
) -> T:
    """What `load` imports, behind the passes that `choose` names for its module.

    Where a product was chosen to be a nest, and other nests kept it from matrix units, the graph is compiled again with
    all of them the library's.

    A pass that only makes programs better may fail: then the graph is imported again and compiled without it, or with
    its simpler form if programs need it. A warning names the pass and a reproducer, a remark and the report say so too.
    Raises PassError, with a reproducer, for any other pass that fails, and for every pass that changes an answer under
    `verify_each="numerics"`.
    """
    run = _Run(load, choose, config, report, trace, observer)
    while True:
        try:
            return run.once()
        except PassError as error:
            run.leave_out(run.cause_of(error))


class _Run(Generic[T]):
    """The runs over one graph: the first one, and another one for each pass that had to be left out."""

    def __init__(
        self,
        load: Callable[[], T],
        choose: Callable[[ModuleOp], Sequence[ModulePass]],
        config: Config,
        report: GraphReport,
        trace: Trace | None,
        observer: Observer | None,
    ) -> None:
        self.load = load
        self.choose = choose
        self.config = config
        self.report = report
        self.trace = trace
        self.observer = observer
        self.passes: list[ModulePass] = []
        self.left_out: set[str] = set()
        self.unwanted = names_of(config.disabled_passes)
        self.given_back: set[str] = set()
        """Shapes of products and attention that missed the matrix units as nests, and are the library's."""

    def once(self, verify_each: bool = False) -> T:
        """Import the graph and run the passes that have not failed yet. Raises PassError for one that fails."""
        started = time.perf_counter()
        loaded = self.load()
        imported = loaded.imported
        self.report.add_seconds("import", time.perf_counter() - started)
        if not self.passes:
            started = time.perf_counter()
            self.passes = list(self.choose(imported.module))
            self.report.add_seconds(LOADING, time.perf_counter() - started)
            self.left_out |= disabled(self.passes, self.unwanted)
            if self.trace is not None:
                self.trace.write("pipeline.txt", ",".join(map(str, self.passes)) + "\n")
        told = self.observer is not None and self.observer.wants_remarks
        with watch_of(self.config, self.report.kind, collect=told or self.trace is not None) as watch:
            for name, reason in self.report.failures.items():
                remark("failure", name, None, f"the program is compiled without it: {reason}")
            watchers = self._watchers(imported, watch)
            each = verify_each or bool(self.config.verify_each)
            manager = PassManager(self.passes, watchers, verify_each=each, skip=self.left_out)
            manager.run(new_context(), imported.module)
        missed = set[str]().union(*without_units(imported.module).values())
        if not missed <= self.given_back:
            self.given_back |= missed
            shapes = tuple(sorted(self.given_back))
            self.passes = [
                replace(each, given_back=shapes) if isinstance(each, ChooseProducts) else each for each in self.passes
            ]
            return self.once(verify_each)
        if self.observer is not None:
            self.observer.show_remarks(watch.remarks)
        return loaded

    def _watchers(self, imported: ImportedGraph, watch: Watch) -> list[Instrumentation]:
        watchers: list[Instrumentation] = [_Times(self.report), *watch.instrumentations]
        if self.trace is not None:
            self.trace.report.remarks = watch.remarks
            watchers.append(self.trace)
        if self.observer is not None:
            watchers.append(self.observer)
        if self.config.verify_each == "numerics":
            from .numerics import NumericCheck

            watchers.append(NumericCheck(constants=imported.constants, references=imported.references))
        return watchers

    def cause_of(self, error: PassError) -> PassError:
        """The failure that explains one: a pass may find what one before it has broken, for few are verified behind."""
        if self._may_fail(error) or isinstance(error.__cause__, UnsupportedError) or self.config.verify_each:
            return error
        try:
            self.once(verify_each=True)
        except PassError as first:
            return first
        return error

    def _may_fail(self, error: PassError) -> bool:
        failed = [each for each in self.passes if each.name == error.pass_name]
        may_fail = all(is_optional(each) or simpler_form(each) is not None for each in failed)
        return self.config.verify_each != "numerics" and bool(failed) and may_fail

    def leave_out(self, error: PassError) -> None:
        """Let later runs do without the pass that failed; an error for one that they need as it is."""
        may_fail = self._may_fail(error)
        if isinstance(error.__cause__, UnsupportedError) and not may_fail:
            raise error  # no bug: nothing to replay
        where = self._reproduce(error)
        plugins = extensions.plugin_files(each.name for each in self.passes)
        told = PassError(error.pass_name, error.reason, where, plugins)
        if not may_fail:
            raise told from error
        warnings.warn(f"inductile compiles a graph without a pass: {told}", PassFailureWarning, stacklevel=2)
        self.report.failures[error.pass_name] = error.reason
        for position, each in enumerate(self.passes):
            if each.name == error.pass_name:
                simpler = simpler_form(each)
                self.passes[position] = simpler or each
                self.left_out |= set() if simpler else {each.name}

    def _reproduce(self, error: PassError) -> str:
        """Write a reproducer; the graph is imported again, because the module is half rewritten."""
        folder = trace_root(self.config)
        path = None if folder is None else os.fspath(folder / f"reproducer-{error.pass_name}-{os.getpid()}.mlir")
        counters, verify_each = self.config.debug_counter or None, self.config.verify_each
        try:
            text = module_text(self.load().imported.module, locations=True)
            passes = [each for each in self.passes if each.name not in self.left_out]
            return write_reproducer(path, text, "graph", passes, error, counters, verify_each)
        except Exception as failure:  # why the pass failed is what matters
            log.warning("no reproducer was written: %s", failure)
            return ""


def disabled(passes: Sequence[ModulePass], names: Collection[str]) -> set[str]:
    """Those of the named passes that run. UserError for one without which programs cannot be compiled."""
    found = {each.name: each for each in passes if each.name in names}
    for name, each in found.items():
        if not is_optional(each):
            raise UserError(f"option 'disabled_passes' names {name!r}", "programs cannot be compiled without this pass")
    return set(found)


_graphs = itertools.count()


def watch_of(config: Config, kind: str, collect: bool = False) -> Watch:
    """What the option `watch` or INDUCTILE_WATCH asks for; dumps of each graph go to a folder of their own."""
    flags = watch_flags(config)
    if flags.print_ir_tree_dir:
        flags.print_ir_tree_dir = os.path.join(flags.print_ir_tree_dir, f"{kind}_{next(_graphs)}")
    return Watch(flags, append=True, collect=collect)


def watch_flags(config: Config) -> argparse.Namespace:
    """The flags of the option `watch` or INDUCTILE_WATCH, and of the option `debug_counter`.

    Raises UserError for what is no flag, and for a pass that does not exist: one that does may run on other graphs.
    """
    flags = parse_flags(config.watch or os.environ.get("INDUCTILE_WATCH", ""))
    for name in (*flags.print_ir_before, *flags.print_ir_after):
        pass_class(name)
    flags.debug_counter = config.debug_counter or flags.debug_counter
    return flags
