"""Weights that were released, and how results are found that were made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import torch
from torch import nn

from ...errors import UserError
from ...records import dataclass

_PROPERTIES = ("shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "is_sparse", "is_meta")
_LOOKED_AT = {
    *(getattr(torch.Tensor, name).__get__ for name in _PROPERTIES),
    *(torch.Tensor.size, torch.Tensor.dim, torch.Tensor.numel, torch.Tensor.element_size),
}
"""What may be asked of a discarded weight."""


class DiscardedWeight(torch.Tensor):
    """A weight without elements: it knows its size, and raises a UserError where it is used."""

    inductile_name: str

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Raise, unless only the size is asked for."""
        if func in _LOOKED_AT:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        name = _name_of([*args, *(kwargs or {}).values()])
        raise UserError(
            f"{name} was discarded once its module was compiled, and {getattr(func, '__name__', func)} needs it",
            "compile without freezing_discard_parameters, or load the weights again with assign=True",
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"{type(self).__name__}({self.inductile_name}, {tuple(self.shape)}, {self.dtype})"


class DiscardedParameter(DiscardedWeight, nn.Parameter):
    """A parameter that was discarded."""


def _name_of(values: Sequence[Any]) -> str:
    for value in values:
        if isinstance(value, DiscardedWeight):
            return value.inductile_name
        if isinstance(value, list | tuple) and (found := _name_of(value)):
            return found
    return ""


def discard(weight: torch.Tensor, name: str) -> bool:
    """Release the memory of a weight, and whether that was done: what has a class of its own stays."""
    made = {torch.Tensor: DiscardedWeight, nn.Parameter: DiscardedParameter}.get(type(weight))
    if made is None:
        return False
    with torch.no_grad():
        weight.data = weight.data.new_zeros(()).expand(weight.shape)
    weight.inductile_name = name  # pyright: ignore[reportAttributeAccessIssue]
    weight.__class__ = made
    return True


@dataclass
class Discards:
    """Which weights a kept function may discard, and what each looked like.

    names: the name of each by its place among the arguments
    """

    names: Mapping[int, str]
    expected: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def key(self, args: Sequence[torch.Tensor]) -> tuple[int, ...]:
        """What results are found by: which tensors may be discarded, and where the others lie."""
        return tuple([id(each) if k in self.names else each.data_ptr() for k, each in enumerate(args)])

    def of(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The arguments that may be discarded."""
        return [args[k] for k in self.names]

    def others(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The other arguments."""
        return [each for k, each in enumerate(args) if k not in self.names]

    def check(self, args: Sequence[torch.Tensor]) -> None:
        """Raise a UserError for weights that the program was not compiled for: nothing guards them."""
        for place, name in self.names.items():
            weight = args[place]
            if isinstance(weight, DiscardedWeight):
                raise UserError(f"{name} was discarded, and is needed again, with other weights", "load all weights")
            found = (weight.dtype, weight.device, tuple(weight.shape), weight.stride())
            if self.expected.setdefault(place, found) != found:
                raise UserError(f"{name} is {found}, and was {self.expected[place]}", "call torch.compiler.reset()")

    def apply(self, args: Sequence[torch.Tensor]) -> int:
        """Discard them; the number of bytes that went."""
        sizes = {place: args[place].numel() * args[place].element_size() for place in self.names}
        return sum(size for place, size in sizes.items() if discard(args[place], self.names[place]))
