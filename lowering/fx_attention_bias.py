"""The operand that stands for all that is done to scores of an attention: a mask that is added.

Rows of which nothing may be visible need care. Where they are written out, each key of such a row has the same weight,
or all are NaN; a kernel gives zeros, or what its scores say. Which rows are such is computed with the mask, unless it
is proved that each row sees a key.

A kernel takes a mask of the type of its queries. A bias of float32, as ALiBi's slopes make it, loses digits there: one
of 500 is off by 1 in bfloat16. A softmax does not change where a number is taken from all scores of a row, so the
largest bias of each row is taken from it first. Then a bias of -x is off by x / 512, and a key with such a bias counts
only where its score exceeds the others' by about x: scores that the program rounds to 16 bits are off by as much.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node

from ..records import dataclass
from .fx_attention_masks import call_method, evaluated, judge_mask, sees_itself
from .fx_attention_parts import HIDING, PRODUCTS, Attention, Step, Unlike, is_call, number_of, tensor_of
from .fx_writes import ancestors

_LEVEL = -1e30
"""Added to a score it leaves nothing of it in float32, and is no infinity once it is multiplied by log2(e)."""

_OF_DATA = (*PRODUCTS, F.linear, F.embedding, torch.einsum, torch.baddbmm, torch.addmm, "baddbmm", "embedding")
_VIEWS = (
    "expand", "expand_as", "unsqueeze", "view", "reshape", "contiguous", "clone", "to", "type", "float", "half",
    "bfloat16", "getitem", "squeeze", "transpose", "permute",
)  # fmt: skip
_CONSTANTS = {"zeros": 0.0, "zeros_like": 0.0, "new_zeros": 0.0, "ones": 1.0, "ones_like": 1.0, "new_ones": 1.0}
_ARITHMETIC = {
    "add": operator.add, "radd": operator.add, "sub": operator.sub, "rsub": lambda a, b: b - a, "mul": operator.mul,
    "rmul": operator.mul,
}  # fmt: skip
_MOST_VALUES = 16


@dataclass
class Biases:
    """Makes masks in a graph, each once.

    written: values that a call may write to, as `written_values` finds them
    """

    graph: GraphModule
    written: set[Node]
    _made: dict[Any, tuple[Node, Node]] = field(default_factory=dict)

    def judge(self, found: Attention) -> str:
        """Set what is proved of the steps of an attention, drop those that do nothing, and say it in words.

        Raises Unlike where an answer could change by more than rounding.
        """
        kept, reasons, causal = [], [], False
        for step in found.steps:
            if step.kind == "times":
                kept.append(step)
                continue
            assert step.operand is not None
            if step.kind == "added" and not tensor_of(step.operand).is_floating_point():
                raise Unlike("its mask is of another type")
            proved, problem = judge_mask(step.operand, self.written, is_hiding=step.kind == "hidden")
            if proved is None:
                reasons.append(problem)
                kept.append(step)
            causal |= proved == "causal"
            if proved == "causal":
                kept.append(step)
        masks = [step for step in kept if step.kind != "times"]
        if not masks:
            found.steps = []
            return "without a mask"
        if causal and not reasons:
            found.steps, found.is_causal = [], True
            return "causal"
        found.steps = kept
        self._check(found)
        return f"with a mask that is computed: {', '.join(dict.fromkeys(reasons))}"

    def _check(self, found: Attention) -> None:
        dtype = tensor_of(found.query).dtype
        for step in found.steps:
            if step.kind != "added" or tensor_of(step.operand).dtype == dtype:
                continue
            if not _is_two_valued(step.operand) or ancestors([step.operand]) & self.written:  # pyright: ignore
                _check_wide(found, step, dtype)
                found.is_levelled = True
        masks = [step for step in found.steps if step.kind != "times" and self._may_hide(step)]
        if not masks or self._each_row_sees_a_key(masks):
            return
        if dtype == torch.float16:
            raise Unlike("a row may be hidden entirely, for which float16 has no numbers that are small enough")
        self._check_fills(found.steps)
        if not _has_gradient(found):
            return
        chosen = [step for step in masks if step.kind != "added"]
        if any(step.fill == -torch.inf for step in chosen):
            raise Unlike("a row may be hidden entirely: it would have other gradients")
        if chosen and len(chosen) < len(masks):
            raise Unlike("a row may be hidden entirely by two masks together: it would have other gradients")

    def _may_hide(self, step: Step) -> bool:
        """Whether a step is a mask: no bias of which all elements are known to be ordinary numbers, nor one of data."""
        if step.kind != "added" or step.operand is None:
            return True
        values = evaluated(step.operand, self.written)
        return not _is_data(step) if values is None else not bool((values > HIDING).all())

    def _check_fills(self, steps: Sequence[Step]) -> None:
        """Refuse fills of hidden scores that factors behind them make so large that scores still show in them."""
        factor = 1.0
        for step in reversed(steps):
            factor *= step.fill if step.kind == "times" else 1.0
            if step.kind in ("hidden", "visible") and step.fill * factor > HIDING:
                raise Unlike("hidden scores do not become very small")

    def _each_row_sees_a_key(self, masks: list[Step]) -> bool:
        """Whether that is proved: by the elements of all masks, or as each position sees itself."""
        if all(sees_itself(step.operand, self.written, step.kind == "hidden") for step in masks if step.operand):
            return True
        visible: Any = True
        for step in masks:
            assert step.operand is not None
            values = evaluated(step.operand, self.written)
            if values is None:
                return False
            seen = values > HIDING if step.kind == "added" else values.bool()
            visible = visible & (~seen if step.kind == "hidden" else seen)
        return isinstance(visible, torch.Tensor) and bool(visible.any(-1).all())

    def make(self, found: Attention, query: Node) -> tuple[Node | None, Node]:
        """The mask of an attention whose steps were judged, and its queries; nodes stand where the graph inserts.

        query: the queries, of four dimensions
        """
        if not found.steps:
            return None, query
        dtype = tensor_of(query).dtype
        mask = self._applied(found, found.steps)
        assert mask is not None
        if found.is_levelled:
            mask = self._method(mask, "sub", self._method(mask, "amax", -1, True))
        masks = [s for s in found.steps if s.kind == "times" or self._may_hide(s)]
        terms = [step for step in masks if step.kind != "times"]
        if not terms or self._each_row_sees_a_key(terms):
            return self._to(mask, dtype), query
        key = (dtype, *((s.kind, s.operand, s.fill, s.dtype) for s in masks), len(terms) == len(found.steps))
        if key not in self._made:
            self._made[key] = self._rows(found, masks)
        most, alike = self._made[key]
        levelled = self._call(torch.where, alike, _LEVEL, -torch.inf)
        # a row of which all is infinite is NaN where it is written out
        undefined = self._call(torch.where, self._method(most, "eq", -torch.inf), torch.nan, levelled)
        hidden = self._method(most, "le", HIDING)
        mask = self._call(torch.where, hidden, undefined, mask)
        if _has_gradient(found) and any(step.kind != "added" for step in terms):
            # no score of such a row has a gradient where others take the places of all of them
            query = self._method(query, "masked_fill", hidden, 0.0)
        return self._to(mask, dtype), query

    def _rows(self, found: Attention, masks: list[Step]) -> tuple[Node, Node]:
        """The largest value that masks alone give each row, and where it is reached."""
        alone = self._applied(found, masks)
        assert alone is not None
        most = self._method(alone, "amax", -1, True)
        return most, self._method(alone, "eq", most)

    def _applied(self, found: Attention, steps: Iterable[Step]) -> Node | None:
        """What steps make of scores that are zero, in the types that they have there."""
        mask: Node | None = None
        for step in steps:
            if step.kind == "times":
                mask = None if mask is None else self._method(mask, "mul", step.fill)
                continue
            operand = self._with_heads(step, found)
            if step.kind == "added":
                wide = self._to(operand, step.dtype)
                mask = wide if mask is None else self._to(self._method(mask, "add", wide), step.dtype)
                continue
            inner: Any = 0.0 if mask is None else self._to(mask, step.dtype)
            pair = (inner, step.fill) if step.kind == "visible" else (step.fill, inner)
            mask = self._call(torch.where, operand, *pair)
            mask = self._to(mask, step.dtype)
        return mask

    def _with_heads(self, step: Step, found: Attention) -> Node:
        """An operand of a step as one of four dimensions, or fewer."""
        assert step.operand is not None
        if step.rank != 3 or tensor_of(step.operand).dim() != 3:
            return step.operand
        if found.heads is None:
            return self._method(step.operand, "unsqueeze", 1)
        if isinstance(size := tensor_of(step.operand).shape[0], int) and size == 1:
            return step.operand
        return self._method(step.operand, "unflatten", 0, (-1, found.heads))

    def _to(self, node: Node, dtype: torch.dtype) -> Node:
        return node if tensor_of(node).dtype == dtype else self._method(node, "to", dtype)

    def _method(self, on: Node, method: str, *args: Any) -> Node:
        return call_method(self.graph, on, method, *args)

    def _call(self, function: Any, *args: Any) -> Node:
        node = self.graph.graph.call_function(function, args)
        values = [a.meta["example_value"] if isinstance(a, Node) else a for a in args]
        mode = next(value for value in values if isinstance(value, torch.Tensor)).fake_mode  # pyright: ignore
        with mode:
            node.meta["example_value"] = function(*values)
        return node


def _check_wide(found: Attention, step: Step, dtype: torch.dtype) -> None:
    """Refuse a bias of more digits than `dtype` has where rounding it would show."""
    bias = tensor_of(step.operand)
    if tensor_of(found.calls[-1]).dtype != dtype:
        raise Unlike(f"{bias.dtype} is added to scores that are not rounded, and {dtype} would lose digits")
    if bias.requires_grad:
        raise Unlike(f"what is added is learned in {bias.dtype}, and {dtype} would lose digits")


def _has_gradient(found: Attention) -> bool:
    return any(tensor_of(each).requires_grad for each in (found.query, found.keys, found.value))


def _is_data(step: Step) -> bool:
    """Whether a bias is computed by products or looked up in learned tables: no mask, but a part of the scores."""
    if step.kind != "added" or step.operand is None:
        return False
    seen: set[Node] = set()
    waiting = [step.operand]
    while waiting:
        node = waiting.pop()
        if is_call(node, _OF_DATA):
            return True
        seen.add(node)
        waiting += [each for each in node.all_input_nodes if each not in seen]
    return False


def _is_two_valued(node: Any) -> bool:
    """Whether each element is 0 or hides a score, by the calls that make it."""
    values = _values(node)
    return values is not None and all(value == 0 or value <= HIDING for value in values)


def _values(node: Any) -> frozenset[float] | None:
    """The few numbers that elements are among, by the calls that make a tensor; None where that is not seen."""
    number = number_of(node)
    if number is not None:
        return frozenset((number,))
    if not isinstance(node, Node):
        return None
    if tensor_of(node).dtype == torch.bool:
        return frozenset((0.0, 1.0))
    name = str(node.target) if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    name = name.strip("_")
    if name == "where" and len(node.args) == 3:
        return _union(node.args[1:] if node.op == "call_function" else (node.args[0], node.args[2]))
    if name == "masked_fill" and len(node.args) == 3:
        return _union((node.args[0], node.args[2]))
    if name in _CONSTANTS:
        return frozenset((_CONSTANTS[name],))
    if name in ("full", "full_like", "new_full"):
        return _union((node.kwargs.get("fill_value", node.args[-1] if node.args else None),))
    if name in _ARITHMETIC and len(node.args) == 2 and not node.kwargs:
        return _combined(name, *map(_values, node.args))
    return _values(node.args[0]) if name in _VIEWS and node.args else None


def _union(parts: Iterable[Any]) -> frozenset[float] | None:
    found = [_values(each) for each in parts]
    return None if any(each is None for each in found) else frozenset().union(*(each for each in found if each))


def _combined(name: str, left: frozenset[float] | None, right: frozenset[float] | None) -> frozenset[float] | None:
    if left is None or right is None or len(left) * len(right) > _MOST_VALUES:
        return None
    # no rounding of these decides whether a number is 0 or very small
    return frozenset(_ARITHMETIC[name](a, b) for a in left for b in right)
