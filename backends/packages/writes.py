"""What a call writes: its memory is nobody else's, and autograd hears of it, as with operators of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...errors import UserError
from ...records import dataclass
from .weights import bytes_reached


@dataclass(frozen=True)
class Named:
    """A tensor, and what a message calls it."""

    name: str
    tensor: torch.Tensor


def check_writes(written: Sequence[Named], all_of_them: Sequence[Named]) -> None:
    """UserError where a program that was compiled for tensors apart would see or leave other values than eager.

    A written tensor must not share elements with any other one, and autograd must not wait for what becomes of it.
    """
    for each in written:
        if each.tensor.requires_grad and torch.is_grad_enabled():
            raise UserError(
                f"{each.name} is written, and requires a gradient, which packages do not compute",
                "call under torch.no_grad(), or give its detach()",
            )
        for other in all_of_them:
            if other.name != each.name and share_elements(each.tensor, other.tensor):
                raise UserError(
                    f"{each.name} is written, and shares memory with {other.name}; the package was compiled for "
                    "tensors apart",
                    "give a clone of one of them",
                )


def tell_of_writes(written: Sequence[Any]) -> None:
    """Raise the versions of tensors, by which autograd finds that what it saved has changed."""
    torch.autograd.graph.increment_version([each for each in written if not each.is_inference()])


def share_elements(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two strided tensors have an element in common; of unequal types, whether ranges of addresses meet."""
    (low, high), (first, last) = _addresses(one), _addresses(other)
    if max(low, first) >= min(high, last):
        return False
    size = one.element_size()
    begin = min(low, first)
    if size != other.element_size() or (low - begin) % size or (first - begin) % size:
        return True
    touched = torch.zeros((max(high, last) - begin) // size, dtype=torch.bool)
    touched.as_strided(one.shape, one.stride(), (low - begin) // size).fill_(True)
    return bool(touched.as_strided(other.shape, other.stride(), (first - begin) // size).any())


def _addresses(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses of the first byte and behind the last one; an empty range for no elements."""
    start = tensor.untyped_storage().data_ptr()
    first, last = bytes_reached(tensor)
    return start + first, start + last
