"""What the cache of whole graphs needs of torch beyond its public API, in one place; read in torch 2.11 to 2.14.

AOTAutograd asks `AOTAutogradCache` for each graph whose compilers are `SerializableAOTDispatchCompiler`s. Two of its
functions are replaced by ones that ask a `Session` where a graph is ours, and torch's own where it is not.
"""

from __future__ import annotations

import copy
import dataclasses
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

import torch
from torch._dynamo import compiled_autograd
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import autograd_cache
from torch._functorch._aot_autograd.autograd_cache import AOTAutogradCache
from torch._functorch._aot_autograd.schemas import AOTAutogradCacheInfo, SerializableAOTDispatchCompiler
from torch._guards import TracingContext
from torch._inductor.output_code import OutputCode

__all__ = [
    "PREFIX", "GraphCompiler", "OutputCode", "Session", "add_guards", "aot_look_up", "as_serializable",
    "asking", "backed_symbols", "current_shape_env", "guards_hold", "guards_of", "is_bundled", "is_forced",
    "is_switched_off", "loaded_artifacts", "lost_guards", "precompile", "record", "with_cache_info",
    "without_given", "without_shape_guards",
]  # fmt: skip

PREFIX = "inductile-"
"""How the keys of our entries begin."""


class Session(Protocol):
    """The compilation of one Dynamo graph."""

    def try_load(self, module: Any, args: list[Any], aot_config: Any) -> tuple[Callable[..., Any] | None, Any]:
        """The compiled function, or None, and the configuration to go on with."""
        ...

    def save(self, key: str, entry: Any) -> None:
        """Keep what AOTAutograd made."""
        ...


class GraphCompiler(SerializableAOTDispatchCompiler):
    """A compiler for which AOTAutograd asks the cache; it keeps the session alive."""

    def __init__(self, compile_graph: Callable[[torch.fx.GraphModule, Sequence[Any]], Any], session: Session) -> None:
        super().__init__(OutputCode, compile_graph)  # pyright: ignore[reportArgumentType]
        self.session = session


_ASKING: ContextVar[tuple[Any, Session] | None] = ContextVar("inductile_graph_session", default=None)
"""The Dynamo graph that is being compiled, and its session. AOTAutograd does not say whose compilers ask."""


@contextmanager
def asking(graph: torch.fx.GraphModule, session: Session) -> Iterator[None]:
    """Inside, the session is asked for this graph, and no other."""
    install()
    token = _ASKING.set((graph, session))
    try:
        yield
    finally:
        _ASKING.reset(token)


_SESSIONS: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
"""Those that may have something to save, by their keys; a compiler of AOTAutograd's keeps each alive."""


def install() -> None:
    """Let torch's cache ask a session where the compiler has one. Once; other compilers notice nothing."""
    torch_load, torch_save = AOTAutogradCache.try_load, AOTAutogradCache.save
    if getattr(torch_load, "_is_of_inductile", False):
        return

    def try_load(mod: Any, args: list[Any], aot_config: Any, *rest: Any, **more: Any) -> Any:
        asked = _ASKING.get()
        if asked is None or asked[0] is not getattr(mod, "gm", mod):
            return torch_load(mod, args, aot_config, *rest, **more)
        compiled, changed = asked[1].try_load(mod, args, aot_config)
        # before torch 2.12 the configuration is changed in place
        return (compiled, changed) if _is_frozen(aot_config) else compiled

    def save(key: str, entry: Any, *rest: Any, **more: Any) -> None:
        session = _SESSIONS.get(key)
        if session is None:
            torch_save(key, entry, *rest, **more)
        else:
            session.save(key, entry)

    vars(try_load)["_is_of_inductile"] = True
    AOTAutogradCache.try_load = staticmethod(try_load)  # pyright: ignore[reportAttributeAccessIssue]
    AOTAutogradCache.save = staticmethod(save)  # pyright: ignore[reportAttributeAccessIssue]


def _is_frozen(aot_config: Any) -> bool:
    return type(aot_config).__dataclass_params__.frozen


def with_cache_info(aot_config: Any, key: str, session: Session) -> Any:
    """The configuration that lets AOTAutograd hand over what it makes, to the session, under a key.

    It is not asked for the guards, of which it leaves some out: see `guards_of`.
    """
    _SESSIONS[key] = session
    info = AOTAutogradCacheInfo(key, time.time_ns(), forward_symints=[])
    if _is_frozen(aot_config):
        return dataclasses.replace(aot_config, cache_info=info)
    aot_config.cache_info = info
    return aot_config


def is_switched_off() -> str:
    """Which of torch's switches forbids caches of graphs, or nothing."""
    from torch._inductor import config as inductor_config

    if torch.compiler.config.force_disable_caches:
        return "torch.compiler.config.force_disable_caches is set"
    if not functorch_config.enable_autograd_cache:
        return "torch._functorch.config.enable_autograd_cache is off"
    return "" if inductor_config.fx_graph_cache else "torch._inductor.config.fx_graph_cache is off"


def is_forced() -> bool:
    """Whether what is compiled has to be serializable: for `aot_compile` and for precompiled packages."""
    return bool(getattr(functorch_config, "force_autograd_cache", False)) or is_bundled()


def is_bundled() -> bool:
    """Whether entries hold their programs themselves. Uses `should_bundle_autograd_cache`."""
    return autograd_cache.should_bundle_autograd_cache()


def backed_symbols(args: Sequence[Any]) -> list[torch.SymInt]:
    """Integer inputs that have a value while they are traced. Uses `AOTAutogradCache._filter_backed_symints`."""
    return AOTAutogradCache._filter_backed_symints(args)


