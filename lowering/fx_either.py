"""`inductile::either(first, second)`: two ways to compute the same, of which a pass behind autograd keeps one.

An attention under a mask is computed by a library's kernel, which reads the mask from memory, or as it is written out,
by a nest of ours that computes the mask. `graph-choose-products` decides by measurements. What nobody decides about is
the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..machines import GpuTarget, target_named
from ..machines.nests import any_near
from ..passes.common.choices import timer
from .fx_attention_parts import tensor_of
from .fx_machines import target_of_device

_LIBRARY = torch.library.Library("inductile", "FRAGMENT")
_LIBRARY.define("either(Tensor first, Tensor second) -> Tensor")
WRITTEN = "inductile_written_out"
"""Metadata of a call that stands in a graph as one of two ways."""
_SHORT = {"bfloat16": "bf16", "float16": "f16"}


def _either(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return first.clone()


def _fake(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(first)


_LIBRARY.impl("either", _either, "CompositeExplicitAutograd")
torch.library.register_fake("inductile::either", _fake, lib=_LIBRARY)

EITHER = torch.ops.inductile.either.default


def leave_open(graph: GraphModule, first: Node, second: Node) -> Node:
    """Two ways to compute what all readers of the second one get from then on."""
    with graph.graph.inserting_after(second):
        either = graph.graph.call_function(EITHER, (first, second))
    either.meta = {key: value for key, value in second.meta.items() if key != "from_node"}
    second.replace_all_uses_with(either, delete_user_cb=lambda user: user is not either)
    return either


def may_be_nest(query: Node, keys: Node, others: Iterable[Node] = ()) -> bool:
    """Whether a nest may be the faster way to compute an attention: no gradient is asked, and somebody knows.

    That is a timer, or measurements of about these sizes. `keys` have positions in front of the width of heads.
    """
    q, k = tensor_of(query), tensor_of(keys)
    if torch.is_grad_enabled() and any(tensor_of(each).requires_grad for each in (query, keys, *others)):
        return False
    if timer() is not None:
        return True
    target = target_named(target_of_device(str(q.device)))
    nests = target.nests if isinstance(target, GpuTarget) else ()
    sizes = _sizes((*q.shape[:-2], q.shape[-2], k.shape[-2], q.shape[-1]))
    element = _SHORT.get(str(q.dtype).removeprefix("torch."), "")
    return bool(nests) and (sizes is None or any_near(element, sizes, nests))


def _sizes(shape: Sequence[Any]) -> tuple[int, int, int, int] | None:
    """Heads of all batches, queries, keys and width; None where one is a symbol."""
    if not all(isinstance(size, int) for size in shape):
        return None
    *batch, rows, keys, width = shape
    heads = 1
    for size in batch:
        heads *= size
    return heads, rows, keys, width
