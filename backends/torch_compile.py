"""`torch.compile(model, backend="inductile")`: from Dynamo's graph to compiled forward and backward."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch

from .config import Config
from .graph_cache.front import GraphSession, through_cache
from .registration import withdraw

# the compiler is imported where it is needed: a graph from the cache needs none

CompiledFunction = Callable[..., Any]


class InductileBackend:
    """The object behind the entry point `inductile` in `torch_dynamo_backends`.

    Calling it compiles one Dynamo graph; `mode` and `options` are those of torch.compile (see `list_options`).
    """

    __name__ = "inductile"

    def __call__(
        self,
        graph: torch.fx.GraphModule,
        example_inputs: Sequence[Any],
        *,
        mode: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> CompiledFunction:
        """A callable that computes what `graph` computes.

        Raises UserError for a wrong mode or option, PassError for a bug of ours unless `on_error="eager"`.
        """
        config = Config.resolve(mode, options)
        with no_garbage_collection():
            return through_cache(graph, example_inputs, config, compile_afresh)

    def reset(self) -> None:
        """Called by `torch._dynamo.reset()`: drops recorded graphs. The disk cache stays."""
        recording = sys.modules.get(f"{__package__}.graphs.recording")
        if recording is not None:
            recording.reset_recordings()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Hold the collector: one full collection with torch loaded costs more than a whole compile."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def compile_afresh(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], config: Config, session: GraphSession | None = None
) -> CompiledFunction:
    """Compile a Dynamo graph; a session of the cache keeps what comes of it."""
    from .compile_graph import compile_graph
    from .graphs.recording import Recording, hint_of_tuning
    from .host.gpu import is_gpu

    if any(isinstance(each, torch.Tensor) and is_gpu(each.device.type) for each in inputs):
        from .triton.prepare import prepare

        prepare(inputs)
    recording = Recording(config) if config.cudagraphs else None
    hint_of_tuning(config)

    def compile_aten(kind: str, functional: torch.fx.GraphModule, examples: Sequence[Any]) -> CompiledFunction:
        return compile_graph(functional, examples, config, kind, recording)

    return compile_dynamo_graph(graph, inputs, config, compile_aten, session)


def compile_dynamo_graph(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    config: Config,
    compile_aten: Callable[..., CompiledFunction],
    session: GraphSession | None = None,
) -> CompiledFunction:
    """Take one Dynamo graph through the pre-grad passes and AOTAutograd.

    compile_aten: called with the kind ("forward", "backward" or "inference"), a graph of ATen ops and its inputs
    session:      keeps what comes of it
    """
    from ..lowering.fx_pre_grad import with_adapters
    from ..lowering.fx_private import aot_backend
    from ..lowering.fx_strides import eager_strides
    from .partition import partition_joint
    from .pre_grad import watched_pre_grad

    adapters = watched_pre_grad(graph, inputs, config)
    if adapters and session is not None:
        session.refuse("its inputs are changed in each call")
    kept = (lambda compiler: compiler) if session is None else session.compiler
    backend = aot_backend(
        forward=kept(partial(compile_aten, "forward")),
        backward=kept(partial(compile_aten, "backward")),
        inference=kept(partial(compile_aten, "inference")),
        decompositions=lambda: chosen_decompositions(config),
        partition=partial(partition_joint, config=config),
    )
    with eager_strides(inputs), nullcontext() if session is None else session.asked_for(graph):
        compiled = backend(graph, inputs)
    return with_adapters(compiled, adapters)


def chosen_decompositions(config: Config) -> dict[Any, CompiledFunction]:
    """The table of decompositions for a configuration."""
    if config.fallback_by_default:
        return {}
    from ..lowering.fx_decompositions import decompositions

    chosen = decompositions()
    if not config.fallback_random:
        from ..lowering.fx_random import random_decompositions

        chosen |= random_decompositions()
    return chosen


BACKEND = InductileBackend()
"""The one of this process."""


def __getattr__(name: str) -> Any:
    """`inductile`, which is what the entry point names: torch is about to enter it in its registry."""
    if name != "inductile":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    withdraw()
    return BACKEND
