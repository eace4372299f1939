"""A compiled graph that is replayed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..config import Config
from ..host.regions import PROFILER, Region
from . import private

#: torch's channel for what keeps a program from being fast: TORCH_LOGS=perf_hints
hints = private.hint_logger(__name__)

#: options that torch's machinery reads when it records or replays
_OF_TORCH = (
    "cudagraph_unexpected_rerecord_limit", "cudagraph_support_input_mutation", "cudagraph_dynamic_shape_warn_limit",
    "cudagraph_capture_sizes", "force_cudagraph_sync", "force_cudagraphs_warmup", "skip_cudagraph_warmup",
    "slow_path_cudagraph_asserts", "fast_path_cudagraph_asserts", "cudagraph_trees_generation_cloning",
    "cudagraph_trees_history_recording", "cudagraph_trees_objgraph",
)  # fmt: skip


class Recorded:
    """A compiled graph that is recorded once for each choice of its integer inputs, and replayed.

    Raises what kernels have reported in earlier calls: a replay runs none of the Python code that looks for it.
    """

    def __init__(
        self,
        compiled: Callable[[list[Any]], Any],
        static: Sequence[int],
        facts: dict[str, Any],
        config: Config,
        checks: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._boxed_call = True
        self._compiled = compiled
        self._static = tuple(static)
        self._facts = facts
        self._region = f"{getattr(compiled, 'region', 'inductile part')}, recorded"
        self._nvtx = config.nvtx
        self._trees = config.cudagraph_trees
        self._limit = config.cudagraph_dynamic_shape_limit
        default = Config()
        self._settings = {name: v for name in _OF_TORCH if (v := getattr(config, name)) != getattr(default, name)}
        self._checks = tuple(checks)
        self._sizes: set[tuple[int, ...]] = set()
        self._told = False
        self._integers: list[int] | None = None
        self._threads = threading.local()

    def __call__(self, args: list[Any]) -> Any:
        """Run on a list of inputs, which is cleared."""
        for check in self._checks:
            check()
        if PROFILER._is_profiler_enabled or self._nvtx:
            with Region(self._region, self._nvtx):
                return self._replay(args)
        return self._replay(args)

    def _replay(self, args: list[Any]) -> Any:
        if not self._admits(args):
            return self._compiled(args)
        run = getattr(self._threads, "run", None)
        if run is None:
            run = self._threads.run = self._record(args)
        if not self._settings:
            return run(args)
        with private.settings(self._settings):
            return run(args)

    def _record(self, args: list[Any]) -> Callable[[list[Any]], Any]:
        if self._trees:
            return private.record_in_tree(self._compiled, args, self._static, **self._facts)
        return private.record_alone(self._compiled, args, self._static)

    def _admits(self, args: list[Any]) -> bool:
        """Whether inputs of these sizes are recorded, or may still be."""
        if self._integers is None:
            self._integers = [k for k, each in enumerate(args) if isinstance(each, int)]
        if not self._integers:
            return True
        sizes = tuple([args[k] for k in self._integers])
        if sizes in self._sizes:
            return True
        if self._limit is not None and len(self._sizes) >= self._limit:
            if self._limit >= 0 and not self._told:
                self._told = True
                hints.warning(
                    "a graph was recorded for %d sizes; for others it is launched kernel by kernel "
                    "(option triton.cudagraph_dynamic_shape_limit)",
                    len(self._sizes),
                )
            return False
        self._sizes.add(sizes)
        return True
