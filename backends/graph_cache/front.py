"""The way through the cache: a graph is looked up before the compiler is imported, else compiled and kept."""

from __future__ import annotations

import copy
import dataclasses
import logging
import os
import pickle
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch._dynamo.utils import counters

from ...lowering.pre_grad import pre_grad_names
from ...machines import is_described
from .. import torch_bisector
from ..c_like.cache import digest
from ..config import names_of
from ..torch_logs import is_read
from . import private
from .artifact import pack, unpack
from .entry import PostponedModule, StoredBackward, StoredForward
from .identity import identity_lines
from .key import NotCacheableError, key_lines, process_text
from .overrides import changed_operator
from .pickling import dumps
from .store import Store, discard, is_own, own_store, read_bytes

if TYPE_CHECKING:
    from ..config import Config

log = logging.getLogger(__name__)

PASS = "graph-cache"
"""The name under which remarks are made."""
SWITCH = "INDUCTILE_GRAPH_CACHE"
OFF = "it is switched off"
"""Why most graphs are not cached; nothing tells of it."""
Compiled: TypeAlias = Callable[..., Any]
CompileAfresh: TypeAlias = "Callable[[torch.fx.GraphModule, Sequence[Any], Config, GraphSession | None], Compiled]"


def through_cache(
    graph: torch.fx.GraphModule, inputs: Sequence[Any], config: Config, compile_afresh: CompileAfresh
) -> Compiled:
    """The compiled function of a Dynamo graph, from the cache or by `compile_afresh`, which takes the session too."""
    reason = why_not(config) or not_described(inputs)
    if reason and not private.is_forced():
        if reason != OFF:
            _bypassed(reason)
        return compile_afresh(graph, inputs, config, None)
    # what torch keeps itself, with the programs inside, is none of our entries
    looks_up = not (reason or private.is_bundled())
    session = GraphSession(config, config.key() if looks_up else "")
    if looks_up and _SETTLES in pre_grad_names(config.pre_grad) and _SETTLES not in names_of(config.disabled_passes):
        _settle(graph)
    loaded = session.look_up(graph, inputs) if looks_up else None
    return compile_afresh(graph, inputs, config, session) if loaded is None else loaded


_SETTLES = "settle-numbers"
"""The pass whose work decides what graph is looked up: with open numbers none is."""


def _settle(graph: torch.fx.GraphModule) -> None:
    """What that pass does, before the compiler is imported; its guards hold for a hit too.

    Dynamo traces the frame again then, without inputs for these numbers: torch asks for it otherwise in the middle of
    AOTAutograd, where a first graph has been traced in vain that no entry can stand for.
    """
    if not any(isinstance(node.meta.get("example_value"), torch.SymFloat) for node in graph.graph.nodes):
        return
    from ...lowering.fx_private import trace_again_with_constants
    from ...lowering.fx_settled import settle

    settled, remarks = settle(graph), _remarks()
    if remarks is not None:
        for each in settled:
            remarks.remark("passed", _SETTLES, None, f"{each.node} is {each.number}")
    trace_again_with_constants([each.symbol for each in settled if each.symbol is not None])


def why_not(config: Config) -> str:
    """Why no graph of a configuration is cached, or nothing."""
    if not (config.cache_graphs and config.cache) or os.environ.get(SWITCH, "1").lower() in ("0", "off", "false"):
        return OFF
    if switch := private.is_switched_off():
        return switch
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    watching = [name for name in ("watch", "verify_each", "debug_counter") if values[name]]
    watching += [name for name, value in values.items() if name.startswith("trace") and value]
    watching += [name for name in ("INDUCTILE_TRACE", "INDUCTILE_WATCH", "TORCH_COMPILE_DEBUG") if os.environ.get(name)]
    if watching:
        return f"somebody watches: {', '.join(watching)}"
    if _active_counters():
        return "debug counters are active"
    if is_read():
        return "somebody reads logs of the compile"
    if torch_bisector.is_at_work() or torch._dynamo.config.repro_after == "aot":
        return "torch's bisector or minifier is at work"
    if config.unnamed_functions():
        return "an option is a function"
    if config.cudagraphs:
        return "graphs are recorded"
    if config.freezing:
        return "weights are frozen"
    return private.without_shape_guards()


def not_described(inputs: Sequence[Any]) -> str:
    """Why no graph with these inputs is cached, or nothing: no kernels are made for a device."""
    devices = {each.device.type for each in inputs if isinstance(each, torch.Tensor)} - {"meta"}
    others = sorted(device for device in devices if not is_described(device))
    return f"inputs are on {', '.join(others)}" if others else ""


def _active_counters() -> bool:
    module = sys.modules.get(f"{__package__.partition('.')[0]}.passes.counters") if __package__ else None
    return module is not None and bool(module.active())


def _remarks() -> Any:
    """The module of remarks where somebody collects them; it is not loaded else."""
    module = sys.modules.get(f"{__package__.partition('.')[0]}.passes.remarks") if __package__ else None
    return module if module is not None and module.enabled() else None


