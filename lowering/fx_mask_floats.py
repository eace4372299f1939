"""Masks of floats that are 0 or hide a score: what they say as truths, for all sizes that are symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import Node

from .fx_attention_parts import number_of
from .fx_mask_terms import (
    FALSE,
    TRUE,
    Index,
    Tensor,
    Term,
    Terms,
    UnknownTermError,
    both,
    broadcast,
    described,
    expression,
    inside_triangle,
    negated,
    operation_name,
    structure_rule,
    truth_of,
)

_CASTS = frozenset(["to", "type", "float", "half", "bfloat16", "double"])


def visibility(terms: Terms, node: Any, dtype: torch.dtype) -> Tensor:
    """Which elements of a tensor of floats are 0, where all others hide a score: -inf or the least number.

    dtype: of the tensor, where `node` is a number. UnknownTermError for what is not understood.
    """
    number = number_of(node)
    if number is not None:
        return Tensor((), lambda index: _meaning_of(number, dtype))
    if not isinstance(node, Node) or not node.meta["example_value"].dtype.is_floating_point:
        raise UnknownTermError("it is of other numbers than 0 and those that hide")
    value = node.meta["example_value"]
    name = operation_name(node) or ""
    shape = tuple(map(expression, value.shape))
    if (rule := _RULES.get(name)) is not None:
        try:
            found = rule(terms, node, value.dtype)
        except (TypeError, IndexError, ValueError) as error:
            raise UnknownTermError(f"{node.name} is not understood") from error
    elif name in _CASTS:  # 0 stays 0, and no narrower type brings a hidden score back
        found = visibility(terms, node.args[0], value.dtype)
    elif (rule := structure_rule(name)) is not None:
        found = rule(terms, visibility(terms, node.args[0], value.dtype), *map(terms.argument, node.args[1:]))
    else:
        raise UnknownTermError(f"it depends on {described(node)}")
    if len(found.shape) != len(shape):
        raise UnknownTermError(f"{node.name} is not understood")
    return Tensor(shape, found.at)


def _meaning_of(number: float, dtype: torch.dtype) -> Term:
    if number == 0:
        return TRUE
    if number <= torch.finfo(dtype).min:
        return FALSE
    raise UnknownTermError("it is of other numbers than 0 and those that hide")


def _chosen(terms: Terms, truth: Term, yes: Term, no: Term) -> Term:
    """`yes` where a truth holds, else `no`; UnknownTermError where that is no conjunction."""
    if yes == no:
        return yes
    truth = truth_of(terms, truth)
    if no == FALSE:
        return both(terms, truth, yes)
    if yes == FALSE:
        return both(terms, negated(terms, truth), no)
    raise UnknownTermError("one of several conditions suffices")


def _where(terms: Terms, truths: Any, yes: Tensor, no: Tensor) -> Tensor:
    if not isinstance(truths, Tensor):
        raise UnknownTermError("a condition is no tensor")
    shape, parts = broadcast(truths, yes, no)
    return Tensor(shape, lambda index: _chosen(terms, *(part(index) for part in parts)))


def _choice(terms: Terms, node: Node, dtype: torch.dtype) -> Tensor:
    """`torch.where(truths, yes, no)`, or the method `yes.where(truths, no)`."""
    first, second, third = node.args
    truths, yes = (second, first) if node.op == "call_method" else (first, second)
    return _where(terms, terms.argument(truths), visibility(terms, yes, dtype), visibility(terms, third, dtype))


def _fill(terms: Terms, node: Node, dtype: torch.dtype) -> Tensor:
    tensor, truths, number = node.args
    return _where(terms, terms.argument(truths), visibility(terms, number, dtype), visibility(terms, tensor, dtype))


def _full(terms: Terms, node: Node, dtype: torch.dtype) -> Tensor:
    number = number_of(node.kwargs.get("fill_value", node.args[-1] if node.args else None))
    if number is None:
        raise UnknownTermError("it is full of what is no number")
    return _constant(node, _meaning_of(number, dtype))


def _constant(node: Node, term: Term) -> Tensor:
    return Tensor(tuple(map(expression, node.meta["example_value"].shape)), lambda index: term)


def _triangle(sign: int) -> Callable[[Terms, Node, torch.dtype], Tensor]:
    """What is outside of a triangle becomes 0."""

    def rule(terms: Terms, node: Node, dtype: torch.dtype) -> Tensor:
        tensor = visibility(terms, node.args[0], dtype)
        diagonal = node.kwargs.get("diagonal", node.args[1] if len(node.args) > 1 else 0)

        def at(index: Index) -> Term:
            return _chosen(terms, inside_triangle(terms, index, diagonal, sign), tensor.at(index), TRUE)

        return Tensor(tensor.shape, at)

    return rule


_RULES: Mapping[str, Callable[[Terms, Node, torch.dtype], Tensor]] = {
    "where": _choice, "masked_fill": _fill, "full": _full, "full_like": _full, "new_full": _full,
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros"), lambda terms, node, dtype: _constant(node, TRUE)),
    "tril": _triangle(1), "triu": _triangle(-1),
}  # fmt: skip
