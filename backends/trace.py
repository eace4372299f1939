"""`INDUCTILE_TRACE=DIR`: a folder per graph with the IR behind each pass, the generated sources, and timings.

    DIR/forward_0/index.html, 000-input.mlir ... 102-host-free.mlir, kernels.cpp, program.py, timing.json, pipeline.txt

`index.html` shows it all in a browser. Every `.mlir` file is read by `inductile-opt` as it is. Both are written behind
each pass, so that they survive a crash. With
INDUCTILE_TRACE_INPUTS=1 the inputs of the first call go to `inputs/0.npy`, ...; where debug counters are active,
`counters.json` says how often each was asked. Where a pass before autograd had something to decide, `dynamo_0/` and so
on hold Dynamo's graphs behind each of those passes, as torch prints them.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import UserError
from ..lowering.fx_types import frames_of
from ..passes.counters import active
from ..passes.instrumentation import PrintTree
from ..passes.manager import Instrumentation
from ..passes.timing import Timing
from ..records import dataclass
from . import torch_trace
from .config import Config
from .torch_debug import torch_debug_folder

if TYPE_CHECKING:
    from .report import Report

log = logging.getLogger(__name__)

#: takes one list of inputs and clears it
BoxedFunction = Callable[[list[Any]], Any]

_numbers = itertools.count()


def trace_root(config: Config) -> Path | None:
    """The folder for traces, if any: of the option `trace`, of INDUCTILE_TRACE, or torch's own for `trace_enabled`."""
    chosen = config.trace or os.environ.get("INDUCTILE_TRACE", "")
    if chosen:
        return Path(chosen)
    return torch_debug_folder(config.trace_debug_dir) if config.trace_enabled else None


def fresh_folder(root: Path, kind: str, numbers: Iterator[int]) -> Path:
    """A new folder `root/kind_N` with the next number that is free. Raises UserError when it cannot be made."""
    for number in numbers:
        folder = root / f"{kind}_{number}"
        try:
            folder.mkdir(parents=True, exist_ok=False)
        except FileExistsError:
            if not root.is_dir():
                raise UserError(f"the trace folder {root} is a file", "name a folder in INDUCTILE_TRACE") from None
            continue
        except OSError as error:
            raise UserError(f"cannot write the trace folder {root}: {error.strerror}") from error
        return folder
    raise AssertionError("numbers end")


def counters_json() -> str:
    """How often each active counter was asked, as text of a file."""
    return json.dumps({name: counter.asked for name, counter in active().items()}, indent=2) + "\n"


def facts_of(config: Config) -> dict[str, str]:
    """Versions, and the options that are not at their default."""
    return {**{name: repr(value) for name, value in config.changed().items()}, "torch": torch.__version__}


@dataclass
class Trace(Instrumentation):
    """Writes one graph's folder."""

    folder: Path
    timing: Timing = field(default_factory=Timing)
    tree: PrintTree = field(init=False)
    report: Report = field(init=False)

    def __post_init__(self) -> None:
        self.tree = PrintTree(self.folder)
        from .report import Report  # of traces alone

        self.report = Report(self.folder / "index.html", self.folder.name)

    @staticmethod
    def of(config: Config, kind: str) -> Trace | None:
        """A trace in a fresh folder `kind_N`, where a configuration asks for one. UserError when it cannot be made."""
        root = trace_root(config)
        if root is None:
            return None
        trace = Trace(fresh_folder(root, kind, _numbers))
        if config.trace_enabled:
            log.warning("%s graph, debug trace: %s", kind, trace.folder)
        return trace

    def about(self, graph: torch.fx.GraphModule, config: Config) -> None:
        """Let the report say which lines the graph came through, and with what it is compiled."""
        self.report.reached = {frame for node in graph.graph.nodes for frame in frames_of(node.stack_trace)}
        self.report.facts = facts_of(config)

    def write(self, name: str, text: str) -> None:
        """Write one more file into the folder."""
        (self.folder / name).write_text(text)

    def write_counters(self) -> None:
        """Write how often each counter was asked so far, where they count."""
        if active():
            self.write("counters.json", counters_json())

    def before_run(self, module: ModuleOp) -> None:
        """Write the input."""
        self.tree.before_run(module)
        self.report.before_run(module)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Write the module and the timings so far."""
        self.timing.after_pass(done, module_pass, module, seconds)
        self.tree.after_pass(done, module_pass, module, seconds)
        self.report.after_pass(done, module_pass, module, seconds)
        self.write("timing.json", self.timing.json() + "\n")
        self.write_counters()

    def after_verify(self, done: int, module_pass: ModulePass, seconds: float) -> None:
        """Record the verifier's time."""
        self.timing.after_verify(done, module_pass, seconds)
        self.report.after_verify(done, module_pass, seconds)

    def pass_failed(self, done: int, module_pass: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Write what a failing pass left, and why it failed."""
        self.tree.pass_failed(done, module_pass, module, error)
        self.report.pass_failed(done, module_pass, module, error)
        self.write("error.txt", f"{module_pass}: {error}\n")

    def add_program(self, module: ModuleOp, sources: Mapping[str, str]) -> None:
        """Write the sources that were generated for the final module."""
        for name, text in sources.items():
            self.write(name, text)
        self.report.add_program(module, sources)
        from .report.neighbours import introduce

        introduce(self.report)
        if torch_trace.is_traced():
            torch_trace.record_link(f"{self.folder.name}_report", self.report.path)

    def watch_calls(self, compiled: BoxedFunction, constants: Sequence[Any], config: Config) -> BoxedFunction:
        """`compiled`, which saves the inputs of its first call where the option or INDUCTILE_TRACE_INPUTS asks."""
        if not config.trace_save_real_tensors and os.environ.get("INDUCTILE_TRACE_INPUTS", "0") in ("", "0"):
            return compiled
        return _SavingInputs(compiled, constants, self.folder / "inputs")


class _SavingInputs:
    """A compiled graph that writes the inputs of its first call, those that it makes itself included."""

    def __init__(self, compiled: BoxedFunction, constants: Sequence[Any], folder: Path) -> None:
        self._boxed_call = True
        self._compiled = compiled
        self._constants = constants
        self._folder: Path | None = folder

    def __call__(self, args: list[Any]) -> Any:
        if self._folder is not None:
            from .arrays import save_array

            self._folder.mkdir(exist_ok=True)
            for number, value in enumerate([*args, *self._constants]):
                save_array(self._folder / f"{number}.npy", value)
            self._folder = None
        return self._compiled(args)