def guards_of(symbols: Sequence[torch.SymInt]) -> str | None:
    """What must hold of integer inputs, as an expression of `t0`, `t1`, ...: guards, ranges, and which are equal.

    None for nothing. Raises ValueError for a guard on one of them together with something else.
    `ShapeEnv.get_pruned_guards` would leave out those on symbols that were found equal to others since.
    """
    if not symbols:
        return None
    shape_env = _shape_env(symbols)
    known = set().union(*(symbol.node.expr.free_symbols for symbol in symbols))
    guards = []
    for guard in shape_env.guards:
        mentioned = shape_env.simplify(guard.expr).free_symbols
        if mentioned & known and mentioned - known:
            raise ValueError(f"a guard is on {', '.join(map(str, mentioned))}")
        if mentioned & known:
            guards.append(guard)
    return shape_env.produce_guards_expression(placeholders=symbols, guards=guards)


def current_shape_env() -> Any:
    """The ShapeEnv of the compile that runs, None without one. Uses `AOTAutogradCache._get_shape_env`."""
    return AOTAutogradCache._get_shape_env()


def guards_hold(expression: str | None, symbols: Sequence[torch.SymInt]) -> bool:
    """Whether such an expression holds for the values of integer inputs; adds no guard."""
    if not expression:
        return True
    hints = [symbol.node.hint for symbol in symbols]
    return bool(symbols) and bool(_shape_env(symbols).evaluate_guards_expression(expression, hints))


def add_guards(expression: str | None, symbols: Sequence[torch.SymInt]) -> None:
    """Let Dynamo guard what an entry relies on."""
    if expression:
        assert _shape_env(symbols).evaluate_guards_expression(expression, list(symbols))


def _shape_env(symbols: Sequence[torch.SymInt]) -> Any:
    return symbols[0].node.shape_env


def lost_guards() -> bool:
    """Whether AOTAutograd relies on which inputs share memory, as it found while tracing: entries do not say so.

    Uses `TracingContext.guards_context.aotautograd_guards`.
    """
    context = TracingContext.try_get()
    return context is not None and bool(context.guards_context.aotautograd_guards)


def without_shape_guards() -> str:
    """Why entries of this compile would not be found again by their guards, or nothing."""
    context = TracingContext.try_get()
    if context is None:
        return "it is not Dynamo that asks"
    if context.fakify_first_call:
        return "its first call decides about sizes"
    return "compiled autograd asks" if compiled_autograd.in_compiled_autograd_region else ""


def as_serializable(compiled: Callable[..., Any], entry: Callable[[], Any]) -> Any:
    """A compiled function that can say what it was made from. Uses `SerializableCompiledFunction`."""
    from torch._functorch._aot_autograd.runtime_wrappers import SerializableCompiledFunction

    return SerializableCompiledFunction(compiled, entry)


def aot_look_up(graph: torch.fx.GraphModule, inputs: Sequence[Any], session: Session) -> Callable[..., Any]:
    """The first part of AOTAutograd, which asks the session. What that raises comes through.

    Uses `torch._functorch.aot_autograd.aot_module_simplified`, without what surrounds it in Dynamo's `aot_autograd`,
    which loads much of Inductor to find that nothing is to be logged.
    """
    from torch._functorch.aot_autograd import aot_module_simplified

    compiler = GraphCompiler(_unreachable, session)
    with asking(graph, session):
        compiled = aot_module_simplified(
            graph,
            inputs,
            fw_compiler=compiler,
            bw_compiler=compiler,
            inference_compiler=compiler,
            decompositions={},
            keep_inference_input_mutations=True,
        )
    return torch._dynamo.disable(compiled, reason="do not trace AOT-compiled graph")


def _unreachable(*_: Any) -> Any:
    raise AssertionError("a look-up compiles nothing")


def record(key: str, content: bytes) -> None:
    """Let `torch.compiler.save_cache_artifacts` have an entry.

    As one of AOTAutograd's cache, which `load_cache_artifacts` writes into torch's folder: a kind of ours would be
    unknown to a process that has not imported this package yet, and all other artifacts would be lost with it.
    """
    from torch.compiler._cache import CacheArtifactManager

    CacheArtifactManager.record_artifact("aot_autograd", key, content)


def loaded_artifacts(key: str) -> list[Path]:
    """Folders from that of torch's caches to where `load_cache_artifacts` has put entries of a key; empty for none."""
    place = Path(AOTAutogradCache._get_tmp_dir_for_key(key))
    return [place.parent.parent, place.parent, place] if place.is_dir() else []


def without_given(metadata: Any) -> tuple[Any, tuple[int, ...]]:
    """Metadata of a graph that says of no input of its backward graph that it is given away, and those that were.

    Uses `ViewAndMutationMeta.bw_donated_idxs`, by which AOTAutograd refuses to keep a graph.
    """
    given = tuple(getattr(metadata, "bw_donated_idxs", None) or ())
    if given:
        metadata = copy.copy(metadata)
        metadata.bw_donated_idxs = []
    return metadata, given


def precompile(entry: Any) -> None:
    """Let `torch._dynamo.config.caching_precompile` have an entry. Uses `PrecompileContext`."""
    from torch._dynamo.precompile_context import PrecompileContext
    from torch._functorch._aot_autograd.aot_autograd_result import BundledAOTAutogradCacheArtifact

    name = entry.sanitized_aot_config.precompile_backend_id
    if is_bundled() and name is not None:
        entry.sanitized_aot_config.precompile_backend_id = None
        PrecompileContext.record_artifact(BundledAOTAutogradCacheArtifact(name, entry))
