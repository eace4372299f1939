"""Patterns of ATen ops, written as Python functions.

    def scaled(aten, x, y, factor):
        return aten.mul(aten.matmul(x, y), factor)

The function is called once with a `PatternBuilder` and a `Variable` for each of its other parameters; what it returns
is a tree of calls. Each call names a packet, so any overload of it matches. Arguments are by position or by name; those
not given must have their default, those given as `...` may be anything. `add` and `mul` match in either order.

`aten.matmul` is no op of a graph: it matches `mm`, `bmm`, and a `bmm` between the views, expansions and copies that
ATen's `matmul` puts around it. `either(a, b)` matches what `a` or else `b` matches; variables of what did not match
are None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

#: None, or why a match is not to be replaced; an empty text is a reason that nobody wants to hear
Guard: TypeAlias = Callable[..., "str | None"]

MATMUL = "matmul"
COMMUTATIVE = frozenset({"add", "mul"})


@dataclass(frozen=True, eq=False)
class Variable:
    """Stands for any value; for the same one wherever it is used."""

    name: str


@dataclass(frozen=True, eq=False)
class PatternCall:
    """A call of an ATen packet whose first result is used."""

    packet: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @cached_property
    def size(self) -> int:
        """How many calls it takes at least."""
        return 1 + sum(_size(arg) for arg in (*self.args, *self.kwargs.values()))


@dataclass(frozen=True, eq=False)
class Either:
    """Alternatives, tried in order."""

    options: tuple[Any, ...]


def either(*options: Any) -> Either:
    """A node that matches what the first matching option does."""
    return Either(options)


def _size(node: Any) -> int:
    if isinstance(node, Either):
        return min(map(_size, node.options))
    return node.size if isinstance(node, PatternCall) else 0


class PatternBuilder:
    """What pattern functions call `aten`."""

    def __getattr__(self, packet: str) -> Callable[..., PatternCall]:
        if packet.startswith("__"):
            raise AttributeError(packet)
        return lambda *args, **kwargs: PatternCall(packet, args, kwargs)


@dataclass(frozen=True)
class Pattern:
    """A rewrite of ATen ops.

    name:        as the option `patterns`, remarks and the debug counter `pattern-NAME` know it
    match:       the pattern function
    replace:     a function of the same parameters and `root`, the matched value; it gets a builder that makes ops (see
                 `_replacement.py`) and the matched values by name, and returns what stands in for `root`
    guard:       called by name with the matched values and `root`
    is_exact:    whether the replacement keeps every bit of the value, NaN and infinities included. Only such patterns
                 apply by default
    differs:     where it is not exact: in what
    may_repeat:  whether it may apply where other ops read inner values of the match too, which then stay
    """

    name: str
    match: Callable[..., PatternCall]
    replace: Callable[..., Any]
    guard: Guard | None = None
    is_exact: bool = False
    differs: str = ""
    may_repeat: bool = False
    parameters: tuple[str, ...] = field(init=False, default=())
    root: PatternCall = field(init=False)

    def __post_init__(self) -> None:
        if self.is_exact == bool(self.differs):
            raise ValueError(f"pattern {self.name!r} must be exact or say in what it differs")
        parameters = tuple(inspect.signature(self.match).parameters)[1:]
        root = self.match(PatternBuilder(), *map(Variable, parameters))
        if not isinstance(root, PatternCall):
            raise TypeError(f"pattern {self.name!r} must return a call")
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "root", root)

    @property
    def root_packets(self) -> tuple[str, ...]:
        """Packets of the ops that its last call may be."""
        return ("mm", "bmm", "view", "_unsafe_view") if self.root.packet == MATMUL else (self.root.packet,)
