"""What people see of a graph through torch's own switches: logs, structured trace, debug folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects import kernel
from ..passes.manager import Instrumentation
from ..passes.printing import module_text
from ..passes.remarks import Remark
from ..records import dataclass
from . import torch_logs, torch_trace
from .compiled import GraphReport
from .debug_files import write_diagram, write_output_code

if TYPE_CHECKING:
    import torch

    from .trace import Trace


@dataclass(frozen=True)
class View:
    """One thing to see.

    artifact: its name in TORCH_LOGS, one of `torch_logs.STAGES`
    record:   its name in torch's structured trace; one that tlparse does not know is an artifact there
    file:     its name in torch's debug folder, nothing where it has none
    before:   the pass in front of which the IR is this
    """

    artifact: str
    record: str
    file: str = ""
    before: str = ""

    def __post_init__(self) -> None:
        if self.artifact not in torch_logs.STAGES:  # else a graph from the cache would not be shown under that name
            raise ValueError(f"torch_logs.STAGES lacks {self.artifact}")


PRE_GRAD = View("pre_grad_graphs", "inductor_pre_grad_graph")
GRAPH = View("post_grad_graphs", "inductor_post_grad_graph", "fx_graph_readable.py")
TRANSFORMED = View("post_grad_graphs", "graph_transformed", "fx_graph_transformed.mlir", "lower-aten-to-loop")
PRE_FUSION = View("ir_pre_fusion", "ir_pre_fusion", "ir_pre_fusion.txt", "loop-fuse")
POST_FUSION = View("ir_post_fusion", "ir_post_fusion", "ir_post_fusion.txt", "lower-loop-to-kernel")
SCHEDULE = View("schedule", "schedule", "schedule.txt")
CODE = View("output_code", "inductor_output_code")
KERNELS = View("kernel_code", "kernel_code")
_KNOWN_TO_TLPARSE = {"inductor_pre_grad_graph", "inductor_post_grad_graph", "inductor_output_code"}


@dataclass
class Observer(Instrumentation):
    """Looks at the compile of one graph of a kind, for whoever asked torch for it.

    trace:   the folder of the graph, where torch's debug folder is what it lies in
    diagram: whether a picture of the final program goes there too
    """

    kind: str
    trace: Trace | None = None
    diagram: bool = False
    stages: tuple[View, ...] = field(init=False)

    def __post_init__(self) -> None:
        torch_logs.enter()
        self.stages = tuple(each for each in (TRANSFORMED, PRE_FUSION, POST_FUSION) if self.is_wanted(each))

    def is_wanted(self, view: View) -> bool:
        """Whether anybody looks at something."""
        in_folder = self.trace is not None and bool(view.file)
        return in_folder or torch_logs.shows(view.artifact) or torch_trace.is_traced()

    @property
    def wants_remarks(self) -> bool:
        """Whether anybody reads remarks."""
        return torch_logs.wants_remarks() or torch_trace.is_traced()

    def show(self, view: View, text: Callable[[], str], name: str = "") -> None:
        """Let everybody see it who asked; `name` tells several of a graph apart."""
        if not self.is_wanted(view):
            return
        said = text()
        if torch_logs.shows(view.artifact):
            torch_logs.show(view.artifact, f"{self.kind} graph, {name or view.record}", said)
        if self.trace is not None and view.file:
            self.trace.write(view.file, said + "\n")
        if not torch_trace.is_traced():
            return
        if view.record in _KNOWN_TO_TLPARSE:
            torch_trace.record(view.record, {"filename": f"{self.kind}.py"} if view is CODE else {}, said)
        else:
            torch_trace.record_artifact(f"{self.kind}_{view.record}{name and f'_{name}'}", said)

    def before_pass(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        """Show the IR in front of the passes that end a stage."""
        for view in self.stages:
            if view.before == module_pass.name:
                self.show(view, lambda: module_text(module))

    def show_graph(self, graph: torch.fx.GraphModule) -> None:
        """Show what is compiled."""
        self.show(GRAPH, lambda: graph.print_readable(print_output=False, include_stride=True, include_device=True))

    def show_program(self, module: ModuleOp, sources: Mapping[str, str]) -> None:
        """Show what came of it: the final IR, and its code."""
        self.show(SCHEDULE, lambda: module_text(module))
        self.show(CODE, lambda: "\n\n".join(f"# {name}\n{text.rstrip()}" for name, text in sources.items()))
        if self.is_wanted(KERNELS):
            self._show_kernels(module, sources)
        if self.trace is not None:
            write_output_code(self.trace, module, sources)
            if self.diagram:
                write_diagram(self.trace, module)

    def _show_kernels(self, module: ModuleOp, sources: Mapping[str, str]) -> None:
        from .report.data import kernel_code  # a compile that nobody watches loads nothing of reports

        for each in module.ops:
            if isinstance(each, kernel.FuncOp) and (code := kernel_code(each.sym_name.data, sources)):
                self.show(KERNELS, lambda code=code: code, each.sym_name.data)

    def show_remarks(self, remarks: Sequence[Remark]) -> None:
        """Show what passes say."""
        if torch_logs.wants_remarks():
            torch_logs.log_remarks(self.kind, remarks)
        if torch_trace.is_traced() and remarks:
            torch_trace.record_artifact(f"{self.kind}_remarks", "\n".join(map(str, remarks)))

    def show_times(self, report: GraphReport) -> None:
        """Show what took how long."""
        if torch_trace.is_traced():
            torch_trace.record_artifact(f"{self.kind}_times", {k: round(s, 6) for k, s in report.seconds.items()})
