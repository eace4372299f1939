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
        for outputs, leaves in ((results, given), (expected, inputs)):
            sum(x.sum() for x in tree_leaves(outputs) if isinstance(x, torch.Tensor) and x.requires_grad).backward()
            del leaves
        for one, other in zip(given, inputs, strict=True):
            torch.testing.assert_close(one.grad, other.grad)
            one.grad = other.grad = None
    found = outcomes()
    assert len(set(found)) == 1, found
    return found[0]


def _copies(inputs: tuple[Any, ...]) -> list[Any]:
    """The same tensors in memory of their own, views of one memory as such."""
    memory: dict[int, torch.Tensor] = {}
    copies = []
    for each in inputs:
        if not isinstance(each, torch.Tensor):
            copies.append(each)
            continue
        if each.requires_grad or each.is_conj():
            copy = each.detach().conj().resolve_conj().conj() if each.is_conj() else each.detach().clone()
            copies.append(copy.requires_grad_(each.requires_grad))
            continue
        storage = each.untyped_storage()
        length = storage.nbytes() // each.element_size()
        whole = memory.setdefault(
            storage.data_ptr(), torch.empty(0, dtype=each.dtype).set_(storage, 0, (length,), (1,)).clone()
        )
        copies.append(whole.as_strided(each.shape, each.stride(), each.storage_offset()))
    return copies
