"""Identifiers, each handed out once. Text from an IR file ends up here and nowhere else as text."""

from __future__ import annotations

from collections.abc import Container


class Names:
    """The identifiers of one scope of a language.

    reserved: words that are none
    first:    the number behind a word that is taken
    """

    reserved: Container[str] = frozenset()
    first = 2

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self._next: dict[str, int] = {}

    def clean(self, text: str) -> str:
        """Any text as an identifier, the text itself where it is one."""
        raise NotImplementedError

    def fresh(self, wanted: str) -> str:
        """An identifier like `wanted`, with a number where that is taken or reserved."""
        base = self.clean(wanted)
        name, number = base, self._next.get(base, self.first)
        while name in self.taken or name in self.reserved:
            name, number = f"{base}_{number}", number + 1
        self._next[base] = number
        self.taken.add(name)
        return name

    def take(self, name: str) -> bool:
        """Take an identifier as it is; False where somebody has it."""
        if name in self.taken:
            return False
        self.taken.add(name)
        return True

    def release(self, *names: str) -> None:
        """Let names be handed out again: what they stood for is out of scope."""
        self.taken.difference_update(names)
        self._next.clear()
