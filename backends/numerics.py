"""`--verify-each=numerics`: run the module before and after each pass, name the first that changed an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import PassError
from ..passes.manager import Instrumentation
from .reference import compare_modules, random_inputs


class NumericCheck(Instrumentation):
    """Compares the module behind each pass with the one in front of it, on the same inputs, in the reference backend.

    seed:      of the made-up inputs, special values included
    inputs:    given inputs instead
    constants: real values of the last arguments, which a graph got from its constants
    """

    def __init__(self, seed: int = 0, inputs: Sequence[Any] | None = None, constants: Sequence[Any] = ()) -> None:
        self.seed = seed
        self._given = inputs
        self._constants = list(constants)
        self._before: ModuleOp | None = None
        self._inputs: list[Any] = []

    def before_run(self, module: ModuleOp) -> None:
        """Keep the input module and make inputs."""
        self._before = module.clone()
        self._inputs = list(self._given) if self._given is not None else list(random_inputs(module, seed=self.seed))
        if self._constants:
            self._inputs[-len(self._constants) :] = self._constants

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Compare; raises PassError with what differs."""
        assert self._before is not None
        differences = compare_modules(self._before, module, self._inputs)
        if differences:
            shown = "; ".join(str(d) for d in differences[:3])
            raise PassError(module_pass.name, f"it changes the answer: {shown}")
        self._before = module.clone()
