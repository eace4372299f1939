"""Which level passes work on, which one a module is at, and what to say where they do not meet.

A pass for another level finds nothing to do and says nothing. That is right inside a pipeline, whose passes are safe on
whatever comes; for somebody who runs one pass it is a riddle.
"""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import UserError
from ..passes.manager import Instrumentation

#: level -> how far down the road it is; kernels and the program around them come into being together
STAGES = {"aten": 0, "loop": 1, "kernel": 2, "host": 2}
_NAMES = ("aten", "loop", "kernel and host")
_ENTERED_BY = ("", "lower-aten-to-loop", "lower-loop-to-kernel")


def stages_of_pass(module_pass: ModulePass) -> tuple[int, int] | None:
    """The stages of what a pass takes and of what it leaves; None for one that does not say or is for any level."""
    takes, arrow, leaves = str(getattr(module_pass, "level", "")).partition("->")
    before = _stage(takes)
    after = _stage(leaves) if arrow else before
    return None if before is None or after is None else (before, after)


def check_level(module_pass: type[ModulePass]) -> None:
    """Raises UserError for a pass whose `level` names no level."""
    text = str(getattr(module_pass, "level", ""))
    words = [word.strip() for word in text.replace("->", "+").split("+")]
    for word in words if text else ():
        if word not in STAGES:
            hint = f"write one of {', '.join(STAGES)}, or `aten -> loop` for a lowering"
            raise UserError(f"the level {text!r} of the pass {module_pass.name!r} is none", hint)


def _stage(levels: str) -> int | None:
    found = [STAGES.get(level.strip()) for level in levels.split("+")]
    return found[0] if len(set(found)) == 1 else None


def stages_of_module(module: ModuleOp) -> set[int]:
    """The stages that a module has ops of; none for an empty one, or one of scalar ops alone."""
    found = {STAGES.get(op.name.partition(".")[0]) for op in module.walk()}
    return {stage for stage in found if stage is not None}


def remedy(takes: int, actual: int) -> str:
    """How a pass of one stage gets to see IR of it, where the IR is at another."""
    if takes < actual:
        return f"run it before {_ENTERED_BY[takes + 1]}, on {_NAMES[takes]} IR"
    return f"lower the IR first, as `--pipeline default --stop-after {_ENTERED_BY[takes]}` does"


def mismatch(module_pass: ModulePass, actual: int) -> tuple[str, str] | None:
    """What is wrong, and what to do, where a pass meets IR of a stage; None when it is the pass's own."""
    stages = stages_of_pass(module_pass)
    if stages is None or stages[0] == actual:
        return None
    takes = stages[0]
    return (
        f"pass {module_pass.name!r} works on {_NAMES[takes]} IR and finds nothing in {_NAMES[actual]} IR",
        remedy(takes, actual),
    )


class LevelWarning(Instrumentation):
    """Warns on standard error, once, of a pass that meets a module without an op of its level.

    What a lowering of the same run has left is not questioned: a module of nothing but ATen calls is at the level
    `loop` without a nest.
    """

    def __init__(self) -> None:
        self._lowered_to = -1
        self._warned = False

    def before_pass(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        """See whether the pass and the module meet."""
        stages = stages_of_pass(module_pass)
        if stages is None or self._warned:
            return
        takes, leaves = stages
        present = stages_of_module(module)
        if present and takes not in present | {self._lowered_to}:
            found = mismatch(module_pass, max(present))
            self._warned = found is not None
            if found is not None:
                print(f"warning: {found[0]}; {found[1]}", file=sys.stderr)
        if leaves != takes:
            self._lowered_to = leaves
