"""Strides that forward and backward graph agree on, and that nobody else sees.

What a forward graph returns for backward alone may have any strides. The partition marks such nodes, the import writes
the mark into the IR, passes choose, and AOTAutograd is told what they chose: it hands the backward compiler fake
tensors of these strides. The nodes of the backward graph were traced with others, so the import copies such an
argument into the traced strides, and passes drop the copy for readers that do not care.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves
from xdsl.ir import Attribute

from ..dialects.aten import TensorType
from ..dialects.sym import ONE, SymbolDeclaration
from ..errors import UnsupportedError
from .fx_arrangements import Arrangement
from .fx_private import known_true

_MARK = "inductile_any_strides"


def mark_saved(forward: GraphModule, forward_outputs: int) -> None:
    """Mark the nodes of a forward graph that only backward will see; the first outputs are those that others see.

    Left out are arguments, whose strides are the caller's; what is not contiguous, for backward is to restore the
    strides with which it was traced; and sizes without a hint, by which AOTAutograd compares strides.
    """
    outputs = tree_leaves(next(iter(forward.graph.find_nodes(op="output"))).args)
    visible = {node for node in outputs[:forward_outputs] if isinstance(node, Node)}
    for node in outputs[forward_outputs:]:
        if isinstance(node, Node) and node.op == "call_function" and node not in visible:
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor) and _is_contiguous(value) and all(map(_has_hint, value.shape)):
                node.meta[_MARK] = True


def is_marked(output: Any) -> bool:
    """Whether an output of a graph may have any strides."""
    return isinstance(output, Node) and _MARK in output.meta


def _has_hint(size: int | torch.SymInt) -> bool:
    return isinstance(size, int) or size.node.has_hint()


def _is_contiguous(value: torch.Tensor) -> bool:
    if value.layout is not torch.strided:
        return False
    expected: Any = 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        if not known_true(stride == expected):  # adds no guard, which Tensor.is_contiguous does
            return False
        expected = expected * size
    return True


def restrided(placeholders: Sequence[Node], inputs: Sequence[Any]) -> list[int]:
    """Positions of inputs, fake tensors, of which it is not known that they come as their placeholders were traced."""
    return [
        position
        for position, (node, given) in enumerate(zip(placeholders, inputs, strict=False))
        if isinstance(given, torch.Tensor) and not _has_strides_of(given, node.meta.get("val", given))
    ]


def _has_strides_of(given: torch.Tensor, traced: Any) -> bool:
    if traced is given or not isinstance(traced, torch.Tensor) or traced.layout is not torch.strided:
        return True
    if not given._has_symbolic_sizes_strides and given.stride() == traced.stride():
        return True
    triples = zip(traced.shape, traced.stride(), given.stride(), strict=True)
    return all(known_true(size == 1) or known_true(one == other) for size, one, other in triples)


def arrangement_of(position: int, given: TensorType, traced: TensorType, meta: torch.Tensor) -> Arrangement | None:
    """How an argument comes that was traced, as `meta`, with another type; None where the difference is none.

    Raises UnsupportedError where the traced strides are not contiguous, or those of the argument leave gaps: neither
    `mark_saved` nor `loop-channels-last` makes such.
    """
    pairs = zip(given.shape, given.strides, traced.strides, strict=True)
    if all(size is ONE or one is other for size, one, other in pairs):
        return None
    order = _order(given)
    if order is None or not _is_contiguous(meta):
        raise UnsupportedError(f"argument {position} comes as {given}, and was traced as {traced}")
    return Arrangement(position, _known_strides(given), order)


def layouts_of(arguments: Sequence[Attribute], apart: Collection[int]) -> list[Arrangement]:
    """The layouts of a graph's arguments, but for some positions, as far as each call can be held to them."""
    found: list[Arrangement] = []
    for position, type_ in enumerate(arguments):
        if isinstance(type_, TensorType) and type_.shape and position not in apart:
            layout = Arrangement(position, _known_strides(type_), _order(type_))
            if layout.strides is not None or layout.order is not None:
                found.append(layout)
    return found


def _known_strides(type_: TensorType) -> tuple[int, ...] | None:
    strides = [stride.as_int() for stride in type_.strides]
    return None if None in strides else tuple(s for s in strides if s is not None)


def _order(type_: TensorType) -> tuple[int, ...] | None:
    """Dimensions of a dense tensor from the outermost in memory to the innermost; None for one with gaps."""
    outer = [d for d, size in enumerate(type_.shape) if size is ONE]
    remaining = [d for d in range(len(type_.shape)) if d not in outer]
    inner: list[int] = []
    step = ONE
    while remaining:
        found = next((d for d in remaining if type_.strides[d] is step), None)
        if found is None:
            return None
        remaining.remove(found)
        inner.append(found)
        step = step * type_.shape[found]
    return (*outer, *reversed(inner))


def changed_strides(
    traced: Sequence[Any], returned: Sequence[Any], symbols: Collection[SymbolDeclaration], inputs: Sequence[Any]
) -> list[tuple[Any, ...] | None]:
    """For each result of a function the strides that it has instead of those of its traced type; None for the same.

    symbols: the function's declarations, whose values the `inputs`, fake tensors and integers, carry
    """
    values = {each.name: _value(each, inputs) for each in symbols if each.arg is not None}
    found: list[tuple[Any, ...] | None] = []
    for before, after in zip(traced, returned, strict=True):
        same = not isinstance(after, TensorType) or after.strides == before.strides
        found.append(None if same else tuple(_number(stride.evaluate(values)) for stride in after.strides))
    return found


def _value(declaration: SymbolDeclaration, inputs: Sequence[Any]) -> Any:
    carrier = inputs[declaration.arg or 0]
    if declaration.dim is not None:
        return carrier.shape[declaration.dim]
    return carrier if declaration.stride is None else carrier.stride(declaration.stride)


def _number(value: Any) -> Any:
    return value if isinstance(value, torch.SymInt) else int(value)
