"""Finding the pass, and the one rewrite of it, with which something goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context as ContextVars
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects.context import new_context
from ..dialects.reading import Reader
from ..errors import UserError
from ..passes.counters import Counter, counting
from ..passes.printing import module_text
from ..passes.remarks import Remark, collecting
from ..records import dataclass
from .oracles import Oracle
from .source import Source


def first_bad(low: int, high: int, is_bad: Callable[[int], bool]) -> int:
    """The least number in (low, high] that is bad, where `low` is good, `high` is bad, and bad stays bad."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_bad(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Application:
    """One rewrite: the `number`-th (from 1) of `total` for which a pass asked a counter."""

    counter: str
    number: int
    total: int


@dataclass
class Finding:
    """The pass at `position` goes wrong with `problem` on the text `input`.

    `before` and `behind` are texts around the pass; with an application, around that one rewrite, and `remarks` are
    those that it made.
    """

    position: int
    module_pass: ModulePass
    input: str
    problem: str
    before: str
    behind: str
    application: Application | None = None
    remarks: list[Remark] = field(default_factory=list)

    @property
    def counters(self) -> str:
        """What makes the pass stop behind the guilty rewrite, for `--debug-counter`."""
        found = self.application
        return "" if found is None else f"{found.counter}-count={found.number}"


@dataclass
class Attempt:
    """What a pass did: the text it left, or why that failed, which counters it asked, and its remarks."""

    text: str
    problem: str | None
    counters: dict[str, Counter]
    remarks: list[Remark]


class Bisection:
    """Bisects a pipeline over a module. `make_oracle` gets the module as it is in front of all passes."""

    def __init__(
        self,
        text: str,
        name: str,
        passes: Sequence[ModulePass],
        make_oracle: Callable[[ModuleOp], Oracle],
        allow_effects: bool = False,
    ) -> None:
        self._passes = passes
        self._name = name
        self._context: Context = new_context()
        self._texts: dict[int, str] = {0: text}
        self._problems: dict[int, str | None] = {}
        source = Source(text, name, allow_effects=allow_effects)
        module = source.parse(self._context)
        source.verify(module)
        self._oracle = make_oracle(module)
        self.runs = 0

    def run(self) -> Finding | None:
        """The first pass and rewrite that go wrong; None when nothing does."""
        last = len(self._passes)
        if self._is_bad(0):
            problem = self._problems[0] or ""
            raise UserError(f"{self._name}: error: it goes wrong in front of all passes: {problem}")
        if not self._is_bad(last):
            return None
        position = first_bad(0, last, self._is_bad) - 1
        return self._inside(position)

    def _is_bad(self, count: int) -> bool:
        """Whether something is wrong behind the first `count` passes."""
        if count not in self._problems:
            start = max(known for known in self._texts if known <= count)
            text, problem = self._texts[start], None
            for position in range(start, count):
                attempt = self.attempt(self._passes[position], text, judged=position == count - 1)
                text, problem = attempt.text, attempt.problem
                if problem is not None:
                    break
                self._texts[position + 1] = text
            else:
                if start == count:
                    problem = self._judge(text)
            self._problems[count] = problem
        return self._problems[count] is not None

    def _judge(self, text: str) -> str | None:
        try:
            return self._oracle.problem(self._parse(text))
        except UserError:
            raise
        except Exception as error:  # a text that does not parse back is as wrong as a pass that crashes
            return f"{type(error).__name__}: {error}"

    def _inside(self, position: int) -> Finding:
        """The rewrite inside a pass that goes wrong, by counters."""
        module_pass, before = self._passes[position], self._texts[position]
        whole = self.attempt(module_pass, before)
        finding = Finding(position, module_pass, before, whole.problem or "", before, whole.text)
        asked = {name: counter.asked for name, counter in whole.counters.items()}
        names = list(asked)
        if not names or self._limited(module_pass, before, dict.fromkeys(names, 0)).problem is not None:
            return finding

        def with_counters(allowed: int) -> bool:
            limits = dict.fromkeys(names[allowed:], 0)
            return self._limited(module_pass, before, limits).problem is not None

        guilty = names[first_bad(0, len(names), with_counters) - 1]
        others = dict.fromkeys(names[names.index(guilty) + 1 :], 0)

        def limited(count: int) -> Attempt:
            return self._limited(module_pass, before, {guilty: count} | others)

        number = first_bad(0, asked[guilty], lambda count: limited(count).problem is not None)
        good, bad = limited(number - 1), limited(number)
        finding.problem = bad.problem or finding.problem
        finding.before, finding.behind = good.text, bad.text
        finding.application = Application(guilty, number, asked[guilty])
        finding.remarks = bad.remarks[_common(good.remarks, bad.remarks) :]
        return finding

    def _limited(self, module_pass: ModulePass, text: str, limits: dict[str, int]) -> Attempt:
        return self.attempt(module_pass, text, {name: Counter(count=count) for name, count in limits.items()})

    def attempt(
        self, module_pass: ModulePass, text: str, counters: dict[str, Counter] | None = None, judged: bool = True
    ) -> Attempt:
        """Run one pass on a module's text, with counters, away from those of the caller, and judge the result."""
        return ContextVars().run(self._attempt, module_pass, text, counters or {}, judged)

    def _attempt(self, module_pass: ModulePass, text: str, counters: dict[str, Counter], judged: bool) -> Attempt:
        self.runs += 1
        with counting(counters), collecting() as remarks:
            try:
                module = self._parse(text)
                module_pass.apply(self._context, module)
                left = module_text(module, locations=True)
                problem = self._oracle.problem(module) if judged else None
            except UserError:
                raise
            except Exception as error:  # a crash of the pass, or a module that does not print, is what is looked for
                left, problem = text, f"{type(error).__name__}: {error}"
        return Attempt(left, problem, counters, remarks)

    def _parse(self, text: str) -> ModuleOp:
        return Reader(self._context, text, self._name).parse_module()


def _common(before: Sequence[Remark], behind: Sequence[Remark]) -> int:
    """How many remarks two runs begin with alike."""
    pairs = zip(before, behind, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(before), len(behind)))
