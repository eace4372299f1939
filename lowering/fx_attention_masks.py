"""Masks of attention that are known before anything runs: the pass `prove-attention-masks` on Dynamo's graph.

Models build masks of positions: `arange`, comparisons, `expand`. Where no input takes part in one, it is evaluated at
compile time. The kernels of torch that fuse attention take no mask, the causal one, or one that is laid out in rows;
for any other torch computes the scores op by op, in float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from ..machines import HOST, library_of
from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_attention_written import offer_written_out
from .fx_mask_kinds import CAUSAL, VISIBLE, first_keys, kind_of
from .fx_mask_meaning import meaning, shows_diagonal
from .fx_mask_terms import UnknownTermError, described
from .fx_pre_grad import pre_grad_pass
from .fx_private import computed_attribute, known_true, without_modes
from .fx_writes import ancestors, written_values

_NAME = "prove-attention-masks"

_MOST_ELEMENTS = 2**24
"""Larger masks are not evaluated."""

#: names of what masks are made by: Python's operators, functions of torch, methods of tensors
_OPERATORS = "getitem and_ or_ xor invert neg add sub mul floordiv truediv mod pow lt le gt ge eq ne"
_OF_TORCH = (
    "arange full ones zeros ones_like zeros_like full_like tril triu where logical_and logical_or logical_not abs lt "
    "le gt ge eq ne add sub mul minimum maximum unsqueeze squeeze reshape transpose permute diff cumsum cat stack "
    "clamp floor_divide remainder neg sum any all amin amax flip roll outer isin sign "
    "bitwise_and bitwise_or bitwise_not bitwise_xor logical_xor repeat_interleave gather index_select broadcast_to "
    "pow div exp exp2 log log2 sqrt rsqrt reciprocal floor ceil round square concat linspace"
)
_OF_TENSORS = (
    "abs add bool clone contiguous div eq expand expand_as float ge gt int le logical_and logical_not logical_or long "
    "lt masked_fill mul ne new_full new_ones new_zeros permute repeat reshape squeeze sub to transpose tril triu type "
    "unsqueeze view diff cumsum clamp floor_divide remainder neg sum any all amin amax flip "
    "roll flatten unflatten movedim swapaxes t gather index_select repeat_interleave broadcast_to half bfloat16 double "
    "minimum maximum where logical_xor bitwise_and bitwise_or bitwise_not size "
    "pow exp exp2 log log2 sqrt rsqrt reciprocal floor ceil round square __rpow__ __rsub__ __rtruediv__ __rmul__ "
    "__radd__"
)

_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    getattr(module, name) for module, names in ((operator, _OPERATORS), (torch, _OF_TORCH)) for name in names.split()
)
#: Dynamo of torch 2.11 calls `__eq__` and its like as methods
_METHODS = frozenset(_OF_TENSORS.split()) | {f"__{name.strip('_')}__" for name in _OPERATORS.split()}
_PARAMETERS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
"""Those of `scaled_dot_product_attention` that may be given by position."""

_Judgement: TypeAlias = tuple[str | None, str]
"""What is proved of a mask, and else the reason why nothing is."""


@pre_grad_pass(_NAME)
def prove_attention_masks(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """Tell `scaled_dot_product_attention` what its mask is.

    A mask under which everything is visible goes away, the causal one of a square becomes `is_causal`, and one that
    shows the first keys alone shortens keys and values; on a GPU any other gets rows that lie side by side, and the
    call may be left open beside what is written out (`fx_attention_written.py`).

        m = torch.ones(4, 4, dtype=torch.bool).tril()
        y = scaled_dot_product_attention(q, k, v, attn_mask=m)
    becomes
        y = scaled_dot_product_attention(q, k, v, is_causal=True)
    """
    calls = [node for node in graph.graph.nodes if node.target is F.scaled_dot_product_attention]
    if not calls:
        return
    written = written_values(graph)
    known: dict[Node, _Judgement] = {}
    for node in calls:
        arguments = arguments_of(node)
        mask = arguments.get("attn_mask")
        if not isinstance(mask, Node) or arguments.get("is_causal"):
            continue
        if mask not in known:
            known[mask] = judge_mask(mask, written)
        proved, problem = known[mask]
        if proved:
            if counter("prove-attention-masks"):
                remark("passed", _NAME, None, f"the mask of {node.name}: {proved}")
                arguments |= {"attn_mask": None, "is_causal": proved == "causal"}
                _set_arguments(node, arguments)
            continue
        if (count := _first_keys(mask, written)) is not None and counter("prove-attention-masks"):
            remark("passed", _NAME, None, f"the mask of {node.name}: {problem}, and it gets no others")
            _narrow(graph, node, arguments, count)
            continue
        remark("missed", _NAME, None, f"{node.name} keeps its mask: {problem}")
        _lay_out(graph, node, mask, arguments)
        offer_written_out(graph, node, arguments, _NAME)
    for mask in known:
        drop(graph, mask)


def _first_keys(mask: Node, written: set[Node]) -> int | None:
    """How many keys all rows see, where these are the first ones, by the elements of a mask."""
    value = evaluated(mask, written)
    visible = value if value is None else _visible(value)
    return first_keys(visible) if isinstance(visible, torch.Tensor) else None


def _narrow(graph: GraphModule, node: Node, arguments: dict[str, Any], count: int) -> None:
    """Give an attention the first keys and values alone, and no mask."""
    with graph.graph.inserting_before(node):
        parts = {name: call_method(graph, arguments[name], "narrow", -2, 0, count) for name in ("key", "value")}
    _set_arguments(node, arguments | parts | {"attn_mask": None})


def drop(graph: GraphModule, node: Node, may_go: Callable[[Node], bool] = lambda node: False) -> None:
    """Erase a call that nothing reads any more, and what only it read: pure calls, and others that `may_go`."""
    if node.users or not (_is_pure(node) or may_go(node)):
        return
    read = list(node.all_input_nodes)
    graph.graph.erase_node(node)
    for each in read:
        drop(graph, each, may_go)


def arguments_of(attention: Node) -> dict[str, Any]:
    """The arguments of a call of `scaled_dot_product_attention`, each by its name."""
    return dict(zip(_PARAMETERS, attention.args, strict=False)) | attention.kwargs


def _set_arguments(node: Node, arguments: dict[str, Any]) -> None:
    node.args = ()
    node.kwargs = arguments


def _visible(mask: torch.Tensor) -> torch.Tensor | str:
    """Who sees whom, or why that is not said. Of floats 0 means visible, -inf or the least number hidden.

    Beside a visible place the least number gives a weight of 0 as well, and under the causal mask each row has one.
    """
    if mask.dtype == torch.bool:
        return mask
    if not mask.dtype.is_floating_point:
        return "it is of integers"
    visible = mask == 0
    hidden = mask <= torch.finfo(mask.dtype).min
    return visible if bool((visible | hidden).all()) else "it has other numbers than 0 and those that hide"


def judge_mask(mask: Node, written: set[Node], is_hiding: bool = False) -> _Judgement:
    """What a mask is proved to mean, or what is in the way: by its elements, or for all sizes that are symbols.

    written: values that a call may write to, as `written_values` finds them, with what they depend on
    is_hiding: true stands for what is hidden
    """
    if overwritten := min(ancestors([mask]) & written, default=None):
        return None, f"{overwritten.name} is written in place"
    shape = mask.meta["example_value"].shape
    if len(shape) >= 2 and all(isinstance(size, int) for size in shape):
        value = _evaluate(mask)
        if isinstance(value, str):
            return None, value
        if is_hiding and value.dtype != torch.bool:
            return None, "it is no mask of truths"
        visible = _visible(~value if is_hiding else value)
        kind = visible if isinstance(visible, str) else kind_of(visible)
        return (kind, "") if kind in (VISIBLE, CAUSAL) else (None, kind)
    try:
        return meaning(mask, is_hiding), ""
    except UnknownTermError as error:
        return None, str(error)


def evaluated(mask: Node, written: set[Node]) -> torch.Tensor | None:
    """The elements of a mask of constant sizes that depends on nothing; None for others."""
    if any(node in written for node in ancestors([mask])):
        return None
    if not all(isinstance(size, int) for size in mask.meta["example_value"].shape):
        return None
    value = _evaluate(mask)
    return value if isinstance(value, torch.Tensor) else None


def sees_itself(mask: Node, written: set[Node], is_hiding: bool = False) -> bool:
    """Whether each position is proved to see the key of its own, of a mask of truths between the same positions."""
    if any(node in written for node in ancestors([mask])):
        return False
    try:
        return shows_diagonal(mask, is_hiding)
    except UnknownTermError:
        return False


def _evaluate(mask: Node) -> torch.Tensor | str:
    """The elements of a mask of constant sizes, or why they are not known."""
    shape = mask.meta["example_value"].shape
    if shape.numel() > _MOST_ELEMENTS or shape.numel() == 0:
        return f"it has {shape.numel()} elements"
    values: dict[Node, Any] = {}
    needed = ancestors([mask])
    with without_modes(), torch.no_grad():
        for node in mask.graph.nodes:
            if node not in needed:
                continue
            if not _is_pure(node):
                return f"it depends on {described(node)}"
            args, kwargs = map_arg((node.args, dict(node.kwargs)), values.__getitem__)
            values[node] = _run(node, _on_cpu(args), _on_cpu(kwargs))
    value = values[mask]
    same = isinstance(value, torch.Tensor) and value.shape == shape
    return value if same and value.dtype == mask.meta["example_value"].dtype else "it is no tensor of its type"


def _run(node: Node, args: Any, kwargs: Any) -> Any:
    if callable(node.target):
        return node.target(*args, **kwargs)
    return getattr(args[0], node.target)(*args[1:], **kwargs)


def _on_cpu(value: Any) -> Any:
    """Arguments with devices replaced by the CPU."""
    if isinstance(value, torch.device):
        return torch.device(HOST)
    if isinstance(value, dict):
        return {key: torch.device(HOST) if key == "device" else _on_cpu(each) for key, each in value.items()}
    if isinstance(value, slice):
        return value
    return type(value)(map(_on_cpu, value)) if type(value) in (tuple, list) else value


def _is_pure(node: Node) -> bool:
    """Whether a call gives the same in every run, of arguments that are values of the graph alone."""
    if isinstance(node.meta.get("example_value"), torch.SymInt) or "out" in node.kwargs:
        return False
    if node.op == "call_function":
        name = getattr(node.target, "__name__", "")
        is_method = name in _METHODS and getattr(torch.Tensor, name, None) is node.target
        return is_method or node.target in _FUNCTIONS or computed_attribute(node) is not None
    return node.op == "call_method" and node.target in _METHODS


def _lay_out(graph: GraphModule, node: Node, mask: Node, arguments: dict[str, Any]) -> None:
    """Give the rows of a mask on a GPU elements side by side; what repeats over batch and heads still does."""
    value = mask.meta["example_value"]
    if not library_of(value.device.type).reads_mask_rows or value.dim() < 2 or known_true(value.stride(-1) == 1):
        return
    if not counter("prove-attention-masks"):
        return
    remark("passed", _NAME, None, f"the mask of {node.name} is laid out in rows")
    with graph.graph.inserting_before(node):
        row = mask
        for dim in range(value.dim() - 2):
            if known_true(value.stride(dim) == 0):
                row = call_method(graph, row, "narrow", dim, 0, 1)
        row = call_method(graph, row, "contiguous")
        row = call_method(graph, row, "expand_as", mask)
    _set_arguments(node, arguments | {"attn_mask": row})


def call_method(graph: GraphModule, on: Node, method: str, *args: Any) -> Node:
    """A new call with its example value, at the place where the graph inserts."""
    node = graph.graph.call_method(method, (on, *args))
    fake = map_arg(args, lambda each: each.meta["example_value"])
    with on.meta["example_value"].fake_mode:
        node.meta["example_value"] = getattr(on.meta["example_value"], method)(*fake)
    return node
