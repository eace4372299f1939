"""What recording needs of torch beyond its public API, in one place; read in torch 2.11 to 2.14.

The machinery is torch's: `torch._inductor.cudagraph_trees` owns the pool of memory, warms up, records, checks what is
alive and where inputs lie, and records again when that changes.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

Boxed = Callable[[list[Any]], Any]


def hint_logger(name: str) -> logging.Logger:
    """The logger of a module for torch's artifact `perf_hints`. Uses `torch._logging.getArtifactLogger`."""
    from torch._logging._internal import getArtifactLogger

    return getArtifactLogger(name, "perf_hints")


def record_in_tree(model: Boxed, inputs: Sequence[Any], static: Sequence[int], **facts: Any) -> Boxed:
    """A callable that records `model` and replays it. `facts` that this torch does not know are left out.

    Uses `torch._inductor.cudagraph_trees.cudagraphify_impl` and the signature of `cudagraphify` behind it.
    """
    from torch._inductor import cudagraph_trees

    given = {name: value for name, value in facts.items() if takes(name)}
    return cudagraph_trees.cudagraphify_impl(model, list(inputs), static, **given)


def takes(fact: str) -> bool:
    """Whether this torch's trees take a fact. Uses the signature of `torch._inductor.cudagraph_trees.cudagraphify`."""
    from torch._inductor import cudagraph_trees

    return fact in inspect.signature(cudagraph_trees.cudagraphify).parameters


def visible_outputs(graph: torch.fx.GraphModule, kind: str) -> tuple[int, ...]:
    """Positions of the outputs that the caller of the user's function gets, of a forward graph without what it saves.

    Uses `torch._guards.TracingContext.fw_metadata`.
    """
    from torch._guards import TracingContext

    (output,) = graph.graph.find_nodes(op="output")
    count, first = len(output.args[0]), 0
    metadata = getattr(TracingContext.try_get(), "fw_metadata", None)
    if kind == "forward" and metadata is not None:
        first, count = metadata.num_mutated_inp_runtime_indices, metadata.num_outputs
    taken = output.args[0][first : first + count] if kind != "backward" else ()
    return tuple(k for k, value in enumerate(taken, first) if isinstance(value, torch.fx.Node))


def record_alone(model: Boxed, inputs: Sequence[Any], static: Sequence[int]) -> Boxed:
    """The same with a pool of its own. Random numbers of the run that prepares it are not drawn.

    Uses `torch._inductor.compile_fx.cudagraphify_impl` and `torch._dynamo.utils.preserve_rng_state`.
    """
    from torch._dynamo.utils import preserve_rng_state
    from torch._inductor.compile_fx import cudagraphify_impl

    with preserve_rng_state():
        return cudagraphify_impl(model, list(inputs), static)  # pyright: ignore[reportArgumentType]


def announce_backward(device: int) -> None:
    """Say that a backward graph runs, recorded or not, behind a recorded forward graph on a device.

    Uses `torch._inductor.cudagraph_trees.get_manager`.
    """
    from torch._inductor.cudagraph_trees import get_manager

    manager = get_manager(device, create_if_none_exists=False)
    if manager is not None:
        manager.set_to_running_backward()


def reset_trees() -> None:
    """Drop all recordings. Uses `torch._inductor.cudagraph_trees.reset_cudagraph_trees`."""
    from torch._inductor.cudagraph_trees import reset_cudagraph_trees

    reset_cudagraph_trees()


