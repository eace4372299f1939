"""Regions in profiles: the call of a compiled graph, and inside of it each launch with the user's lines.

While nothing profiles, a call costs one look at a flag more. Else a second text of the program runs, in which launches
are regions: of `torch.profiler`, of `torch.autograd.profiler.emit_nvtx`, and with the option `nvtx` always of NVTX.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import profiler as PROFILER

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

_MOST_LINES = 3
"""Lines of the user's that the name of a region has."""


class Region:
    """A region of a profile: `with Region("add_0, model.py:12"): ...`."""

    def __init__(self, name: str, nvtx: bool = False) -> None:
        self._name = name
        self._nvtx = nvtx
        self._record: Any = None

    def __enter__(self) -> None:
        if PROFILER._is_profiler_enabled:
            self._record = PROFILER.record_function(self._name)
            self._record.__enter__()
        if self._nvtx:
            torch.cuda.nvtx.range_push(self._name)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._nvtx:
            torch.cuda.nvtx.range_pop()
        if self._record is not None:
            self._record.__exit__(kind, error, traceback)
            self._record = None


def region_name(what: str, locations: Iterable[Attribute]) -> str:
    """A name with the user's lines: `add_0, model.py:12`."""
    from ...passes.remarks import format_location

    lines = dict.fromkeys(text.rpartition("/")[2] for each in locations if (text := format_location(each)))
    return ", ".join([what, *list(lines)[:_MOST_LINES]])


def graph_region(kind: str, module: ModuleOp) -> str:
    """The name of the region of a graph: what it is, and where it begins."""
    from ...dialects import host
    from ...passes.remarks import format_location

    function = next(op for op in module.ops if isinstance(op, host.FuncOp))
    located = (op.location for op in function.body.block.ops if format_location(op.location))
    return region_name(f"inductile {kind}", [each for each, _ in zip(located, range(1), strict=False)])
