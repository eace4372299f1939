"""What somebody has registered for operators with TorchInductor, or with us in vain: a warning tells, here and on hits.

Light to import, as graphs from the cache are.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from .. import extensions

_told: set[str] = set()
_OF_TORCH = {"aten", "prims", "inductor_prims", "_c10d_functional", "higher_order"}
"""Namespaces whose in-place forms TorchInductor has itself."""


def operators_of(graph: torch.fx.GraphModule) -> tuple[str, ...]:
    """Names of the operators of a graph, with those that functionalization has wrapped.

    Python's, of sizes, are none: torch 2.11 has lowerings of them that are not its own.
    """
    calls = [node for node in graph.graph.nodes if node.op == "call_function"]
    targets = dict.fromkeys(each for node in calls for each in (node.target, *node.args[:1]) if callable(each))
    return tuple(dict.fromkeys(str(each) for each in targets if isinstance(each, torch._ops.OperatorBase)))


def tell_of_foreign_lowerings(operators: Sequence[str]) -> None:
    """Warn once of each of these operators that has a lowering or an in-place form which is not used, and remark on it.

    Uses the tables of `torch._inductor.lowering` and `torch._inductor.fx_passes.reinplace`.
    """
    tables = sys.modules.get("torch._inductor.lowering")
    if tables is not None:
        remedy = "each op is called as it is; an entry point 'inductile.lowerings' gives it kernels"
        _tell("lowering", _THEIRS, _lowered(tables).intersection(operators), remedy)
    pairs = sys.modules.get("torch._inductor.fx_passes.reinplace")
    if pairs is not None:
        remedy = "each op is called as it is; one that says `mutates_args` writes where its argument lies"
        _tell("in-place form", _THEIRS, _with_pairs(pairs).intersection(operators), remedy)
    remedy = "it only makes values; give one to an operator that returns what this one writes, and copy that"
    _tell("lowering", "for what writes to its arguments", _writing().intersection(operators), remedy)


_THEIRS = "that is registered with TorchInductor"


def _tell(what: str, which: str, found: set[str], remedy: str) -> None:
    if not found:
        return
    from ..passes.remarks import remark  # of the compiler

    for name in sorted(found):
        remark("missed", "import", None, f"the {what} of {name} {which} is not used", suggestion=remedy)
    fresh = [name for name in sorted(found) if f"{what} {which} {name}" not in _told]
    _told.update(f"{what} {which} {name}" for name in fresh)
    if fresh:
        warnings.warn(f"inductile does not use the {what} {which}, here of {', '.join(fresh)}: {remedy}", stacklevel=3)


def _lowered(tables: Any) -> set[str]:
    """Names of the ops whose lowering is not one of torch's own."""
    return {
        str(target)
        for table in (getattr(tables, "user_lowerings", {}), tables.lowerings)
        for target, lowering in table.items()
        if isinstance(target, torch._ops.OperatorBase) and not _is_of_torch(lowering)
    }


def _is_of_torch(function: Any) -> bool:
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = function.func  # its own module is always `functools`
    made_in = getattr(function, "__module__", None) or "torch"
    return made_in.partition(".")[0] == "torch"


def _with_pairs(pairs: Any) -> set[str]:
    """Names of the ops for which somebody has entered an op that writes in place."""
    table = getattr(pairs, "inplaceable_ops", {})
    return {str(target) for target in table if getattr(target, "namespace", "higher_order") not in _OF_TORCH}


def _writing() -> set[str]:
    """Names of the ops that write to their arguments and have a lowering of ours, from a name or a package.

    A name is not looked at where it is registered: the operator may come later.
    """
    found: set[str] = set()
    for name in extensions.table("inductile.lowerings"):
        qualified, _, overload = str(name).partition(".")
        try:
            schema = torch._C._get_schema(qualified, "" if overload == "default" else overload)
        except RuntimeError:  # a rule of ours, `aten.name.overload`, or an operator that is not there
            continue
        if schema.is_mutable:
            found.add(f"{qualified.replace('::', '.')}.{overload or 'default'}")
    return found
