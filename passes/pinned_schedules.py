"""Tells of passes that do not keep a pinned schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .manager import Instrumentation

if TYPE_CHECKING:
    from .kernel.pinned import Schedules


class PinnedSchedules(Instrumentation):
    """A remark, `missed`, where a pass changed the loops of a nest that is pinned."""

    def __init__(self) -> None:
        self._before: Schedules = {}

    @override
    def before_pass(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        from .kernel.pinned import pinned_schedules

        self._before = pinned_schedules(module)

    @override
    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        from .kernel.pinned import remark_changes

        if self._before and module_pass.name != "kernel-apply-schedule":
            remark_changes(self._before, module, module_pass.name)
