"""`--verify-each=numerics`: run the module before and after each pass, name the first that changed an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import PassError
from ..passes.manager import Instrumentation
from .reference import Outcome, observe, outcome_differences, random_inputs


class NumericCheck(Instrumentation):
    """Compares the module behind each pass with the one in front of it, on the same inputs, in the reference backend,
    which computes floats in float64 and rounds only where the program casts.

    seed:      of the made-up inputs, special values included
    inputs:    given inputs instead
    constants: real values of the last arguments, which a graph got from its constants
    references: graphs and objects that calls name
    """

    def __init__(
        self,
        seed: int = 0,
        inputs: Sequence[Any] | None = None,
        constants: Sequence[Any] = (),
        references: Mapping[str, Any] | None = None,
    ) -> None:
        self.seed = seed
        self._given = inputs
        self._constants = list(constants)
        self._references = references
        self._before: Outcome | None = None
        self._inputs: list[Any] = []

    def before_run(self, module: ModuleOp) -> None:
        """Make inputs and keep what the module does to them."""
        self._inputs = list(self._given) if self._given is not None else list(random_inputs(module, seed=self.seed))
        if self._constants:
            self._inputs[-len(self._constants) :] = self._constants
        self._before = self._observe(module)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Compare; raises PassError with what differs."""
        assert self._before is not None
        after = self._observe(module)
        differences = outcome_differences(self._before, after)
        if differences:
            shown = "; ".join(str(d) for d in differences[:3])
            raise PassError(module_pass.name, f"it changes the answer: {shown}")
        self._before = after

    def _observe(self, module: ModuleOp) -> Outcome:
        return observe(module, self._inputs, wide=True, references=self._references)
