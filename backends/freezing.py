"""The option `freezing`: which arguments of a graph are frozen, and why a graph is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import torch
from torch._dynamo.utils import counters
from xdsl.dialects.func import FuncOp

from ..dialects.aten import TensorType
from ..lowering.fx_import import ImportedGraph
from ..passes.analysis.functions import first_function
from ..passes.analysis.kept import mark_frozen
from ..passes.analysis.memory import Mutations
from ..passes.remarks import remark
from .config import Config
from .graphs import private

PASS = "freezing"
"""The name under which remarks are made."""
_hints = private.hint_logger(__name__)


def with_freezing(config: Config, kind: str) -> Config:
    """A configuration whose `freezing` says whether weights of a graph of a kind are frozen. Says why they are not."""
    freezes = config.freezing
    reason = _objection(config, kind) if freezes else None
    if reason is not None:
        counters["inductile"]["graphs whose weights are not frozen"] += 1
        remark("missed", PASS, None, f"the weights of the {kind} graph are not frozen: {reason}")
        _hints.warning("the weights of the %s graph are not frozen: %s", kind, reason)
    return dataclasses.replace(config, freezing=freezes and reason is None)


def _objection(config: Config, kind: str) -> str | None:
    """Why the weights of a graph of a kind are not frozen although that is asked for."""
    if kind != "inference":
        return "gradients are asked for; run it under torch.no_grad() or torch.inference_mode()"
    if config.cudagraphs and not config.graph_partition:
        return "CUDA graphs record it as a whole (option graph_partition)"
    return None


def freeze(imported: ImportedGraph, graph: torch.fx.GraphModule) -> None:
    """Mark the parameters and buffers of an inference graph that it does not write, and its constants, as frozen.

    An argument that each call has to copy into other strides is another tensor in each call.
    """
    function = first_function(imported.module)
    arguments = function.body.block.args
    own = len(arguments) - len(imported.constants)
    moved = {each.position for each in imported.arrangements}
    mark_frozen(
        function, _markable(function, private.static_inputs(graph, "inference"), moved, range(own, len(arguments)))
    )


def _markable(function: FuncOp, static: Sequence[int], moved: Collection[int], constants: Sequence[int]) -> list[int]:
    arguments, mutations = function.body.block.args, Mutations(function.body.block)
    return [
        number
        for number in (*static, *constants)
        if number not in moved
        and isinstance(arguments[number].type, TensorType)
        and not mutations.writes_to(arguments[number])
    ]
