"""`TORCHDYNAMO_REPRO_AFTER=aot`: files that reproduce a failing or wrong graph, with torch's levels.

    1, 2  a graph that fails to compile or to run   3  every graph   4  a graph whose answer differs from eager's

Torch's own scripts for this switch name TorchInductor's compiler; here it is a `.mlir` file with the inputs beside it,
which `inductile-opt --run-reproducer`, `inductile-bisect --run-reproducer` and `inductile-reduce` take.
TORCHDYNAMO_REPRO_AFTER=dynamo is torch's alone, whose minifier runs any backend. Uses `torch._dynamo.config`,
`torch._dynamo.debug_utils` and `torch._dynamo.utils.same`.
"""

from __future__ import annotations

import copy
import itertools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from xdsl.passes import ModulePass

from ..errors import replay_command
from ..lowering.fx_import import ImportedGraph
from ..lowering.reproducer import store_reproducer
from ..passes.printing import module_text
from ..records import dataclass
from .config import Config

log = logging.getLogger(__name__)
_numbers = itertools.count()

Boxed = Callable[[list[Any]], Any]
ALWAYS, ACCURACY = 3, 4


def repro_level() -> int | None:
    """The level where reproducers of functional graphs are asked for."""
    from torch._dynamo import config

    return config.repro_level if config.repro_after == "aot" else None


@dataclass
class Reproducer:
    """Writes the file of one graph, at most once.

    load:  imports the graph
    eager: runs it, op by op
    """

    graph: torch.fx.GraphModule
    kind: str
    config: Config
    load: Callable[[], ImportedGraph]
    passes: Callable[[], Sequence[ModulePass]]
    eager: Boxed
    level: int
    path: str = ""

    def write(self, reason: Exception, inputs: Sequence[Any] = ()) -> str:
        """Write the graph, its passes, and the inputs where there are any; the path of the file."""
        if self.path:
            return self.path
        from torch._dynamo.debug_utils import minifier_dir

        from .arrays import save_array

        imported = self.load()
        self.path = str(Path(minifier_dir()) / f"inductile-{self.kind}-{next(_numbers)}.mlir")
        text = module_text(imported.module, locations=True)
        checks = self.config.verify_each or ("numerics" if self.level >= ALWAYS else None)
        store_reproducer(self.path, text, self.passes(), reason, self.config.debug_counter or None, checks)
        folder = Path(f"{self.path}.inputs")
        for number, value in enumerate([*inputs, *imported.constants] if inputs else ()):
            folder.mkdir(exist_ok=True)
            save_array(folder / f"{number}.npy", value)
        log.warning("%s graph: %s; replay it with: %s", self.kind, reason, replay_command(self.path))
        return self.path

    def try_to_write(self, reason: Exception, inputs: Sequence[Any] = ()) -> None:
        """The same where something has failed already, which is what matters."""
        try:
            self.write(reason, inputs)
        except Exception as failure:
            log.warning("no reproducer was written: %s", failure)

    def wrap(self, compiled: Boxed) -> Boxed:
        """The compiled graph, watched."""
        return _Watched(compiled, self)


class _Watched:
    """A compiled graph that keeps its inputs until it has run; at level 4 compared with eager in its first call."""

    def __init__(self, compiled: Boxed, reproducer: Reproducer) -> None:
        self._boxed_call = True
        self._compiled = compiled
        self._reproducer = reproducer
        self._called = False

    def __call__(self, args: list[Any]) -> Any:
        first, self._called = not self._called, True
        reproducer = self._reproducer
        kept, drawn = _copies(args), _random_states() if first and reproducer.level == ACCURACY else []
        if first and reproducer.level == ALWAYS:
            reproducer.try_to_write(RuntimeError("every graph is kept"), kept)
        try:
            results = self._compiled(args)
        except Exception as error:
            reproducer.try_to_write(error, kept)
            raise
        if drawn:
            with torch.random.fork_rng():
                self._compare(results, kept, drawn)
        return results

    def _compare(self, results: Any, kept: list[Any], drawn: list[torch.Tensor]) -> None:
        from torch._dynamo import config
        from torch._dynamo.debug_utils import AccuracyError, cast_to_fp64
        from torch._dynamo.utils import same

        _set_random_states(drawn)
        reference = self._reproducer.eager(_copies(kept))
        wide = None
        if config.same_two_models_use_fp64:
            try:
                _set_random_states(drawn)
                model, inputs = cast_to_fp64(copy.deepcopy(self._reproducer.graph), _copies(kept))
                wide = model(*inputs)
            except Exception:
                log.warning("no answer in float64 to compare with")
        answers = [_tensors(each) for each in (reference, results, wide)]
        limits = {"tol": config.repro_tolerance, "ignore_non_fp": config.repro_ignore_non_fp}
        alike = same(answers[0], answers[1], answers[2] or None, equal_nan=True, **limits)
        if not alike:
            error = AccuracyError("Bad accuracy detected.")
            self._reproducer.try_to_write(error, kept)
            vars(error)["minifier_path"] = self._reproducer.path
            raise error


def _copies(values: Sequence[Any]) -> list[Any]:
    """Copies in the same strides; what is no tensor stays."""
    with torch.no_grad():
        return [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in values]


def _random_states() -> list[torch.Tensor]:
    """States of the generators: the CPU's, then those of the GPUs."""
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else ())]


def _set_random_states(states: Sequence[torch.Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])


def _tensors(results: Any) -> list[torch.Tensor]:
    return [each for each in results or () if isinstance(each, torch.Tensor)]
