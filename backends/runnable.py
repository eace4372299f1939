"""A compiled graph as AOTAutograd calls it. Light to import: graphs from the cache load nothing of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .graph_cache.private import OutputCode, is_bundled
from .graph_report import GraphReport
from .host.allocations import is_recorded
from .host.executable import HostProgram
from .host.regions import PROFILER, Region

if TYPE_CHECKING:
    from ..lowering.fx_arrangements import Arrangement
    from .targets import Program

Outputs = tuple[tuple[bool, Any], ...]
"""For each output of a graph whether it is a result of the program, and its number or else the constant that it is."""


class RunnableGraph(OutputCode):
    """Callable with the boxed convention: takes one list of inputs, clears it, returns the outputs.

    constants:    tensors that the program takes behind the inputs
    arrangements: layouts that inputs have to come in
    outputs:      None where they are the results of the program, in order
    """

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __init__(
        self,
        program: Program,
        constants: Sequence[Any],
        arrangements: Sequence[Arrangement],
        outputs: Outputs | None,
        report: GraphReport,
        region: str = "",
        nvtx: bool = False,
    ) -> None:
        # of the instance: torch wraps backward graphs in functions, which get a copy of its dictionary
        self._boxed_call = True
        self.program = program
        self.report = report
        self.constants = constants
        # a frame of Python costs a microsecond or two when the caches hold a kernel's data instead
        self._run: Callable[[list[Any]], Sequence[Any]] = getattr(program, "run", program)
        self._run_recorded = program.run_recorded if isinstance(program, HostProgram) and program.recorded else None
        self.region, self.nvtx = region, nvtx
        self.arrangements = arrangements
        self.outputs = outputs
        self._arrange: Callable[[Sequence[Any]], Any] = tuple if outputs is None else self._arrange_outputs

    def __call__(self, args: list[Any]) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run on real inputs."""
        for each in self.arrangements:
            if args[each.position].stride() != each.strides:
                args[each.position] = each.of(args[each.position])
        if self.constants:
            args.extend(self.constants)
        if PROFILER._is_profiler_enabled or self.nvtx:
            return self._arrange(self._run_watched(args))
        if self._run_recorded is not None and is_recorded():
            return self._arrange(self._run_recorded()(args))
        return self._arrange(self._run(args))

    def __reduce__(self) -> tuple[Any, ...]:
        """As data; raises NotCacheableError for what cannot be. Copying it for that is what AOTAutograd does too."""
        from .graph_cache.freeze import freeze
        from .graph_cache.thaw import StoredGraph

        return StoredGraph, (freeze(self, embed=is_bundled()),)

    def prepare_for_serialization(self) -> None:
        """Nothing: what is pickled is data, see `__reduce__`."""

    def post_compile(self, *_: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nothing: it runs."""

    def _arrange_outputs(self, results: Sequence[Any]) -> tuple[Any, ...]:
        assert self.outputs is not None
        return tuple([results[each] if is_result else each for is_result, each in self.outputs])

    def _run_watched(self, args: list[Any]) -> Sequence[Any]:
        """The same as regions of a profile."""
        run = self.program.run_watched(self.nvtx) if isinstance(self.program, HostProgram) else self._run
        with Region(self.region, self.nvtx):
            return run(args)
