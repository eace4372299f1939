"""Patterns of ATen ops, written as Python functions.

    def scaled(aten, x, y, factor):
        return aten.mul(aten.matmul(x, y), factor)

The function is called once with a `PatternBuilder` and a `Variable` for each of its other parameters; what it returns
is a tree of calls. Each call names a packet, so any overload of it matches. Arguments are by position or by name; those
not given must have their default, those given as `...` may be anything. `add` and `mul` match in either order.

`aten.matmul` is no op of a graph: it matches `mm`, `bmm`, and a `bmm` between the views, expansions and copies that
ATen's `matmul` puts around it. `either(a, b)` matches what `a` or else `b` matches; variables of what did not match
are None. `either(c, d, like=e)` takes the option that the node `e`, matched before, took: the second where `e` took its
second.

A joint graph holds the gradient too, which reads inner values of the forward graph. So that such a match can go away
as a whole, a function may return several calls: the first as above, then calls whose values are replaced with it where
they exist, each found from what is matched already:

    def squared(aten, x, y, gradient):
        product = aten.matmul(x, y)
        return product, aten.left_gradient(gradient, product), aten.right_gradient(gradient, product)

`aten.left_gradient(g, p)` is the product of `g` and the transposed right operand of the matrix product `p`, which is
the gradient of the left operand, and `aten.right_gradient(g, p)` that of the transposed left operand and `g`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from ...records import dataclass

#: None, or why a match is not to be replaced; an empty text is a reason that nobody wants to hear
Guard: TypeAlias = Callable[..., "str | None"]

#: values of the calls of a pattern but the first, or what stands in for values; None for what does not exist
Others: TypeAlias = "tuple[SSAValue | None, ...]"

MATMUL = "matmul"
LEFT_GRADIENT, RIGHT_GRADIENT = "left_gradient", "right_gradient"
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
    def needed(self) -> frozenset[PatternCall]:
        """The calls that every match has, whatever alternatives it takes."""
        return frozenset((self,)).union(*map(_needed, (*self.args, *self.kwargs.values())))


@dataclass(frozen=True, eq=False)
class Either:
    """Alternatives, tried in order; with `like` only the one in the place that the other node took."""

    options: tuple[Any, ...]
    like: Either | None = None


def either(*options: Any, like: Either | None = None) -> Either:
    """A node that matches what the first matching option does, or the option of the same number as that of `like`."""
    if like is not None and len(like.options) != len(options):
        raise ValueError("alternatives that follow others must be as many")
    return Either(options, like)


def _needed(node: Any) -> frozenset[PatternCall]:
    if isinstance(node, Either):
        return frozenset.intersection(*map(_needed, node.options))
    return node.needed if isinstance(node, PatternCall) else frozenset()


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
                 `_replacement.py`) and the matched values by name, and returns what stands in for `root`. Where `match`
                 returns several calls, it also gets `others`, the values of all but the first, None for those that
                 do not exist, and returns a tuple of what stands in for each
    guard:       called by name with the matched values and `root`, and likewise `others`
    is_exact:    whether the replacement keeps every bit of the value, NaN and infinities included. Only such patterns
                 apply by default
    differs:     where it is not exact: in what
    may_repeat:  whether it may apply where other ops read inner values of the match too, which then stay
    keeps_effects: whether what stands in for the last op has that op's effects, such as the use of random numbers; it
                 is put in that op's place. Else an op with an effect is left alone
    """

    name: str
    match: Callable[..., PatternCall | tuple[PatternCall, ...]]
    replace: Callable[..., Any]
    guard: Guard | None = None
    is_exact: bool = False
    differs: str = ""
    may_repeat: bool = False
    keeps_effects: bool = False
    parameters: tuple[str, ...] = field(init=False, default=())
    root: PatternCall = field(init=False)
    others: tuple[PatternCall, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.is_exact == bool(self.differs):
            raise ValueError(f"pattern {self.name!r} must be exact or say in what it differs")
        parameters = tuple(inspect.signature(self.match).parameters)[1:]
        found = self.match(PatternBuilder(), *map(Variable, parameters))
        root, *others = found if isinstance(found, tuple) else (found,)
        if not all(isinstance(call, PatternCall) for call in (root, *others)):
            raise TypeError(f"pattern {self.name!r} must return a call, or several")
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "others", tuple(others))

    @property
    def root_packets(self) -> tuple[str, ...]:
        """Packets of the ops that its last call may be."""
        return ("mm", "bmm", "view", "_unsafe_view") if self.root.packet == MATMUL else (self.root.packet,)