def _bypassed(reason: str) -> None:
    counters["inductile"]["graphs that the cache does not take"] += 1
    counters["inductile"][f"not cached: {reason}"] += 1
    log.info("not cached: %s", reason)
    if (remarks := _remarks()) is not None:
        remarks.remark("analysis", PASS, None, f"the graph is not cached: {reason}")


class _Missed(BaseException):
    """Leaves AOTAutograd before it traces. No Exception: nothing has failed."""


class GraphSession:
    """The compilation of one Dynamo graph: the look-up, then what AOTAutograd makes, to be kept.

    options: text of the configuration for the key; "" where nothing is looked up, and the key is of no other's use
    """

    def __init__(self, config: Config, options: str) -> None:
        self._options = options
        self._key: str | None = None if options else f"{private.PREFIX}{uuid.uuid4().hex}"
        self._store: Store | None = own_store() if options else None
        self._looks_up = False
        self._process: list[str] = []
        self._refused = ""
        self._live: dict[str, Any] = {}
        self._symbols: list[torch.SymInt] = []
        self._fakes: list[Any] = []
        """The inputs of the look-up: torch makes them once for as long as they live, and the compile needs them too."""

    def look_up(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Compiled | None:
        """The function from the cache, None where it is not there; then the key is known."""
        if self._store is None:
            return None
        if any(isinstance(each, list | tuple | dict) for each in inputs):
            _bypassed("its inputs are nested")
            return None
        self._looks_up = True
        try:
            loaded = private.aot_look_up(graph, inputs, self)
            for name in ("total", "ok"):  # what Dynamo's way into AOTAutograd counts
                counters["aot_autograd"][name] += 1
            self._fakes = []
            return loaded
        except _Missed:
            return None
        except Exception:  # the compile that follows raises it again, and tells
            log.debug("the look-up failed", exc_info=True)
        finally:
            self._looks_up = False
        return None

    def asked_for(self, graph: torch.fx.GraphModule) -> AbstractContextManager[None]:
        """A context in which AOTAutograd asks this session about a graph."""
        return private.asking(graph, self)

    def try_load(self, module: Any, args: list[Any], aot_config: Any) -> tuple[Compiled | None, Any]:
        """What AOTAutograd calls before it traces: twice, with the look-up, and with the compile behind it."""
        if self._looks_up:
            loaded = self._load(module, args, aot_config)
            if loaded is None:
                raise _Missed
            return loaded, aot_config
        self._symbols, self._fakes = private.backed_symbols(args), []
        return None, aot_config if self._key is None else private.with_cache_info(aot_config, self._key, self)

    def _load(self, module: Any, args: list[Any], aot_config: Any) -> Compiled | None:
        started, self._fakes = time.perf_counter(), list(args)
        try:
            self._key = self._key_of(module, args, aot_config)
        except NotCacheableError as error:
            _bypassed(str(error))
            return None
        log.debug("key %s after %.4f s", self._key, time.perf_counter() - started)
        symbols = private.backed_symbols(args)
        assert self._store is not None
        for path, content in self._contents(self._key):
            try:
                entry = _unpickled(content)
                if not private.guards_hold(entry.guards_expr, symbols):
                    continue
                if (remarks := _remarks()) is not None:
                    reason = "the cache has this graph; it is compiled again, for the remarks of passes"
                    remarks.remark("analysis", PASS, None, reason)
                    return None
                return self._revived(entry, content, args, symbols, aot_config)
            except Exception as error:
                log.debug("an entry does not load", exc_info=True)
                discard(path, f"{type(error).__name__}: {error}")
        counters["aot_autograd"]["autograd_cache_miss"] += 1
        counters["inductile"]["graphs that the cache does not have"] += 1
        return None

    def _contents(self, key: str) -> Iterator[tuple[Path, bytes]]:
        """Entries of a key: in our folder, and those that artifacts have brought, which go there."""
        assert self._store is not None
        yield from self._store.contents(key)
        folders = private.loaded_artifacts(key)
        if folders and all(map(is_own, folders)):
            for path in sorted(folders[-1].iterdir()):
                content = None if path.name.startswith(".") else _unpacked(path)
                if content is not None:
                    self._store.write(key, content)
                    path.unlink()
                    yield path, content

    def _key_of(self, module: torch.fx.GraphModule, args: Sequence[Any], aot_config: Any) -> str:
        return private.PREFIX + digest("\n".join(self._lines_of(module, args, aot_config)).encode())

    def _lines_of(self, module: torch.fx.GraphModule, args: Sequence[Any], aot_config: Any) -> list[str]:
        devices = {str(each.device) for each in args if isinstance(each, torch.Tensor)}
        self._process = list(process_text())
        return [
            *identity_lines(devices),
            self._options,
            *key_lines(module, args, aot_config, private.current_shape_env()),
        ]

    def _revived(
        self, entry: Any, content: bytes, args: list[Any], symbols: Sequence[torch.SymInt], aot_config: Any
    ) -> Compiled:
        expression, entry.guards_expr = entry.guards_expr, None
        with without_modes():
            compiled = entry.wrap_post_compile(args, aot_config, {})
        private.add_guards(expression, symbols)
        assert self._key is not None
        self._record(self._key, entry, content)
        counters["aot_autograd"]["autograd_cache_hit"] += 1
        counters["inductile"]["graphs from the cache"] += 1
        log.info("from the cache: %s", self._key)
        return private.as_serializable(compiled, lambda: _unpickled(content))

    def compiler(self, compile_graph: Compiled) -> private.GraphCompiler:
        """A compiler whose graphs the session keeps."""

        def compile_and_note(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
            compiled = compile_graph(graph, inputs)
            self._note(compiled)
            return compiled

        return private.GraphCompiler(compile_and_note, self)

    def _note(self, compiled: Any) -> None:
        if private.lost_guards():
            self.refuse("it relies on which inputs share memory")
        if isinstance(compiled, private.OutputCode):
            number = f"{private.PREFIX}{len(self._live)}"
            self._live[number] = compiled
            compiled._fx_graph_cache_key = number
            compiled._fx_graph_cache_debug_lines = []
        elif not self._refused:  # AOTAutograd will not ask to save it
            self.refuse("torch runs a part of it in eager")
            _bypassed(self._refused)

    def refuse(self, reason: str) -> None:
        """Keep nothing of this graph."""
        self._refused = self._refused or reason

    def save(self, key: str, entry: Any) -> None:
        """What AOTAutograd calls when all graphs are compiled. The program runs also where it cannot be kept."""
        try:
            self._save(key, entry)
        except Exception as error:
            if private.is_forced():
                raise
            counters["aot_autograd"]["autograd_cache_bypass"] += 1
            expected = isinstance(error, NotCacheableError)
            log.log(logging.DEBUG if expected else logging.WARNING, "a graph is not kept", exc_info=True)
            _bypassed(str(error))

    def _save(self, key: str, entry: Any) -> None:
        with without_modes():
            content, kept = self._content(entry)
        if self._store is not None:
            if self._process != list(process_text()) or changed_operator():  # a backward graph is compiled later
                raise NotCacheableError("switches of torch have changed while it was compiled")
            self._store.write(key, content)
            counters["aot_autograd"]["autograd_cache_saved"] += 1
            log.info("kept %d bytes as %s", len(content), key)
        self._record(key, kept, content)

    def _record(self, key: str, entry: Any, content: bytes) -> None:
        """Let artifacts and precompiled packages have an entry."""
        graphs = [half.result for half in (entry.compiled_fw, entry.compiled_bw) if isinstance(half, StoredForward)]
        if self._store is not None and graphs:
            kernels = {each.key: each.symbol for graph in graphs for each in graph.data.kernels.values()}
            private.record(key, pack(content, kernels))
        private.precompile(entry)

    def _content(self, entry: Any) -> tuple[bytes, Any]:
        """An entry as data, and pickled."""
        if self._refused:
            raise NotCacheableError(self._refused)
        failed = [name for each in self._live.values() for name in each.report.failures]
        if failed:
            raise NotCacheableError(f"passes failed: {', '.join(failed)}")
        entry.guards_expr = private.guards_of(self._symbols)
        if private.is_bundled():
            entry.pre_save()  # the caller pickles it too
            return pickle.dumps(entry), entry
        stored = copy.copy(entry)
        stored.compiled_fw = StoredForward(self._data_of(entry.compiled_fw))
        if entry.compiled_bw is not None:
            backward = entry.compiled_bw
            stored.runtime_metadata, given = private.without_given(entry.runtime_metadata)
            stored.compiled_bw = StoredBackward(
                self._data_of(backward), backward.backward_state_indices, backward.num_symints_saved_for_bw_, given
            )
        if entry.serialized_bw_module is not None:
            stored.serialized_bw_module = PostponedModule(entry.serialized_bw_module)
        for name in ("aot_joint_graph_str", "aot_forward_graph_str", "aot_backward_graph_str", "min_cut_info_str"):
            setattr(stored, name, None)
        return dumps(stored), stored

    def _data_of(self, half: Any) -> Any:
        return copy.copy(self._live[half.fx_graph_cache_info[0]])


def _unpacked(path: Path) -> bytes | None:
    """The content of an artifact; None, with a warning, for one that is damaged or somebody else's."""
    artifact = read_bytes(path)
    try:
        return None if artifact is None else unpack(artifact)
    except (ValueError, KeyError) as error:
        discard(path, str(error))
        return None


def _unpickled(content: bytes) -> Any:
    with without_modes():
        return pickle.loads(content)


def without_modes() -> Any:
    """Run on real tensors inside a compile."""
    from ...lowering.fx_private import without_modes as outside

    return outside()
