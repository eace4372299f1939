"""Running a program on copies of the inputs that carry the negative or the conjugate bit; see `lazy_bits`.

Apart, because programs from the cache load nothing of the emitters.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection
from typing import Any

import torch

log = logging.getLogger(__name__)

Run = Callable[[list[Any]], list[Any]]


def carrying_now(inputs: Collection[Any]) -> frozenset[int]:
    """Positions of the inputs that carry a bit now."""
    tensors = ((k, each) for k, each in enumerate(inputs) if isinstance(each, torch.Tensor))
    return frozenset(k for k, each in tensors if each.is_neg() or each.is_conj())


class OnCopies:
    """Runs a program, called `name`, on inputs of which some carry a bit; `written` are those that it writes."""

    def __init__(self, name: str, written: frozenset[int]) -> None:
        self.name, self.written = name, written
        self._told = False

    def __call__(self, run: Run, args: list[Any]) -> list[Any]:
        """The results; inputs that were written are copied back."""
        carrying = carrying_now(args)
        if (dynamo := sys.modules.get("torch._dynamo.utils")) is not None:  # a package runs without it
            dynamo.counters["inductile"]["inputs copied for their negative or conjugate bit"] += len(carrying)
        if not self._told:
            self._told = True
            log.warning(
                "%s copies its inputs %s in each call: they carry the negative or the conjugate bit; "
                "resolve_neg() and resolve_conj() do it once",
                self.name,
                sorted(carrying),
            )
        with torch.no_grad():
            originals = {k: args[k] for k in carrying & self.written}
            for k in carrying:
                args[k] = resolved(args[k])
            copies = {k: args[k] for k in originals}
            results = run(args)
            for k, original in originals.items():
                original.copy_(copies[k])
        return results


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy where its memory does not hold its values."""
    return resolved(tensor) if tensor.is_neg() or tensor.is_conj() else tensor


def resolved(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same sizes and strides, overlaps included, whose memory holds the tensor's values."""
    memory, negative, conjugate = tensor, tensor.is_neg(), tensor.is_conj()
    if negative:
        memory = torch.ops.aten._neg_view(memory)  # of the memory as it lies: it takes the bit away
    if conjugate:
        memory = torch.ops.aten._conj(memory)
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    length = 1 + sum((size - 1) * stride for size, stride in pairs) if tensor.numel() else 0
    copy = torch.as_strided(memory, (length,), (1,)).clone()
    if negative:
        copy.neg_()
    if conjugate:
        copy.conj_physical_()
    return torch.as_strided(copy, tensor.shape, tensor.stride(), 0)
