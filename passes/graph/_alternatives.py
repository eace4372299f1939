"""Attention that stands in a graph twice, as a library's call and written out: `inductile::either` of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.effects import has_side_effect, is_pure
from ...dialects.raw import operands_of
from ...dialects.sym import ONE, Expr
from ...records import dataclass
from ..analysis.slices import backward_slice
from ..common.choices import EITHER
from ._questions import MOST_OPS, Group, is_between
from ._segments import is_view

_FUSED = "_scaled_dot_product"
#: attention whose functions are graphs: pure ones
_OF_FUNCTIONS = ("higher_order::flex_attention", "higher_order::flex_attention_backward")
_MASKS = ("attn_bias", "attn_mask")
CALLS, CALLS_BEHIND_ROWS = "call", "call:rows"


@dataclass(frozen=True)
class Alternative:
    """A choice that a graph leaves open.

    either:  the op that stands for it; its first operand is the library's way, its second one is written out
    written: what is written out
    library: what the library does: `CALLS` a kernel with a mask, which takes the largest number of each row first
             (`CALLS_BEHIND_ROWS`), or a kernel that reads none, for it is causal or everything is visible (empty)
    whole:   the ops of both ways, the choice itself the last; None where they do not compute it of the same values
    """

    either: CallOp
    written: Group
    library: str
    whole: Group | None


def is_fused(op: Operation) -> bool:
    """Whether an op is a library's attention, or its gradients, which are a plain call where some of them are none."""
    if isinstance(op, CallOp):
        return op.target.startswith(f"aten::{_FUSED}")
    return isinstance(op, AtenOp) and op.packet.startswith(_FUSED)


def is_either(op: Operation) -> bool:
    """Whether an op is a choice."""
    return isinstance(op, CallOp) and op.target == EITHER


def take(either: Operation, second: bool) -> None:
    """Keep one way, and drop what only the other one needs."""
    block = either.parent
    assert block is not None
    first, other = operands_of(either)
    either.results[0].replace_all_uses_with(other if second else first)
    block.erase_op(either)
    drop(block, [first if second else other])


def drop(block: Block, values: Iterable[SSAValue]) -> None:
    waiting = [value.owner for value in values]
    while waiting:
        op = waiting.pop()
        if isinstance(op, Block) or op.parent is not block or any(r.first_use is not None for r in op.results):
            continue
        if _may_go(op):
            waiting += [value.owner for value in operands_of(op)]
            block.erase_op(op)


def _may_go(op: Operation) -> bool:
    """Whether an op does nothing but compute. The library's attention draws numbers only for what it drops."""
    if isinstance(op, AtenOp) and op.packet.startswith(_FUSED):
        return op.arg("dropout_p") == 0.0
    is_pure_call = isinstance(op, CallOp) and (op.target in _OF_FUNCTIONS or is_fused(op))
    return is_pure_call or not has_side_effect(op)


def alternative_of(either: CallOp, groups: Sequence[Group], order: Mapping[Operation, int]) -> Alternative | None:
    """The two ways of a choice; None where they are not an attention each."""
    first, second = operands_of(either)
    last, fused = behind_views(second), behind_views(first)
    group = next((each for each in groups if each.is_attention and each.products[-1] is last), None)
    if group is None or not isinstance(fused, AtenOp) or not fused.packet.startswith(_FUSED):
        return None
    return Alternative(either, group, way_of_library(fused), _whole(either, group, fused, order))


def way_of_library(fused: AtenOp) -> str:
    """What a library's attention does for its mask, as `Alternative` has it."""
    bias = next((fused.arg(name) for name in _MASKS if name in fused.schema.by_name), None)
    return _way_to_mask(bias) if isinstance(bias, SSAValue) else ""


def _way_to_mask(bias: SSAValue) -> str:
    """Whether a mask is made with the largest number of each of its rows, for which all of it is read before."""
    made = backward_slice([bias], lambda op: isinstance(op, AtenOp) and (is_between(op) or reduces_rows(op)))
    for op in made:
        shape = _shape(operands_of(op)[0]) if isinstance(op, AtenOp) and op.packet == "amax" else ()
        if len(shape) > 1 and shape[-2] is not ONE:
            return CALLS_BEHIND_ROWS
    return CALLS


def _shape(value: SSAValue) -> tuple[Expr, ...]:
    assert isinstance(value.type, TensorType)
    return value.type.shape


def behind_views(value: SSAValue) -> Operation | Block:
    """What a value is made by, in front of views, and of copies."""
    op = value.owner
    while isinstance(op, AtenOp) and is_pure(op) and (is_view(op) or op.packet == "clone"):
        op = operands_of(op)[0].owner
    return op


def _whole(either: CallOp, group: Group, fused: AtenOp, order: Mapping[Operation, int]) -> Group | None:
    """The ops of both ways as a function of queries, keys, values and what masks are made of."""
    *inputs, bias = (
        fused.arg(name) if name in fused.schema.by_name else None for name in ("query", "key", "value", "attn_bias")
    )
    shared = {value for value in inputs if isinstance(value, SSAValue)}
    members: set[Operation] = {either, fused, *group.ops}
    ends = [*operands_of(either), *(value for op in group.products for value in operands_of(op))]
    if isinstance(bias, SSAValue):
        ends.append(bias)
    waiting = list(ends)
    while waiting:
        value = waiting.pop()
        op = value.owner
        if value in shared or op in members or not isinstance(op, Operation) or op not in order:
            continue
        if isinstance(op, AtenOp) and is_pure(op) and not op.regions and (is_between(op) or reduces_rows(op)):
            members.add(op)
            waiting += operands_of(op)
            if len(members) > 2 * MOST_OPS:
                return None
    chosen = tuple(sorted(members, key=order.__getitem__))
    inside = {result for op in chosen for result in op.results}
    given = {value for op in group.products for value in operands_of(op)} - inside
    same = given <= shared and all(isinstance(value.type, TensorType) for value in given)
    return Group(chosen, group.products, is_attention=True) if same else None


def reduces_rows(op: AtenOp) -> bool:
    """Whether an op is one that masks of fused kernels are made with."""
    return op.packet in ("amax", "any", "all", "clone", "constant_pad_nd", "arange", "full")
