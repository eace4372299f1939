"""The objects that a generated program refers to, by names of our own numbering."""

from __future__ import annotations

from typing import Any


class Constants:
    """Names objects; equal hashable objects of one prefix share a name."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self._names: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}

    def bind(self, prefix: str, value: Any) -> str:
        """A fresh name `prefix<k>` for an object, or the one that it has."""
        # by their text, numbers that are equal are the same: 0.0 and -0.0 are not
        same = repr(value) if isinstance(value, float | complex) else value
        try:
            key = (prefix, (type(value), same))
            known = self._names.get(key)
        except TypeError:
            key = (prefix, (type(value), id(value)))
            known = self._names.get(key)
        if known is not None:
            return known
        number = self._counts.get(prefix, 0)
        self._counts[prefix] = number + 1
        name = self._names[key] = f"{prefix}{number}"
        self.namespace[name] = value
        return name

    def fixed(self, name: str, value: Any) -> str:
        """Use `value` under this very name, which must be one of our own words."""
        self.namespace[name] = value
        return name
