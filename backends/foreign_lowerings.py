"""Lowerings that somebody has registered with TorchInductor: not used here, of which a warning tells."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from ..passes.remarks import remark

_told: set[str] = set()


def tell_of_foreign_lowerings(graph: torch.fx.GraphModule) -> None:
    """Warn once of each op of a graph that has one, and remark on it. Uses the tables of `torch._inductor.lowering`."""
    tables = sys.modules.get("torch._inductor.lowering")
    found = list(_foreign(graph, tables)) if tables is not None else []
    for name in found:
        remark("missed", "import", None, f"the lowering of {name} that is registered with TorchInductor is not used")
    fresh = [name for name in found if name not in _told]
    _told.update(fresh)
    if fresh:
        warnings.warn(
            f"inductile does not use lowerings that are registered with TorchInductor, here of {', '.join(fresh)}: "
            "each op is called as it is; an entry point 'inductile.lowerings' gives it kernels",
            stacklevel=2,
        )


def _foreign(graph: torch.fx.GraphModule, tables: Any) -> Iterator[str]:
    """Names of the ops of a graph whose lowering is not one of torch's own.

    Python's operators, of sizes, are no ops: torch 2.11 has entries for them that are not of its modules.
    """
    calls = (node.target for node in graph.graph.nodes if node.op == "call_function")
    targets = dict.fromkeys(target for target in calls if isinstance(target, torch._ops.OperatorBase))
    for target in targets:
        for table in (getattr(tables, "user_lowerings", {}), tables.lowerings):
            made_in = getattr(table.get(target), "__module__", None) or "torch"
            if made_in.partition(".")[0] != "torch":
                yield str(target)
                break
