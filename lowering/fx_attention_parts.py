"""What is done to the scores of an attention between its two products, read back from the calls of Dynamo's graph."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch.fx import Node

from ..records import dataclass
from .fx_private import computed_attribute, known_true

HIDING = -1e9
"""What stands for a hidden score, or is added to one, from here on down gives it a weight of 0 beside a seen one."""

PRODUCTS = (operator.matmul, torch.matmul, torch.bmm, "matmul", "bmm", "__matmul__")
SOFTMAXES = (F.softmax, torch.softmax, "softmax")
_CASTS = ("to", "float", "half", "bfloat16", "type", "type_as")
# in place as well: nothing else reads what these write over
_TIMES = (operator.mul, operator.imul, torch.mul, "mul", "mul_", "__mul__", "__rmul__", "__imul__")
_OVER = (
    operator.truediv, operator.itruediv, torch.div, torch.true_divide, "div", "div_", "true_divide", "__truediv__",
    "__itruediv__",
)  # fmt: skip
_PLUS = (operator.add, operator.iadd, torch.add, "add", "add_", "__add__", "__radd__", "__iadd__")
_FILLS = (torch.masked_fill, "masked_fill", "masked_fill_")
_CHOICES = (torch.where, "where")
_SUMS_WITH_PRODUCTS = (torch.baddbmm, "baddbmm")
_RESHAPES = (torch.reshape, torch.flatten, torch.unflatten, "view", "reshape", "flatten", "unflatten")
_TRANSPOSES = (torch.transpose, "transpose", torch.swapaxes, "swapaxes")


class Unlike(Exception):  # noqa: N818 - no error: the calls are something else
    """What is found is no attention, or one that stays as it is; the text says why where it is one."""


@dataclass(frozen=True)
class Step:
    """One thing that is done to scores.

    kind:   "added" of a bias; "hidden" and "visible" of truths, elsewhere or where `fill` takes the place of scores;
            "times" of a factor, in `fill`
    dtype:  of the scores behind it
    rank:   of the scores, three where batch and heads are one dimension
    reader: the call that does it
    """

    kind: Literal["added", "hidden", "visible", "times"]
    operand: Node | None
    fill: float
    dtype: torch.dtype
    rank: int
    reader: Node


@dataclass
class Attention:
    """The parts of an attention, and the calls that compute it, the last one first.

    keys:   as the product takes them, the width of heads in front of positions
    source: what the keys are the transposition of, where that is seen
    steps:  in the order in which they are done
    heads:  where operands have batch and heads in one dimension, but scores have two: how many heads
    is_levelled: whether each row's largest bias is taken from all of the row's, so that they can be rounded
    """

    query: Node
    keys: Node
    value: Node
    result: Node
    source: Node | None = None
    scale: float = 1.0
    dropout: float = 0.0
    is_causal: bool = False
    steps: list[Step] = field(default_factory=list)
    heads: int | None = None
    is_levelled: bool = False
    calls: list[Node] = field(default_factory=list)


def is_call(node: Any, targets: Sequence[Any]) -> bool:
    """Whether a node calls one of some functions, or of methods by their names."""
    return isinstance(node, Node) and node.op in ("call_function", "call_method") and node.target in targets


def tensor_of(node: Any) -> torch.Tensor:
    """The example value of a node that is a tensor; Unlike for anything else."""
    value = node.meta.get("example_value") if isinstance(node, Node) else None
    if not isinstance(value, torch.Tensor):
        raise Unlike
    return value


def _operands(node: Node, count: int) -> tuple[Any, ...]:
    """The operands of a call that has no others."""
    if len(node.args) != count or node.kwargs:
        raise Unlike
    return node.args


def matched(node: Node) -> Attention:
    """The attention that ends in a product. Unlike, with a reason where it is nearly one."""
    weights, value = _operands(node, 2)
    calls = [node]
    found = Attention(node, node, value, node, calls=calls)
    weights = _before_weights(weights, found)
    if not is_call(weights, SOFTMAXES):
        raise Unlike
    assert isinstance(weights, Node)
    calls.append(weights)
    found.query, found.keys = _product_of_scores(_softmax_operand(weights), found)
    if any(len(each.users) != 1 for each in calls[1:]):
        raise Unlike("another call reads its scores or weights")
    _take_scale(found)
    _read_through_casts(found)
    found.heads = _heads(found)
    return found


def _product_of_scores(scores: Any, found: Attention) -> tuple[Any, Any]:
    """The operands of the product that scores come from; the steps behind it are noted."""
    while not is_call(scores, PRODUCTS):
        before, step = _step(scores, found.calls)
        if step is not None:
            found.steps.insert(0, step)
        if before is None:
            options = _options(scores)
            return options["batch1"], options["batch2"]
        scores = before
    found.calls.append(scores)
    return _operands(scores, 2)  # pyright: ignore[reportReturnType]


def _before_weights(node: Any, found: Attention) -> Any:
    """Weights in front of casts, views and dropout."""
    while True:
        if is_call(node, (F.dropout,)):
            if found.dropout:
                raise Unlike("its weights are dropped twice")
            found.calls.append(node)
            node, found.dropout = _dropped(node)
        elif (before := _without_arranging(node, found.calls)) is not None:
            node = before
        else:
            return node


def _dropped(node: Node) -> tuple[Any, float]:
    """The operand of dropout, and the share that it drops."""
    options = dict(zip(("input", "p", "training", "inplace"), node.args, strict=False)) | node.kwargs
    share = options.get("p", 0.5) if options.get("training", True) is not False else 0.0
    if not isinstance(share, int | float) or not 0 <= share < 1 or options.get("inplace"):
        raise Unlike("how many of its weights are dropped is not known")
    return options.get("input"), float(share)


def _without_arranging(node: Any, calls: list[Node]) -> Any:
    """The operand of a cast between floats, or of a view that splits or joins batch and heads; None for others."""
    if is_call(node, _CASTS):
        value, before = tensor_of(node), tensor_of(node.args[0])
        if not (value.is_floating_point() and before.is_floating_point()):
            return None
        if value.device != before.device:
            raise Unlike
    elif is_call(node, _RESHAPES):
        value, before = tensor_of(node), tensor_of(node.args[0])
        if {value.dim(), before.dim()} != {3, 4} or not known_true(value.shape[-2] == before.shape[-2]):
            return None
        if not known_true(value.shape[-1] == before.shape[-1]):
            return None
    else:
        return None
    calls.append(node)
    return node.args[0]


def _softmax_operand(node: Node) -> Any:
    options = dict(zip(("input", "dim"), node.args, strict=False)) | node.kwargs
    if node.target is F.softmax and len(node.args) > 2:
        raise Unlike
    dim = options.get("dim")
    if not isinstance(dim, int) or dim not in (-1, tensor_of(node).dim() - 1):
        raise Unlike
    return options.get("input")


def _step(node: Any, calls: list[Node]) -> tuple[Any, Step | None]:
    """Scores before the last thing that was done to them, None where a product was part of it; and what that was."""
    if (before := _without_arranging(node, calls)) is not None:
        return before, None
    if not isinstance(node, Node):
        raise Unlike
    if is_call(node, _FILLS):
        scores, truths, fill = _operands(node, 3)
        return _masked(node, scores, "hidden", truths, fill, calls)
    if is_call(node, _CHOICES):
        first, second, third = _operands(node, 3)
        if node.op == "call_method":  # scores.where(visible, fill)
            return _masked(node, first, "visible", second, third, calls)
        if leads_to_product(second):
            return _masked(node, second, "visible", first, third, calls)
        return _masked(node, third, "hidden", first, second, calls)
    for targets, is_divisor in ((_TIMES, False), (_OVER, True)):
        if is_call(node, targets):
            scores, number = _operands(node, 2)
            if not isinstance(scores, Node) and not is_divisor:
                scores, number = number, scores
            return _scaled(node, scores, number, is_divisor, calls)
    if is_call(node, _PLUS):
        left, right = _operands(node, 2)
        scores, bias = (left, right) if leads_to_product(left) else (right, left)
        if not isinstance(bias, Node) or not isinstance(scores, Node):
            raise Unlike("a number is added to its scores")
        calls.append(node)
        return scores, _new_step(node, "added", bias, 0.0)
    if is_call(node, _SUMS_WITH_PRODUCTS):
        return _added_to_product(node, calls)
    if any(map(leads_to_product, node.args)):
        raise Unlike(f"{node.name} changes its scores")
    raise Unlike


def _new_step(node: Node, kind: Literal["added", "hidden", "visible", "times"], operand: Any, fill: float) -> Step:
    return Step(kind, operand, fill, tensor_of(node).dtype, tensor_of(node).dim(), node)


def leads_to_product(node: Any, steps: int = 8) -> bool:
    """Whether a value is a product, or what casts, views, scales and masks make of one."""
    while isinstance(node, Node) and steps:
        if is_call(node, (*PRODUCTS, *_SUMS_WITH_PRODUCTS)):
            return True
        through = (*_CASTS, *_RESHAPES, *_TIMES, *_OVER, *_PLUS, *_FILLS, *_CHOICES)
        if not is_call(node, through) or not node.args:
            return False
        if is_call(node, (*_PLUS, *_TIMES, *_CHOICES)):
            return any(leads_to_product(each, steps - 1) for each in node.args)
        node = node.args[0]
        steps -= 1
    return False


def _masked(
    node: Node, scores: Any, kind: Literal["hidden", "visible"], truths: Any, fill: Any, calls: list[Node]
) -> tuple[Any, Step]:
    least = torch.finfo(tensor_of(node).dtype).min
    number = number_of(fill)
    if number is None or not (number <= HIDING or number <= least):
        raise Unlike("hidden scores do not become very small")
    if not isinstance(truths, Node) or tensor_of(truths).dtype != torch.bool:
        raise Unlike("its mask is of another type")
    calls.append(node)
    return scores, _new_step(node, kind, truths, number)


def _scaled(node: Node, scores: Any, factor: Any, is_divisor: bool, calls: list[Node]) -> tuple[Any, Step]:
    number = number_of(factor)
    if number is None or number == 0 or not math.isfinite(number):
        raise Unlike("its scores are scaled by no number" if leads_to_product(scores) else "")
    calls.append(node)
    return scores, _new_step(node, "times", None, 1 / number if is_divisor else number)


def _added_to_product(node: Node, calls: list[Node]) -> tuple[None, Step]:
    """A bias that the product itself adds: `baddbmm(bias, q, k, beta=1, alpha=scale)`."""
    options = _options(node)
    beta, alpha = options.get("beta", 1), options.get("alpha", 1)
    if beta != 1 or not isinstance(alpha, int | float) or alpha <= 0 or not isinstance(options["input"], Node):
        raise Unlike("the product of its scores is added to something else")
    calls.append(node)
    return None, _new_step(node, "added", options["input"], float(alpha))


def _options(baddbmm: Node) -> dict[str, Any]:
    return dict(zip(("input", "batch1", "batch2"), baddbmm.args, strict=False)) | baddbmm.kwargs


def number_of(value: Any) -> float | None:
    """A Python number, or one that is a tensor without dimensions made of one in the graph; None for others."""
    if isinstance(value, Node):
        if is_call(value, (torch.tensor, torch.scalar_tensor)) and value.args:
            return number_of(value.args[0])
        if is_call(value, (torch.full,)) and not tensor_of(value).dim():
            return number_of(value.kwargs.get("fill_value", value.args[-1] if value.args else None))
        if is_call(value, _CASTS) and value.op == "call_method":
            number = number_of(value.args[0])
            return None if number is None else float(torch.tensor(number, dtype=tensor_of(value).dtype))
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and not math.isnan(value) else None


def _take_scale(found: Attention) -> None:
    """Take the factors that come before anything else out of the steps."""
    while found.steps and found.steps[0].kind == "times":
        found.scale *= found.steps.pop(0).fill
    if found.steps and found.steps[0].kind == "added" and found.steps[0].fill:  # baddbmm
        found.scale *= found.steps[0].fill
    for step in found.steps:
        if step.kind == "times":
            if step.fill < 0:
                raise Unlike("its masked scores change their sign")
            found.scale *= step.fill
    if found.scale == 0 or not math.isfinite(found.scale):
        raise Unlike("its scale is 0 or infinite")


def _read_through_casts(found: Attention) -> None:
    """Read queries and keys before casts that only make them wider: fused kernels compute with all digits."""
    dtype = tensor_of(found.value).dtype
    found.query = _narrow(found.query, dtype)
    source = transposed_of(found.keys)
    if source is not None:
        found.source = _narrow(source, dtype)


def _narrow(node: Any, dtype: torch.dtype) -> Any:
    while is_call(node, _CASTS) and tensor_of(node).dtype in (torch.float32, torch.float64):
        before = tensor_of(node.args[0])
        if before.dtype != dtype or before.device != tensor_of(node).device:
            break
        node = node.args[0]
    return node


def transposed_of(node: Any) -> Node | None:
    """What a matrix transposition is of; None where the call is something else."""
    if is_call(node, _TRANSPOSES) and len(node.args) == 3 and not node.kwargs:
        rank = tensor_of(node).dim()
        dims = node.args[1:]
        if all(isinstance(d, int) for d in dims) and {d % rank for d in dims} == {rank - 1, rank - 2}:  # pyright: ignore
            return node.args[0] if isinstance(node.args[0], Node) else None
    if isinstance(node, Node) and computed_attribute(node) == "mT" and isinstance(node.args[0], Node):
        return node.args[0]
    return None


def _heads(found: Attention) -> int | None:
    """How many heads one dimension of the operands has, where scores have two for it."""
    ranks = {tensor_of(each).dim() for each in (found.query, found.keys, found.value, found.result)}
    split = [each for each in found.calls if tensor_of(each).dim() not in ranks]
    if len(ranks) != 1 or not split:
        return None
    heads = tensor_of(split[0]).shape[1]
    if ranks != {3} or not isinstance(heads, int) or any(tensor_of(e).shape[1] != heads for e in split):
        raise Unlike("its batch and heads are split in a way that is not understood")
    return heads