def settings(changed: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """A context in which torch's machinery has other options of the group `triton`, as far as it has them.

    Uses `torch._inductor.config`.
    """
    from torch._inductor import config

    known = {f"triton.{name}": value for name, value in changed.items() if hasattr(config.triton, name)}
    return config.patch(known)


def static_inputs(graph: torch.fx.GraphModule, kind: str) -> list[int]:
    """Positions of the inputs that keep their address: parameters, buffers, what `mark_static_address` names.

    Of a backward graph what a recorded forward graph saved, which lies where that was recorded. Uses
    `torch._guards.TracingContext.fw_metadata.static_input_indices` and the names of AOTAutograd.
    """
    placeholders = graph.graph.find_nodes(op="placeholder")
    if kind == "backward":
        from ...lowering.fx_private import is_tangent

        return [k for k, node in enumerate(placeholders) if not is_tangent(node) and "bwd_rng_state" not in node.name]
    from torch._guards import TracingContext

    metadata = getattr(TracingContext.try_get(), "fw_metadata", None)
    return [k for k in getattr(metadata, "static_input_indices", None) or () if k < len(placeholders)]


def input_sources(graph: torch.fx.GraphModule) -> list[Any]:
    """Where Dynamo found each input that AOTAutograd will make of its graph, None where that is not known.

    They are what the graph holds itself, and its placeholders. Uses `_param_name_to_source` of the graph,
    `_dynamo_source` of its nodes, both of Dynamo's graphs alone.
    """
    known = getattr(graph, "_param_name_to_source", None) or {}
    own = [*graph.named_parameters(remove_duplicate=False), *graph.named_buffers(remove_duplicate=False)]
    placeholders = graph.graph.find_nodes(op="placeholder")
    return [known.get(name) for name, _ in own] + [getattr(node, "_dynamo_source", None) for node in placeholders]


def remove_guards(sources: Collection[Any]) -> None:
    """Let Dynamo look no more at what it found at some places, in the function that it compiles.

    Uses `torch._guards.TracingContext.guards_context.dynamo_guards`, and `torch._dynamo.source.is_from_source`.
    """
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    if context is not None:
        for source in sources:
            context.guards_context.dynamo_guards.remove_guards_with_source(source)


def overlapping_inputs(graph: torch.fx.GraphModule, static: Collection[int]) -> list[int]:
    """Positions of the inputs that torch's machinery cannot copy, for their elements share memory; not the static ones.

    Uses `torch._inductor.compile_fx.complex_memory_overlap`, which torch has as long as that is so.
    """
    from torch._inductor import compile_fx

    overlaps = getattr(compile_fx, "complex_memory_overlap", None)
    if overlaps is None:
        return []
    values = [node.meta.get("val") for node in graph.graph.find_nodes(op="placeholder")]
    return [k for k, v in enumerate(values) if k not in static and isinstance(v, torch.Tensor) and overlaps(v)]


def names_of(graph: torch.fx.GraphModule, positions: Sequence[int]) -> frozenset[str]:
    """Names of inputs of a forward graph, which AOTAutograd gives to the same inputs of the backward graph."""
    placeholders = graph.graph.find_nodes(op="placeholder")
    return frozenset(placeholders[k].name for k in positions)


def unknown_placeholder(name: str) -> Any:
    """What torch's messages say of an input that is none of the graph. Uses `cudagraph_utils.PlaceholderInfo`."""
    from torch._inductor.cudagraph_utils import PlaceholderInfo

    return PlaceholderInfo(name=name, stack_trace=None, users=[], mutating_use_stack_trace=None)


def compile_id() -> Any:
    """Which compilation this is, as torch's logs name it. Uses `torch._guards.CompileContext`."""
    from torch._guards import CompileContext

    return CompileContext.current_compile_id()


def placeholder_facts(graph: torch.fx.GraphModule) -> Sequence[Any]:
    """What torch's messages say of inputs. Uses `torch._inductor.cudagraph_utils.get_placeholder_info`."""
    from torch._inductor.cudagraph_utils import get_placeholder_info

    return get_placeholder_info(graph.graph)


def output_traces(graph: torch.fx.GraphModule) -> list[str | None]:
    """Where each output was made, for torch's message about one that a later call has overwritten."""
    (output,) = graph.graph.find_nodes(op="output")
    values = output.args[0] if isinstance(output.args[0], tuple | list) else output.args
    return [value.stack_trace if isinstance(value, torch.fx.Node) else None for value in values]
