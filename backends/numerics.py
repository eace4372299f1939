"""`--verify-each=numerics`: run the module before and after each pass, name the first that changed an answer."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import PassError, UserError
from ..passes.manager import Instrumentation
from ..passes.printing import broken_module_text, first_line
from ..passes.remarks import format_location
from .blame import producer_of_result, writer_of_input
from .reference import InterpretationError, Outcome, observe, outcome_differences, random_inputs

#: lines of two modules that are worth comparing, and changed ones that are worth showing
_MOST_COMPARED, _MOST_SHOWN = 2000, 8
_NAMED = re.compile(r"(result|input) (\d+)")


@dataclass
class _Case:
    """Inputs, what they are, and what the module does to them in the state that was last seen."""

    name: str
    inputs: list[Any]
    outcome: Outcome | None = None


class NumericCheck(Instrumentation):
    """Compares the module behind each pass with the one in front of it, on the same inputs, in the reference backend,
    which computes floats in float64 and rounds only where the program casts.

    Compared are results, inputs afterwards, aliases, and errors that the program raises. Inputs are made up twice:
    ordinary numbers, then some NaNs, infinities, zeros of either sign and extreme numbers among them.

    seed:       of the made-up inputs
    inputs:     given inputs instead
    constants:  real values of the last arguments, which a graph got from its constants
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
        self._cases: list[_Case] = []
        self._before: ModuleOp | None = None

    def before_run(self, module: ModuleOp) -> None:
        """Make inputs and keep what the module does to them. UserError for a module that cannot be run."""
        if self._given is not None:
            self._cases = [_Case("the given inputs", list(self._given))]
        else:
            ordinary, special = (random_inputs(module, self.seed, special=s) for s in (False, True))
            self._cases = [_Case("random inputs", ordinary), _Case("random inputs with special values", special)]
        for case in self._cases:
            if self._constants:
                case.inputs[-len(self._constants) :] = self._constants
            case.outcome = self._observe(module, case)
            if isinstance(case.outcome.error, InterpretationError):
                problem = f"the module has no meaning to compare with: {case.outcome.error}"
                raise UserError(problem, "mend it, or leave --verify-each=numerics out") from case.outcome.error
        self._before = module.clone()

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Compare; raises PassError with what differs."""
        for case in self._cases:
            assert case.outcome is not None
            after = self._observe(module, case)
            if isinstance(after.error, InterpretationError) and "computed wide" in str(after.error):
                differences = self._compare_narrow(module, case)
            else:
                differences = outcome_differences(case.outcome, after)
                case.outcome = after
            if differences:
                raise PassError(module_pass.name, self._message(case, differences, module))
        self._before = module.clone()

    def _observe(self, module: ModuleOp, case: _Case, wide: bool = True) -> Outcome:
        return observe(module, case.inputs, wide=wide, references=self._references)

    def _compare_narrow(self, module: ModuleOp, case: _Case) -> list[str]:
        """Compare in the program's own types, where one looks at the bits of a float."""
        assert self._before is not None
        return outcome_differences(self._observe(self._before, case, False), self._observe(module, case, False))

    def _message(self, case: _Case, differences: Sequence[str], module: ModuleOp) -> str:
        lines = [f"it changes the answer for {case.name}: {'; '.join(differences[:3])}"]
        assert self._before is not None
        named = _NAMED.match(differences[0])
        if named is not None:
            before, behind = (_origin(state, named[1], int(named[2])) for state in (self._before, module))
            if before == behind:
                lines.append(f"  {named[0]} comes from: {behind}")
            else:
                lines += [f"  in front of the pass {named[0]} comes from: {before}", f"  behind it from: {behind}"]
        return "\n".join([*lines, *_changed_lines(self._before, module)])


def _origin(module: ModuleOp, kind: str, number: int) -> str:
    op = (producer_of_result if kind == "result" else writer_of_input)(module, number)
    if op is None:
        return "no op, it is an argument"
    where = format_location(op.location)
    return f"{first_line(op)}{f' ({where})' if where else ''}"


def _changed_lines(before: ModuleOp, behind: ModuleOp) -> list[str]:
    """The lines that differ, when they are few."""
    old, new = (broken_module_text(m).split("\n") for m in (before, behind))
    if len(old) + len(new) > _MOST_COMPARED:
        return []
    changes = [line for line in difflib.ndiff(old, new) if line[0] in "+-"]
    return [f"  {line[0]} {line[1:].strip()}" for line in changes] if len(changes) <= _MOST_SHOWN else []
