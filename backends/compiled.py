"""A compiled graph and what is known about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lowering.fx_import import ResultSlot
from .graph_report import REPORTS, GraphReport, keep_report
from .runnable import RunnableGraph

if TYPE_CHECKING:
    from ..lowering.fx_import import ImportedGraph
    from .targets import Program

__all__ = ["REPORTS", "CompiledGraph", "GraphReport", "keep_report"]


class CompiledGraph(RunnableGraph):
    """The program of an imported graph."""

    def __init__(
        self, program: Program, imported: ImportedGraph, report: GraphReport, region: str = "", nvtx: bool = False
    ) -> None:
        outputs = None
        if not imported.returns_results():
            slots = imported.output_structure
            outputs = tuple((True, o.number) if type(o) is ResultSlot else (False, o) for o in slots)
        super().__init__(program, imported.constants, imported.arrangements, outputs, report, region, nvtx)
