"""Passes that treat each kernel by itself, and what they are told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...dialects.machine import targets_of
from ...dialects.sym import Ranges
from ...machines import Target
from ...records import dataclass
from ..analysis.launch_facts import LaunchFacts
from ..analysis.launches import LaunchSizes
from ..analysis.sizes import Sizes


@dataclass(frozen=True)
class KernelFacts:
    """What a module says of one of its kernels; `target` is the machine that it is for."""

    function: kernel.FuncOp
    target: Any
    _ranges: LaunchFacts
    _sizes: LaunchSizes

    @property
    def ranges(self) -> Ranges:
        """What is certain of its symbols in every launch."""
        return self._ranges.of(self.function)

    @property
    def sizes(self) -> Sizes:
        """What its symbols are likely to be."""
        return self._sizes.of(self.function)


def all_kernels(module: ModuleOp) -> list[tuple[kernel.FuncOp, Target]]:
    """Every kernel, with the machine that the module is for."""
    main = targets_of(module).main
    return [(op, main) for op in module.body.block.ops if isinstance(op, kernel.FuncOp)]


Selection = Callable[[ModuleOp], Iterable[tuple[kernel.FuncOp, Any]]]


class KernelPass(ModulePass):
    """A pass that calls `on_kernel` for each kernel that a function of `scheduled.py` selects.

    Programs are right without it, unless it says otherwise by `optional: ClassVar[bool] = False`.

        class KernelSplitLanes(KernelPass, kernels=tiled_for_cpu):
            name = "kernel-split-lanes"

            def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None: ...
    """

    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True
    _select: ClassVar[Selection]

    def __init_subclass__(cls, kernels: Selection = all_kernels, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._select = staticmethod(kernels)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Treat the kernels in the order of the module."""
        ranges, sizes = LaunchFacts(op), LaunchSizes(op)
        for function, target in list(type(self)._select(op)):
            self.on_kernel(function, KernelFacts(function, target, ranges, sizes))

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Change one kernel in place."""
        raise NotImplementedError
