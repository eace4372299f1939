"""Torch's compiler bisector over inductile: the rewrites of each level are subsystems, counted by debug counters.

    inductile.debug.bisect(run)   # run() compiles with backend="inductile", and says whether all is well

Uses `torch._inductor.compiler_bisector`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..lowering.pre_grad import PRE_GRAD
from ..lowering.registry import available_passes, pass_class
from ..passes.counters import Counter, counting

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

NAME = "inductile"
SETTINGS = {"fallback_random": True, "emulate_precision_casts": True}
"""Options that may explain a difference by themselves."""
_LEVELS = ("host", "kernel", "loop", "lower", "graph")
SUBSYSTEMS = tuple(f"{level}_rewrites" for level in (*_LEVELS, "pre_grad", "other"))
"""From the last level to the first: what one refuses, those behind it never see."""


def subsystem_of(counter: str) -> str:
    """The subsystem of a counter, whose name begins with its pass; a pass of a plugin says its level."""
    if counter in PRE_GRAD:
        return "pre_grad_rewrites"
    level = counter.partition("-")[0]
    return f"{level if level in _LEVELS else _level_of_plugin(counter)}_rewrites"


def _level_of_plugin(counter: str) -> str:
    """The level of the registered pass with whose name a counter begins, in the words of the subsystems."""
    owners = [name for name in available_passes() if f"{counter}-".startswith(f"{name}-")]
    if not owners:
        return "other"
    text = str(getattr(pass_class(max(owners, key=len)), "level", ""))
    level = "lower" if "->" in text else text.partition("+")[0].strip()
    level = "graph" if level == "aten" else level
    return level if level in _LEVELS else "other"


def is_refused(module_pass: ModulePass, stage: int | None) -> bool:
    """Whether the bisector leaves out a pass that the user inserts, before IR of a stage of `lowering.levels`.

    Passes of plugins need not ask a counter, so that the whole pass is a rewrite of its level, in front of its own.
    """
    bisector = _active()
    if bisector is None:
        return False
    level = "other" if stage is None else ("graph", "loop", "kernel")[stage]
    said = f"the inserted pass {module_pass.name}"
    return bisector.disable_subsystem(NAME, f"{level}_rewrites", lambda: said)


def bisect(function: Callable[[], bool]) -> Any:
    """Find the backend of torch, or the level and the one rewrite of inductile, that makes `function` answer False.

    `function` calls `torch.compiler.reset()`, compiles with `torch.compile(..., backend="inductile")`, compares, and
    returns whether all is well. It is called with other backends and with rewrites switched off. Returns torch's
    `BisectionResult`, whose `debug_info` names the counter and the number of the rewrite; None where all is well.
    """
    from torch._inductor import compiler_bisector as torchs

    before = dict(torchs.BACKENDS)
    changes = [torchs.ConfigChange(NAME, name, value) for name, value in SETTINGS.items()]
    ours = [*changes, *map(torchs.BisectSubsystem, SUBSYSTEMS)]
    last = {"inductor": torchs.BACKENDS.pop("inductor")}
    try:
        torchs.BACKENDS.update({NAME: ours, **last})
        return torchs.CompilerBisector.do_bisect(function)
    finally:
        torchs.BACKENDS.clear()
        torchs.BACKENDS.update(before)


def _active() -> Any:
    """The bisector, while it bisects inductile."""
    loaded = sys.modules.get("torch._inductor.compiler_bisector")
    bisector = getattr(loaded, "CompilerBisector", None)
    if bisector is None or not bisector.bisection_enabled or bisector.get_backend() != NAME:
        return None
    return bisector


def is_at_work() -> bool:
    """Whether torch's bisector is bisecting inductile."""
    return _active() is not None


def settings() -> dict[str, Any]:
    """Options that the bisector wants in this run."""
    bisector = _active()
    return {} if bisector is None else bisector.get_config_change(NAME) or {}


@contextmanager
def bisected() -> Iterator[None]:
    """Inside, the bisector is asked before each rewrite, where it is at work."""
    bisector = _active()
    if bisector is None:
        yield
        return
    with counting(_Asking(bisector)):
        yield


class _Asking(dict[str, Counter]):
    """Counters that ask the bisector."""

    def __init__(self, bisector: Any) -> None:
        super().__init__()
        self.bisector = bisector

    def __bool__(self) -> bool:
        """Counters are at work, though none was asked yet: what depends on them must not come from a cache."""
        return True

    def setdefault(self, name: str, default: Counter | None = None) -> Counter:  # pyright: ignore
        if name not in self:
            self[name] = _Asked(name, self.bisector)
        return self[name]


class _Asked(Counter):
    def __init__(self, name: str, bisector: Any) -> None:
        super().__init__()
        self.name = name
        self.bisector = bisector

    def ask(self) -> bool:
        self.asked += 1
        said = f"{self.name}, number {self.asked} of its graph"
        answer = not self.bisector.disable_subsystem(NAME, subsystem_of(self.name), lambda: said)
        self.allowed += answer
        return answer
