"""What somebody has registered with TorchInductor for operators: not used here, of which a warning tells."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..passes.remarks import remark

_told: set[str] = set()
_OF_TORCH = {"aten", "prims", "inductor_prims", "_c10d_functional", "higher_order"}
"""Namespaces whose in-place forms TorchInductor has itself."""


def tell_of_foreign_lowerings(graph: torch.fx.GraphModule) -> None:
    """Warn once of each op of a graph that has a lowering or an in-place form there, and remark on it.

    Uses the tables of `torch._inductor.lowering` and `torch._inductor.fx_passes.reinplace`.
    """
    targets = _targets(graph)
    tables = sys.modules.get("torch._inductor.lowering")
    if tables is not None:
        _tell("lowerings", _lowered(targets, tables), "an entry point 'inductile.lowerings' gives it kernels")
    pairs = sys.modules.get("torch._inductor.fx_passes.reinplace")
    if pairs is not None:
        remedy = "one that says `mutates_args` writes where its argument lies"
        _tell("in-place forms", _with_pairs(targets, pairs), remedy)


def _tell(what: str, found: Iterator[str], remedy: str) -> None:
    fresh: list[str] = []
    for name in found:
        remark("missed", "import", None, f"the {what[:-1]} of {name} that is registered with TorchInductor is not used")
        if f"{what} {name}" not in _told:
            _told.add(f"{what} {name}")
            fresh.append(name)
    if fresh:
        warnings.warn(
            f"inductile does not use {what} that are registered with TorchInductor, here of {', '.join(fresh)}: "
            f"each op is called as it is; {remedy}",
            stacklevel=3,
        )


def _targets(graph: torch.fx.GraphModule) -> Sequence[Any]:
    """The operators of a graph. Python's, of sizes, are none: torch 2.11 has lowerings of them that are not its own."""
    calls = (node.target for node in graph.graph.nodes if node.op == "call_function")
    return [*dict.fromkeys(target for target in calls if isinstance(target, torch._ops.OperatorBase))]


def _lowered(targets: Sequence[Any], tables: Any) -> Iterator[str]:
    """Names of the ops whose lowering is not one of torch's own."""
    for target in targets:
        for table in (getattr(tables, "user_lowerings", {}), tables.lowerings):
            made_in = getattr(table.get(target), "__module__", None) or "torch"
            if made_in.partition(".")[0] != "torch":
                yield str(target)
                break


def _with_pairs(targets: Sequence[Any], pairs: Any) -> Iterator[str]:
    """Names of the ops for which somebody has entered an op that writes in place."""
    table = getattr(pairs, "inplaceable_ops", {})
    return (
        str(target)
        for target in targets
        if target in table and getattr(target, "namespace", "higher_order") not in _OF_TORCH
    )
