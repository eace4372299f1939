"""A compiled graph and what is known about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ..dialects import host, kernel
from ..dialects.aten import AtenOp, CallOp, TensorType
from ..dialects.machine import targets_of
from ..passes.common.costs import tensor_bytes
from ..passes.common.implementations import IMPLEMENTATION
from ..passes.common.library_calls import LibraryCall, decomposed_attention, library_calls
from .host.program import HostProgram
from .host.regions import PROFILER, Region

if TYPE_CHECKING:
    from ..lowering.fx_import import ImportedGraph
    from .targets import Program


@dataclass
class GraphReport:
    """Figures of one compiled graph.

    kernels:    kernel name -> how often it is launched
    aten_calls: op -> how often ATen is called for it
    products:   matrix products and attention, with who computes them
    seconds:    stage -> seconds
    failures:   passes that failed and were left out -> why
    once:       kernel or op -> how often it runs when weights are new, for results that are kept from then on
    kept_bytes: what these take
    """

    kind: str
    kernels: dict[str, int] = field(default_factory=dict)
    aten_calls: dict[str, int] = field(default_factory=dict)
    products: list[LibraryCall] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    once: dict[str, int] = field(default_factory=dict)
    kept_bytes: int = 0

    def add_seconds(self, stage: str, seconds: float) -> None:
        """Add to the time of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def describe_input(self, module: ModuleOp) -> None:
        """Read from the imported graph what the final IR does not show."""
        self.products = list(decomposed_attention(module))

    def describe(self, module: ModuleOp, program: Program) -> None:
        """Read launches and ATen calls from the final IR."""
        self.products += library_calls(module, targets_of(module).main)
        launches: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        once: Counter[str] = Counter()
        functions = [function for function in module.ops if isinstance(function, host.FuncOp)]
        for function in functions:
            kept = function.kept is not None
            for op in function.body.block.ops:
                if isinstance(op, host.LaunchOp):
                    (once if kept else launches)[op.kernel.root_reference.data] += 1
                elif isinstance(op, AtenOp | CallOp):
                    (once if kept else calls)[_called(op)] += 1
            types = function.function_type.outputs.data if kept else ()
            self.kept_bytes += sum(tensor_bytes(type_, {}) for type_ in types if isinstance(type_, TensorType))
        for function in module.ops:
            if isinstance(function, kernel.FuncOp) and function.sym_name.data not in once:
                launches.setdefault(function.sym_name.data, 0)
        self.kernels, self.aten_calls, self.once = dict(launches), dict(calls), dict(once)
        self.sources = program.sources

    def __str__(self) -> str:
        calls = ", ".join(f"{name} x{count}" for name, count in self.aten_calls.items()) or "none"
        failures = f"left out, because they failed: {', '.join(self.failures)}; " if self.failures else ""
        kept = f"{sum(self.once.values())} run once, {self.kept_bytes} bytes kept; " if self.once else ""
        return (
            f"{self.kind}: {sum(self.kernels.values())} launches of {len(self.kernels)} kernels; "
            f"ATen calls: {calls}; {kept}{failures}{sum(self.seconds.values()):.3f} s"
        )


def _called(op: AtenOp | CallOp) -> str:
    """The name of an op, with the library that runs it where the IR chose one."""
    library = op.attributes.get(IMPLEMENTATION)
    return f"{op.target} by {library.data}" if isinstance(library, StringAttr) else op.target


#: reports of the graphs compiled in this process, newest last, for `inductile.explain` and tests
REPORTS: list[GraphReport] = []
_KEPT_REPORTS = 1024


def keep_report(report: GraphReport) -> None:
    """Remember a report; the oldest ones are dropped."""
    REPORTS.append(report)
    del REPORTS[:-_KEPT_REPORTS]


class CompiledGraph:
    """Callable with the boxed convention: takes one list of inputs, clears it, returns the outputs."""

    def __init__(
        self, program: Program, imported: ImportedGraph, report: GraphReport, region: str = "", nvtx: bool = False
    ) -> None:
        # of the instance: torch wraps backward graphs in functions, which get a copy of its dictionary
        self._boxed_call = True
        self.program = program
        self.report = report
        self._constants: Sequence[Any] = imported.constants
        # a frame of Python costs a microsecond or two when the caches hold a kernel's data instead
        self._run: Callable[[list[Any]], Sequence[Any]] = getattr(program, "run", program)
        self.region, self._nvtx = region, nvtx
        self._arrangements = imported.arrangements
        self._arrange = tuple if imported.returns_results() else imported.arrange_outputs

    def __call__(self, args: list[Any]) -> Any:
        """Run on real inputs."""
        for each in self._arrangements:
            if args[each.position].stride() != each.strides:
                args[each.position] = each.of(args[each.position])
        if self._constants:
            args.extend(self._constants)
        if PROFILER._is_profiler_enabled or self._nvtx:
            return self._arrange(self._run_watched(args))
        return self._arrange(self._run(args))

    def _run_watched(self, args: list[Any]) -> Sequence[Any]:
        """The same as regions of a profile."""
        run = self.program.run_watched(self._nvtx) if isinstance(self.program, HostProgram) else self._run
        with Region(self.region, self._nvtx):
            return run(args)
