"""`--verify-each=numerics`: run the module before and after each pass, name the first that changed an answer."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import PassError, UserError
from ..passes.manager import Instrumentation
from ..passes.printing import broken_module_text, first_line
from ..passes.remarks import format_location
from ..passes.timing import Timing
from ..records import dataclass
from .blame import producer_of_result, writer_of_input
from .reference import InterpretationError, Outcome, observe, outcome_differences, random_inputs
from .reference.run import entries, find_function

#: lines of two modules that are worth comparing, and changed ones that are worth showing
_MOST_COMPARED, _MOST_SHOWN = 2000, 8
_NAMED = re.compile(r"(result|input) (\d+)")


@dataclass(frozen=True)
class Difference:
    """How answers of a function differ, and for which inputs they were asked for."""

    function: str
    case: str
    lines: tuple[str, ...]
    """The first one names the result or input; what a module raises is a line of its own."""

    def __str__(self) -> str:
        return f"{'; '.join(self.lines[:3])} ({self.case})"


@dataclass
class _Case:
    """Inputs of a function, what they are, and what the module does to them; `last` is what another one did.

    extreme: some of the inputs are infinite, NaN, or very large
    """

    function: str
    name: str
    inputs: list[Any]
    extreme: bool = False
    expected: Outcome | None = None
    last: Outcome | None = None


class Answers:
    """What the functions of a module do to some inputs, to compare other modules with.

    The reference backend runs them; it computes floats in float64 and rounds only where the program casts.

    Compared are results, inputs afterwards, aliases, and errors that the program raises. Inputs are made up twice:
    ordinary numbers, then some NaNs, infinities, zeros of either sign and extreme numbers among them.

    seed:       of the made-up inputs
    inputs:     given inputs instead
    constants:  real values of the last arguments, which a graph got from its constants
    references: graphs and objects that calls name

    Raises UserError for a module that has no answer: one that reads undefined memory, say.
    """

    def __init__(
        self,
        module: ModuleOp,
        seed: int = 0,
        inputs: Sequence[Any] | None = None,
        constants: Sequence[Any] = (),
        references: Mapping[str, Any] | None = None,
    ) -> None:
        self._references = references
        self.module = module.clone()
        self._cases = _given(module, inputs) if inputs is not None else _made_up(module, seed)
        for case in self._cases:
            if constants:
                case.inputs[-len(constants) :] = constants
            case.expected = self._observe(module, case)
            if isinstance(case.expected.error, InterpretationError):
                problem = f"the module has no meaning to compare with: {case.expected.error}"
                raise UserError(problem, "mend it, or leave the comparison out") from case.expected.error

    def difference(self, module: ModuleOp, values: bool = True, extremes: bool = True) -> Difference | None:
        """How the answers of another module differ; None when they do not.

        values:   they are compared; else shapes, aliases and errors alone
        extremes: so are those of extreme inputs
        """
        compares = values
        for case in self._cases:
            assert case.expected is not None
            values = compares and (extremes or not case.extreme)
            case.last = self._observe(module, case)
            if isinstance(case.last.error, InterpretationError) and "computed wide" in str(case.last.error):
                found = self._compare_narrow(module, case, values)
                case.last = case.expected
            else:
                found = outcome_differences(case.expected, case.last, values=values)
            if found:
                return Difference(case.function, case.name, tuple(found))
        return None

    def move_on(self, module: ModuleOp) -> None:
        """Compare with `module`, the last one that did not differ, from now on: small errors do not add up."""
        self.module = module.clone()
        for case in self._cases:
            case.expected = case.last

    def _observe(self, module: ModuleOp, case: _Case, wide: bool = True) -> Outcome:
        return observe(module, case.inputs, function=case.function, wide=wide, references=self._references)

    def _compare_narrow(self, module: ModuleOp, case: _Case, values: bool) -> list[str]:
        """Compare in the program's own types, where one looks at the bits of a float."""
        before, behind = (self._observe(m, case, wide=False) for m in (self.module, module))
        return outcome_differences(before, behind, values=values)

    def explain(self, difference: Difference, module: ModuleOp) -> list[str]:
        """Where the first thing that differs comes from, and what changed in the text if that is little."""
        lines: list[str] = []
        named = _NAMED.match(difference.lines[0])
        if named is not None:
            before, behind = (_origin(m, difference.function, named) for m in (self.module, module))
            if before == behind:
                lines.append(f"  {named[0]} comes from: {behind}")
            else:
                lines += [f"  in front of the pass {named[0]} comes from: {before}", f"  behind it from: {behind}"]
        return [*lines, *_changed_lines(self.module, module)]


def _given(module: ModuleOp, inputs: Sequence[Any]) -> list[_Case]:
    return [_Case(find_function(module, None).sym_name.data, "given inputs", list(inputs))]


def _made_up(module: ModuleOp, seed: int) -> list[_Case]:
    kinds = (("random inputs", False), ("random inputs with special values", True))
    return [
        _Case(function, name, list(random_inputs(module, seed, special, function)), extreme=special)
        for function in entries(module)
        for name, special in kinds
    ]


def _origin(module: ModuleOp, function: str, named: re.Match[str]) -> str:
    find = producer_of_result if named[1] == "result" else writer_of_input
    op = find(module, int(named[2]), function)
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


class NumericCheck(Instrumentation):
    """Compares the module behind each pass with the one in front of it; the arguments are those of `Answers`.

    timing: is told how long that took, and watches the same run in front of this
    """

    def __init__(
        self,
        seed: int = 0,
        inputs: Sequence[Any] | None = None,
        constants: Sequence[Any] = (),
        references: Mapping[str, Any] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._arguments = (seed, inputs, constants, references)
        self._timing = timing
        self._answers: Answers | None = None

    def before_run(self, module: ModuleOp) -> None:
        """Make inputs and keep what the module does to them. UserError when there is nothing to run."""
        if not entries(module):
            problem = "the module has no function to run, so that there are no answers to compare"
            raise UserError(problem, "add a host.func that launches its kernels, or leave the comparison out")
        self._answers = Answers(module, *self._arguments)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Compare; raises PassError with what differs. A pass that says `redraws` may draw other random numbers.

        One that says `rescales` may make other infinities and NaNs of extreme numbers, whose sums overflow elsewhere.
        A pass that leaves the module as it is needs no run: most passes of a schedule are for one kind of target.
        """
        assert self._answers is not None
        started = time.perf_counter()
        if not self._answers.module.is_structurally_equivalent(module):
            redraws, rescales = (getattr(module_pass, name, False) for name in ("redraws", "rescales"))
            difference = self._answers.difference(module, values=not redraws, extremes=not rescales)
            if difference is not None:
                lines = [f"it changes the answer: {difference}", *self._answers.explain(difference, module)]
                raise PassError(module_pass.name, "\n".join(lines))
            self._answers.move_on(module)
        if self._timing is not None:
            self._timing.add_part("(numerics)", time.perf_counter() - started)
