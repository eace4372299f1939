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
from .frame_stack import with_stack_room
from .graph_cache.front import GraphSession, through_cache
from .registration import withdraw
from .torch_bisector import bisected
from .torch_bisector import settings as bisector_settings
from .torch_settings import torch_settings

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
        config = Config.resolve(mode, {**(options or {}), **bisector_settings()}, torch_settings())
        with bisected():
            return self.compile(graph, example_inputs, config)

    @with_stack_room
    def compile(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any], config: Config) -> CompiledFunction:
        """The same for a configuration that has been resolved."""
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
    from ..lowering.fx_private import leave_arguments_unmarked
    from .compile_graph import compile_graph
    from .discarding import sources_of
    from .graphs.recording import Recording
    from .host.gpu import is_gpu

    if any(isinstance(each, torch.Tensor) and is_gpu(each.device.type) for each in inputs):
        from .triton.prepare import prepare

        prepare(inputs)
    recording = Recording(config) if config.cudagraphs else None

    def compile_aten(kind: str, functional: torch.fx.GraphModule, examples: Sequence[Any]) -> CompiledFunction:
        if kind == "forward":
            leave_arguments_unmarked(functional)
        return compile_graph(functional, examples, config, kind, recording)

    with sources_of(graph):
        return compile_dynamo_graph(graph, inputs, config, compile_aten, session)


class ChosenBackend:
    """What `inductile.backend(...)` makes: the backend with a mode and options, which have been checked."""

    __name__ = "inductile"

    def __init__(self, mode: str | None, options: Mapping[str, Any]) -> None:
        self.mode, self.options = mode, dict(options)
        from ..lowering.fx_decompositions import of_overloads

        of_overloads(Config.resolve(mode, options).decompositions)

    def __call__(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **arguments: Any
    ) -> CompiledFunction:
        """As `InductileBackend`; a mode or options that torch.compile hands over count too, and more."""
        options = {**self.options, **(arguments.get("options") or {})}
        return BACKEND(graph, example_inputs, mode=arguments.get("mode") or self.mode, options=options)

    def reset(self) -> None:
        """As `InductileBackend`."""
        BACKEND.reset()

    def __repr__(self) -> str:
        given = [repr(self.mode)] if self.mode else []
        return f"inductile.backend({', '.join([*given, f'options={self.options!r}'])})"


def backend(mode: str | None = None, *, options: Mapping[str, Any] | None = None, **more: Any) -> ChosenBackend:
    """A value for `torch.compile(..., backend=...)` whose mode and options are checked here and now.

        torch.compile(model, backend=inductile.backend(mode="max-autotune", emulate_precision_casts=True))

    With `backend="inductile"` torch keeps `mode` and `options` to itself until the first call. Names with a dot go into
    `options`. Raises UserError as `Config.resolve`.
    """
    return ChosenBackend(mode, {**(options or {}), **more})


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
    # which torch copies from the graph inside, and which would tell its minifier to call this with one list
    vars(compiled).pop("_boxed_call", None)
    return with_adapters(compiled, adapters)


def chosen_decompositions(config: Config) -> dict[Any, CompiledFunction]:
    """The table of decompositions for a configuration."""
    from ..lowering.fx_decompositions import decompositions, of_overloads
    from ..lowering.fx_quantised import quantised_decompositions

    if config.fallback_by_default:
        return of_overloads(config.decompositions)
    chosen = decompositions() | quantised_decompositions()
    if not config.fallback_random:
        from ..lowering.fx_random import random_decompositions

        chosen |= random_decompositions()
    return chosen | of_overloads(config.decompositions)


BACKEND = InductileBackend()
"""The one of this process."""


def __getattr__(name: str) -> Any:
    """`inductile`, which is what the entry point names: torch is about to enter it in its registry."""
    if name != "inductile":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    withdraw()
    return BACKEND
