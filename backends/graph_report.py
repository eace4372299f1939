"""What is known about the graphs of this process. Light to import, as graphs from the cache are."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from ..records import dataclass

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..dialects.aten import AtenOp, CallOp
    from ..passes.common.library_call import LibraryCall
    from .targets import Program


@dataclass
class GraphReport:
    """Figures of one compiled graph.

    kernels:    kernel name -> how often it is launched
    aten_calls: op -> how often ATen is called for it; a call whose bodies are compiled counts as what these hold, once
    products:   matrix products and attention, with who computes them
    seconds:    stage -> seconds
    failures:   passes that failed and were left out -> why
    once:       kernel or op -> how often it runs when weights are new, for results that are kept from then on
    kept_bytes: what these take
    operators:  names of the operators of its FX graph
    lines:      kernel or op -> the user's lines that it comes from, `file:line`
    is_loaded:  whether it came from the cache of whole graphs: no pass ran, and `seconds` are those of the load
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
    operators: tuple[str, ...] = ()
    lines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    is_loaded: bool = False

    def add_seconds(self, stage: str, seconds: float) -> None:
        """Add to the time of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    def describe_input(self, module: ModuleOp) -> None:
        """Read from the imported graph what the final IR does not show."""
        from ..passes.analysis.library_calls import decomposed_attention

        self.products = list(decomposed_attention(module))

    def describe(self, module: ModuleOp, program: Program) -> None:
        """Read launches and ATen calls from the final IR."""
        from ..dialects import host, kernel
        from ..dialects.aten import AtenOp, CallOp, TensorType
        from ..dialects.machine import targets_of
        from ..dialects.raw import ops_of
        from ..passes.analysis.library_calls import library_calls
        from ..passes.analysis.region_calls import functions_by_name, runs_functions
        from ..passes.analysis.sizes import Sizes
        from .printing.locations import source_lines

        self.products += library_calls(module, targets_of(module).main)
        launches: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        once: Counter[str] = Counter()
        lines: dict[str, dict[str, None]] = {}
        functions = functions_by_name(module)
        for function in module.ops:
            if isinstance(function, kernel.FuncOp):
                lines[function.sym_name.data] = dict.fromkeys(source_lines(function.location))
            if not isinstance(function, host.FuncOp):
                continue
            kept = function.kept is not None
            for op in ops_of(function.body.block):
                if isinstance(op, host.LaunchOp):
                    (once if kept else launches)[op.kernel.root_reference.data] += 1
                elif isinstance(op, AtenOp) or (isinstance(op, CallOp) and not runs_functions(op, functions)):
                    (once if kept else calls)[name := _called(op)] += 1
                    lines.setdefault(name, {}).update(dict.fromkeys(source_lines(op.location)))
            types = function.function_type.outputs.data if kept else ()
            self.kept_bytes += sum(Sizes().bytes(type_) for type_ in types if isinstance(type_, TensorType))
        for function in module.ops:
            if isinstance(function, kernel.FuncOp) and function.sym_name.data not in once:
                launches.setdefault(function.sym_name.data, 0)
        self.kernels, self.aten_calls, self.once = dict(launches), dict(calls), dict(once)
        self.lines = {name: tuple(found) for name, found in lines.items() if found}
        self.sources = program.sources

    def __str__(self) -> str:
        calls = ", ".join(f"{name} x{count}" for name, count in self.aten_calls.items()) or "none"
        failures = f"left out, because they failed: {', '.join(self.failures)}; " if self.failures else ""
        kept = f"{sum(self.once.values())} run once, {self.kept_bytes} bytes kept; " if self.once else ""
        loaded = "loaded from the cache; " if self.is_loaded else ""
        launches, kernels = sum(self.kernels.values()), len(self.kernels)
        return (
            f"{self.kind}: {loaded}{launches} launch{'es' * (launches != 1)} of "
            f"{kernels} kernel{'s' * (kernels != 1)}; "
            f"ATen calls: {calls}; {kept}{failures}{sum(self.seconds.values()):.3f} s"
        )


def _called(op: AtenOp | CallOp) -> str:
    """The name of an op, with the library that runs it where the IR chose one."""
    from xdsl.dialects.builtin import StringAttr

    from ..dialects.aten import CallOp
    from ..passes.common.implementations import IMPLEMENTATION

    library = op.attributes.get(IMPLEMENTATION)
    name = op.shown if isinstance(op, CallOp) else op.target
    return f"{name} by {library.data}" if isinstance(library, StringAttr) else name


#: reports of the graphs compiled in this process, newest last, for `inductile.explain` and tests
REPORTS: list[GraphReport] = []
_KEPT_REPORTS = 1024


def keep_report(report: GraphReport) -> None:
    """Remember a report; the oldest ones are dropped."""
    REPORTS.append(report)
    del REPORTS[:-_KEPT_REPORTS]
