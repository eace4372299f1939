"""Compiling functions one after the other over one cache, as processes do that follow each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch.utils._pytree import tree_leaves

_NAMES = {
    "graphs from the cache": "hit",
    "graphs that the cache does not have": "miss",
    "graphs that the cache does not take": "bypass",
}


def outcomes() -> list[str]:
    """What became of the graphs since the counters were cleared."""
    return [_NAMES[name] for name, times in counters["inductile"].items() if name in _NAMES for _ in range(times)]


def run(function: Callable[..., Any], *inputs: Any, dynamic: bool | None = None, **options: Any) -> str:
    """Compile and call as a new process would; "hit", "miss" or "bypass". Results and writes have to be eager's."""
    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(function, backend="inductile", dynamic=dynamic, options={"cache_graphs": True, **options})
    given = _copies(inputs)
    results, expected = compiled(*given), function(*inputs)
    for one, other in zip(tree_leaves((results, given)), tree_leaves((expected, inputs)), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
        if isinstance(one, torch.Tensor):
            assert (one.dtype, one.stride(), one.requires_grad) == (other.dtype, other.stride(), other.requires_grad)
    if any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs) and torch.is_grad_enabled():
        for outputs in (results, expected):
            torch.autograd.backward([x.sum() for x in tree_leaves(outputs) if x.requires_grad])
        for one, other in zip(given, inputs, strict=True):
            torch.testing.assert_close(one.grad, other.grad)
            one.grad = other.grad = None
    found = outcomes()
    assert len(set(found)) <= 1, found
    return found[0] if found else ""


def _copies(inputs: tuple[Any, ...]) -> list[Any]:
    """The same tensors in memory of their own, where they share none with each other; else views as they are."""
    places = [x.untyped_storage().data_ptr() for x in inputs if isinstance(x, torch.Tensor)]
    memory: dict[int, torch.Tensor] = {}
    copies: list[Any] = []
    for each in inputs:
        if not isinstance(each, torch.Tensor):
            copies.append(each)
        elif places.count(place := each.untyped_storage().data_ptr()) == 1:
            copy = torch.empty_strided(each.shape, each.stride(), dtype=each.dtype).copy_(each.detach())
            copies.append(copy.conj_physical().conj() if each.is_conj() else copy.requires_grad_(each.requires_grad))
        else:
            base = each._base
            assert base is not None
            whole = memory.setdefault(place, base.clone())
            copies.append(whole.as_strided(each.shape, each.stride(), each.storage_offset()))
    return copies
