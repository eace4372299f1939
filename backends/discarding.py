"""The option `freezing_discard_parameters`: weights that a program reads no more are released.

Where a frozen weight only goes to kept functions, their results are all that calls need. In the first call, once these
are there, the tensor gives up its memory and becomes a `DiscardedWeight`, wherever the module, a tied layer or a user
holds it: who uses it then gets an error that names it. What a program reads itself stays as it is.

Calls pass discarded weights on, and their results are found by which tensors these are. Dynamo's guards on them go, as
the class of each changes; whether a weight that was put into a place has the size that the program was compiled for is
looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument

from ..dialects import host
from ..passes.analysis.functions import called
from ..passes.analysis.kept import is_kept_call
from ..passes.remarks import remark
from .config import Config
from .graphs import private
from .host.discarded import Discards
from .host.executable import HostProgram

PASS = "freezing-discard-parameters"
"""The name under which remarks are made."""

_SOURCES: ContextVar[Sequence[Any]] = ContextVar("inductile_sources", default=())


@contextmanager
def sources_of(graph: torch.fx.GraphModule) -> Iterator[None]:
    """Inside, what Dynamo knows of where the inputs of a graph come from is known to what compiles it."""
    token = _SOURCES.set(private.input_sources(graph))
    try:
        yield
    finally:
        _SOURCES.reset(token)


def discard_weights(module: ModuleOp, program: HostProgram, graph: torch.fx.GraphModule, config: Config) -> None:
    """Let the first call of a program discard weights, where the option asks for it.

    module:  the program's IR
    graph:   the functional graph that it was compiled from
    """
    if not (config.freezing and config.freezing_discard_parameters):
        return
    if config.cudagraphs:
        remark("missed", PASS, None, "weights are not discarded: recordings look at where they lie")
        return
    sources = _SOURCES.get()
    if len(sources) != len(graph.graph.find_nodes(op="placeholder")):
        remark("missed", PASS, None, "weights are not discarded: it is not known where they come from")
        return
    static = {k for k in private.static_inputs(graph, "inference") if sources[k] is not None}
    found = _only_kept(module, static)
    for name, places in found.items():
        program.kept[name].discards = Discards({k: _name(sources[number]) for k, number in places.items()})
    numbers = {number for places in found.values() for number in places.values()}
    private.remove_guards([sources[number] for number in numbers])
    remark("passed", PASS, None, f"{len(numbers)} of {len(static)} weights are discarded by the first call")


def _name(source: Any) -> str:
    """What `named_parameters` calls what Dynamo found: `layer.weight` for `L['self']._modules['layer']...`."""
    text = source.name if isinstance(source.name, str) else source.name()  # a method until torch 2.11
    first, *names = re.findall(r"\['([^']+)'\]", text) or [text]
    return ".".join(names) or first


def _only_kept(module: ModuleOp, static: set[int]) -> dict[str, dict[int, int]]:
    """By name of a kept function the places of weights that nothing else takes, with their numbers in the program."""
    functions = [op for op in module.ops if isinstance(op, host.FuncOp)]
    inner = called(module)
    outer = next(function for function in functions if function.sym_name.data not in inner)
    found: dict[str, dict[int, int]] = {}
    for op in outer.body.block.ops:
        if isinstance(op, host.CallOp) and is_kept_call(op):
            places = {
                k: value.index
                for k, value in enumerate(op.arguments)
                if isinstance(value, BlockArgument) and value.index in static and _is_only_for(value, op)
            }
            if places:
                found[op.callee.string_value()] = places
    return found


def _is_only_for(value: BlockArgument, call: host.CallOp) -> bool:
    """Whether a call alone takes an argument; to let go of it is no use of it."""
    return all(use.operation is call or isinstance(use.operation, host.FreeOp) for use in value.uses)
