"""Attention with its gradients as a question: what a joint graph has of it, as a joint graph of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.effects import is_pure
from ...dialects.raw import operands_of
from ..analysis.slices import backward_slice
from ..common.copies import copy_op
from ..printing import module_text
from ._alternatives import behind_views, is_fused
from ._joint import FORWARD_RESULTS, TANGENT, UNIT, count_attr, set_argument_marks
from ._questions import MOST_OPS, at_hints, is_between
from ._scores import Scores, gradient_product
from ._segments import is_view
from ._ways import gradients_of_way

#: ops of both ways, forward and backward; more are no question
_MOST = 4 * MOST_OPS


def training_text(
    function: FuncOp,
    products: Collection[Operation],
    reader: AtenOp,
    scores: Scores,
    late: Collection[SSAValue],
    way: CallOp | None,
) -> str | None:
    """An attention and its gradients as a joint function at the sizes that were seen; None where that is none.

    products: of its scores
    reader:   its last product
    late:     values that exist in the backward graph only
    way:      the choice between it and a library's call, if there is one, which the function leaves open
    """
    assert reader.parent is not None
    ops = list(reader.parent.ops)
    if way is None:
        found = _written(ops, products, reader, scores, late)
    else:
        found = _both_ways(way, late)
    if found is None or len(found) > _MOST:
        return None
    found |= _views_in_front(found)
    return _joint_text([op for op in ops if op in found], function, late)


def _written(
    ops: Sequence[Operation],
    products: Collection[Operation],
    reader: AtenOp,
    scores: Scores,
    late: Collection[SSAValue],
) -> set[Operation] | None:
    """The ops of an attention that is written out: products, what is between them, and what is made of both."""
    own = frozenset(products)
    early = {reader, *products}
    early.update(backward_slice([reader.operands[0]], lambda op: op not in own and is_between(op)))
    behind: set[Operation] = set()
    for op in ops:
        if not any(result in late for result in op.results):
            continue
        made = frozenset[Operation]().union(*(scores.origins.get(result, frozenset()) for result in op.results))
        read = scores.read_by[op] if op in scores.readers else frozenset[Operation]()
        if own & (made | read):
            behind.add(op)
            behind |= _up_to_product(op)
    return early | behind if behind else None


def _up_to_product(op: Operation) -> set[Operation]:
    """The product that the gradient of a softmax is given, and views and casts behind it."""
    product = gradient_product(op) if isinstance(op, AtenOp) else None
    if product is None:
        return set()
    return {product, *backward_slice([op.operands[0]], lambda each: each is not product and is_between(each))}


def _both_ways(way: CallOp, late: Collection[SSAValue]) -> set[Operation] | None:
    """The ops of a choice and of the gradients of both ways."""
    fused = behind_views(operands_of(way)[0])
    ends = gradients_of_way(way)
    if not isinstance(fused, AtenOp) or not is_fused(fused) or not ends:
        return None
    bases = {behind_views(value) for value in fused.operands[:3]}
    early = set(backward_slice(operands_of(way), lambda op: op not in bases and _may_be_inside(op)))
    gradient = _gradient_of(fused, late)
    if gradient is None:
        return None
    begin = behind_views(gradient)
    behind = backward_slice(
        [value for op in ends for value in op.operands],
        lambda op: op is not begin and _may_be_inside(op) and any(result in late for result in op.results),
    )
    return {*early, way, *behind, *ends}


def _may_be_inside(op: Operation) -> bool:
    return is_fused(op) or (isinstance(op, AtenOp) and not op.regions and is_pure(op))


def _gradient_of(fused: AtenOp, late: Collection[SSAValue]) -> SSAValue | None:
    """What the backward of a library's attention is given as the gradient of its result."""
    users = {use.operation for result in fused.results for use in result.uses}
    for op in users:
        if is_fused(op) and any(result in late for result in op.results):
            return next((value for value in operands_of(op) if value in late), None)
    return None


def _views_in_front(ops: Collection[Operation]) -> set[Operation]:
    """Views and copies of what is given, so that what is the same stays so, and what is made of nothing."""
    given = [value for op in ops for value in operands_of(op) if value.owner not in ops]
    known: dict[Operation, bool] = {}

    def enters(op: Operation) -> bool:
        if op in ops or not isinstance(op, AtenOp) or not is_pure(op):
            return False
        is_copy = len(operands_of(op)) == 1 and (is_view(op) or op.packet in ("clone", "_to_copy"))
        return is_copy or _is_made_of_nothing(op, known)

    return set(backward_slice(given, enters))


def _is_made_of_nothing(op: Operation, known: dict[Operation, bool]) -> bool:
    """Whether an op computes the same whatever a graph is given: places, masks by them, constants."""
    if op not in known:
        known[op] = False
        made = (value.owner for value in operands_of(op))
        inside = (isinstance(each, Operation) and _is_made_of_nothing(each, known) for each in made)
        known[op] = is_between(op) and all(inside)
    return known[op]


def _joint_text(chosen: Sequence[Operation], function: FuncOp, late: Collection[SSAValue]) -> str | None:
    """Ops as a joint function that returns what others read."""
    members = set(chosen)
    inside = {result for op in chosen for result in op.results}
    given = dict.fromkeys(v for op in chosen for v in operands_of(op) if v not in inside)
    if not all(isinstance(value.type, TensorType) for value in given):
        return None
    read = [r for op in chosen for r in op.results if any(use.operation not in members for use in r.uses)]
    forward, backward = [r for r in read if r not in late], [r for r in read if r in late]
    if not forward or not backward:
        return None
    place = {op: k for k, op in enumerate(function.body.block.ops)}
    backward.sort(key=lambda r: place[_sum_of(r)])  # gradients of one value by either way come at the same place
    block = Block(arg_types=[value.type for value in given])
    values: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
    for op in chosen:
        block.add_op(copy_op(op, values))
    returned = [values[r] for r in (*forward, *backward)]
    block.add_op(ReturnOp(*returned))
    _forget_names(block.ops)
    type_ = FunctionType.from_lists([arg.type for arg in block.args], [each.type for each in returned])
    joint = FuncOp("f", type_, Region(block))
    joint.attributes[FORWARD_RESULTS] = count_attr(len(forward))
    marks: list[dict[str, Attribute]] = [{TANGENT: UNIT} if value in late else {} for value in given]
    set_argument_marks(joint, marks)
    return at_hints(module_text(joint), function)


def _sum_of(value: SSAValue) -> Operation:
    """The op that adds the last summand to a gradient, through views and casts; the one that makes it, if none does."""
    op = value.owner
    assert isinstance(op, Operation)
    while True:
        uses = [use for result in op.results for use in result.uses]
        user = uses[0].operation if len(uses) == 1 else None
        if not isinstance(user, AtenOp) or not (user.packet in ("add", "_to_copy", "clone") or is_view(user)):
            return op
        op = user


def _forget_names(ops: Iterable[Operation]) -> None:
    for value in (result for op in ops for result in op.results):
        value.name_hint = None
