"""`inductile::either(first, second)`: two ways to compute the same, of which a pass behind autograd keeps one.

An attention under a mask is computed by a library's kernel, which reads the mask from memory, or as it is written out,
by a nest of ours that computes the mask. `graph-choose-products` decides by measurements. What nobody decides about is
the first one.

Where gradients are asked both ways have theirs, and the joint graph has both of them:

    y = either_way(f(q), g(q), 3)     dq = of_way(df, 3, 0) + of_way(dg, 3, 1)

with the gradients df and dg that autograd computes for both. `graph-choose-scores` keeps one way in both graphs.
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

_LIBRARY.define("either_way(Tensor first, Tensor second, int number) -> Tensor")
_LIBRARY.define("of_way(Tensor gradient, int number, int way) -> Tensor")


def _of_way(gradient: torch.Tensor, number: int, way: int) -> torch.Tensor:
    return torch.zeros_like(gradient) if way else gradient.clone()


_LIBRARY.impl("either_way", lambda first, second, number: first.clone(), "CompositeExplicitAutograd")
_LIBRARY.impl("of_way", _of_way, "CompositeExplicitAutograd")
torch.library.register_fake("inductile::either_way", lambda first, *_: torch.empty_like(first), lib=_LIBRARY)
torch.library.register_fake("inductile::of_way", lambda gradient, *_: torch.empty_like(gradient), lib=_LIBRARY)


class _EitherWay(torch.autograd.Function):
    """The result of one of two ways, whose gradient both get."""

    @staticmethod
    def forward(ctx: Any, first: torch.Tensor, second: torch.Tensor, number: int) -> torch.Tensor:
        return torch.ops.inductile.either_way(first, second, number)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient, gradient, None


class _OnWay(torch.autograd.Function):
    """What one of two ways reads: its gradient counts where that way is taken."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, number: int, way: int) -> torch.Tensor:
        ctx.number, ctx.way = number, way
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return torch.ops.inductile.of_way(gradient, ctx.number, ctx.way), None, None


def either_way(first: torch.Tensor, second: torch.Tensor, number: int) -> torch.Tensor:
    """One of two ways to compute the same; who takes gradients gets those of that way."""
    return _EitherWay.apply(first, second, number)  # pyright: ignore[reportReturnType]


def on_way(x: torch.Tensor, number: int, way: int) -> torch.Tensor:
    """What the first or second way (0, 1) of a choice reads."""
    return _OnWay.apply(x, number, way)  # pyright: ignore[reportReturnType]


def next_number(graph: GraphModule) -> int:
    """A number for a choice in a graph, that of none in it."""
    return len(graph.graph.find_nodes(op="call_function", target=either_way))


def read_on_way(graph: GraphModule, value: Any, number: int, way: int) -> Any:
    """An operand as one way of a choice reads it, at the point of insertion; itself where it has no gradient."""
    if not isinstance(value, Node) or not tensor_of(value).requires_grad:
        return value
    node = graph.graph.call_function(on_way, (value, number, way))
    node.meta["example_value"] = value.meta["example_value"]
    return node


def mark_reads(graph: GraphModule, calls: Iterable[Node], number: int, way: int) -> None:
    """Let calls read what comes from elsewhere as one way of a choice does."""
    inside, known = set(calls), dict[Node, Node]()
    for node in [each for each in graph.graph.nodes if each in inside]:
        for value in node.all_input_nodes:
            example = value.meta.get("example_value")
            if value in inside or not isinstance(example, torch.Tensor) or not example.requires_grad:
                continue
            if value not in known:
                with graph.graph.inserting_before(node):
                    known[value] = read_on_way(graph, value, number, way)
            node.replace_input_with(value, known[value])


def leave_open(graph: GraphModule, first: Node, second: Node, number: int | None = None) -> Node:
    """Two ways to compute what all readers of the second one get from then on.

    number: of the choice, where gradients are asked
    """
    with graph.graph.inserting_after(second):
        ways = (first, second)
        either = graph.graph.call_function(*((EITHER, ways) if number is None else (either_way, (*ways, number))))
    either.meta = {key: value for key, value in second.meta.items() if key != "from_node"}
    second.replace_all_uses_with(either, delete_user_cb=lambda user: user is not either)
    return either


def asks_gradient(nodes: Iterable[Node]) -> bool:
    """Whether a gradient is asked of one of some values."""
    return torch.is_grad_enabled() and any(tensor_of(each).requires_grad for each in nodes)


def may_be_nest(q: torch.Tensor, k: torch.Tensor, is_training: bool) -> bool:
    """Whether a nest may be the faster way to compute an attention of queries and keys: somebody knows.

    That is a timer, or measurements of about these sizes; where a gradient is asked, those of forward with backward.
    """
    sizes = _sizes((*q.shape[:-2], q.shape[-2], k.shape[-2], q.shape[-1]))
    if is_training and (sizes is None or torch.are_deterministic_algorithms_enabled()):
        return False
    if timer() is not None:
        return True
    target = target_named(target_of_device(str(q.device)))
    nests = target.nests if isinstance(target, GpuTarget) else ()
    element = _SHORT.get(str(q.dtype).removeprefix("torch."), "")
    return bool(nests) and (sizes is None or any_near(element, sizes, nests, is_training))


def _sizes(shape: Sequence[Any]) -> tuple[int, int, int, int] | None:
    """Heads of all batches, queries, keys and width; None where one is a symbol."""
    if not all(isinstance(size, int) for size in shape):
        return None
    *batch, rows, keys, width = shape
    heads = 1
    for size in batch:
        heads *= size
    return heads, rows, keys, width
