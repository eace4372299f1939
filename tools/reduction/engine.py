"""Delta debugging: propose simpler modules, keep those that are still interesting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.context import new_context
from ...dialects.reading import Reader
from ...passes.printing import module_text
from ...passes.verification import find_violation
from ...records import dataclass


class Strategy(Protocol):
    """One way to make modules simpler, at a number of sites of a module."""

    @property
    def name(self) -> str:
        """Of the strategy, for messages."""
        ...

    def sites(self, module: ModuleOp) -> int:
        """How many places there are."""
        ...

    def apply(self, module: ModuleOp, first: int, last: int) -> ModuleOp | None:
        """The module simplified at sites `first` to `last` - 1, changed in place or anew; None when that fails."""
        ...


@dataclass(frozen=True)
class Size:
    """How large a module is."""

    ops: int
    characters: int

    @staticmethod
    def of(module: ModuleOp) -> Size:
        """Measure a module; the module op itself does not count."""
        return Size(sum(1 for _ in module.walk()) - 1, len(module_text(module)))

    def __str__(self) -> str:
        return f"{self.ops} ops, {self.characters} characters"


#: sites of which all pairs are tried
_MOST_FOR_PAIRS = 30


@dataclass(frozen=True)
class _Pair:
    """Two sites of a strategy as one; the later one goes first, so that the number of the other stays."""

    strategy: Strategy
    first: int
    second: int

    @property
    def name(self) -> str:
        """Of the strategy, for messages."""
        return f"{self.strategy.name}, two at once"

    def sites(self, module: ModuleOp) -> int:
        """One."""
        return 1

    def apply(self, module: ModuleOp, first: int, last: int) -> ModuleOp | None:
        """The module simplified at both; None when one of them fails."""
        changed = self.strategy.apply(module, self.second, self.second + 1)
        return None if changed is None else self.strategy.apply(changed, self.first, self.first + 1)


class Reduction:
    """Shrinks a module.

    is_interesting: whether what is looked for is still there
    keep:           called with the text of each smaller module that is; the best so far survives an interruption
    """

    def __init__(
        self, text: str, name: str, is_interesting: Callable[[ModuleOp], bool], keep: Callable[[str, str], None]
    ) -> None:
        self._context: Context = new_context()
        self._name = name
        self._is_interesting = is_interesting
        self._keep = keep
        self._tried: set[str] = set()
        self.text = text
        self._module = self._parse(text)
        self.tests = 0

    def run(self, strategies: Sequence[Strategy], pairs: Sequence[Strategy] = ()) -> None:
        """Apply all strategies until none finds anything; then two sites at once of each in `pairs`, and so on.

        What goes wrong an odd number of times survives the removal of two ops, but not of one.
        """
        changed = True
        while changed:
            changed = False
            for strategy in strategies:
                changed |= self._shrink(strategy)
            if not changed:
                changed = any(self._shrink_by_pair(strategy) for strategy in pairs)

    def _shrink(self, strategy: Strategy) -> bool:
        """Try large groups of sites first, then smaller ones, down to single ones."""
        changed = False
        count = strategy.sites(self._module.clone())
        size = count
        while size >= 1:
            first = 0
            while first < count:
                accepted = self._accept(strategy, first, min(first + size, count))
                changed |= accepted
                left = strategy.sites(self._module.clone()) if accepted else count
                first += size if left >= count else 0
                count = left
            size //= 2
        return changed

    def _shrink_by_pair(self, strategy: Strategy) -> bool:
        """Try two sites that are not neighbours, where there are few."""
        count = strategy.sites(self._module.clone())
        if count > _MOST_FOR_PAIRS:
            return False
        pairs = ((i, j) for i in range(count) for j in range(i + 1, count))
        return any(self._accept(_Pair(strategy, i, j), 0, 1) for i, j in pairs)

    def _accept(self, strategy: Strategy, first: int, last: int) -> bool:
        """Whether the simplified module is still interesting; then it is the current one."""
        found = self._candidate(strategy, first, last)
        if found is None:
            return False
        text, module = found
        self.tests += 1
        if not self._is_interesting(module.clone()):
            return False
        self.text, self._module = text, module
        self._keep(text, strategy.name)
        return True

    def _candidate(self, strategy: Strategy, first: int, last: int) -> tuple[str, ModuleOp] | None:
        """A valid simplified module that was not tried before, and its text; both are the same, as read back."""
        try:
            module = strategy.apply(self._module.clone(), first, last)
            if module is None or find_violation(module) is not None:
                return None
            text = module_text(module)
            if text == self.text or text in self._tried:
                return None
            self._tried.add(text)
            parsed = self._parse(text)
        except Exception:  # a rewrite that ignores what an op means may fail in any way; then it is no candidate
            return None
        return None if find_violation(parsed) is not None else (text, parsed)

    def _parse(self, text: str) -> ModuleOp:
        return Reader(self._context, text, self._name).parse_module()
