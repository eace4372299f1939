"""`graph-reassociate-row-sums`: the row sums in a softmax's gradient are those of a product that forward has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.aten.types import type_of
from ...dialects.machine import targets_of
from ...dialects.sym import ONE
from ...records import dataclass
from ..analysis.memory import roots
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._joint import CHECKPOINT, PLACEMENT, WORDS, forward_results, word
from ._scores import scores_among

_VIEWS = frozenset({"aten.view", "aten._unsafe_view", "aten.expand", "aten.reshape"})
_COPIES = frozenset({"aten._to_copy"})


@dataclass(frozen=True)
class ReassociateRowSums(AtenPass):
    """Take the row sums that the gradient of a softmax subtracts from the product that the softmax is multiplied in.

    level:         aten, functions with `forward_results` (see `passes/graph/_joint.py`)
    precondition:  before `graph-split-softmax` and `graph-partition`. Only with the option `loop_products`, or where
                   scores were chosen to be loops that compute their products again (`_scores.py`).
    guarantee:     `aten._softmax_backward_data(%g, %p)` is p*(g - s), with the sums s of the rows of g*p. Where g is
                   the product of %t and the transpose of %v, and forward multiplies p with %v to %o, the sums are those
                   of the rows of t*o, which have as many elements as heads are wide: sum_k p_k sum_d t_d v_kd is
                   sum_d t_d sum_k p_k v_kd. So nobody reads both matrices for the sums. They are as exact as %o is, in
                   float32 at least.
                   Where forward returns %o, which the caller may overwrite, backward gets a copy of it. Products of
                   checkpointed regions stay as they are.

        %o = aten.bmm(%p, %v) : !aten.tensor<2x64x16xf32>
        %g = aten.bmm(%t, %w) : !aten.tensor<2x64x64xf32>  // %w is the transpose of %v
        %d = aten._softmax_backward_data(%g, %p, dim = -1, input_dtype = torch.float32) : !aten.tensor<2x64x64xf32>
    becomes
        %m = aten.mul.Tensor(%t, %o)   %s = aten.sum.dim_IntList(%m, dim = [-1], keepdim = true)
        %c = aten.sub.Tensor(%g, %s)   %d = aten.mul.Tensor(%p, %c)
    """

    name = "graph-reassociate-row-sums"
    loop_products: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every joint function of the module."""
        count, module = forward_results(function), function.parent_op()
        if count is None or module is None:
            return
        found = [op for op in block.ops if isinstance(op, AtenOp) and op.target == "aten._softmax_backward_data"]
        readers = scores_among(block.ops, targets_of(module), self.loop_products).readers if found else set[Operation]()
        assert isinstance(block.last_op, ReturnOp)
        returned = {root for value in block.last_op.operands[:count] for root in (value, *roots(value))}
        for op in found:
            pair = _products(op, readers)
            if pair is not None and counter(self.name):
                _rewrite(op, *pair, pair[0].results[0] in returned)
                remark("passed", self.name, op, "sums of rows are those of the result and its gradient")


def _products(op: AtenOp, readers: set[Operation]) -> tuple[AtenOp, AtenOp] | None:
    """The product that forward multiplies a softmax in, and that of which its gradient is made; None for others."""
    gradient = _behind_copies(op.operands[0]).owner
    shape = type_of(op.operands[0]).shape
    if op.arg("dim") not in (-1, len(shape) - 1) or not isinstance(gradient, AtenOp) or gradient.target != "aten.bmm":
        return None
    turned = gradient.operands[1].owner
    if not isinstance(turned, AtenOp) or turned.target != "aten.transpose.int":
        return None
    if {turned.arg("dim0") % 3, turned.arg("dim1") % 3} != {1, 2}:
        return None
    for reader in readers:
        if isinstance(reader, AtenOp) and reader.target == "aten.bmm" and reader.operands[1] is turned.operands[0]:
            weights = _behind_copies(reader.operands[0])
            runs_again = bool(word(reader, CHECKPOINT))
            if weights is _behind_copies(op.operands[1]) and reader.is_before_in_block(op) and not runs_again:
                return reader, gradient
    return None


def _behind_copies(value: SSAValue) -> SSAValue:
    """What a value is a cast, or a view with the same rows, of."""
    while isinstance(op := value.owner, AtenOp) and op.target in _VIEWS | _COPIES:
        if type_of(op.operands[0]).shape[-2:] != type_of(value).shape[-2:]:
            break
        value = op.operands[0]
    return value


def _rewrite(op: AtenOp, product: AtenOp, gradient: AtenOp, is_returned: bool) -> None:
    """Build the sums of rows, and the gradient with them."""
    block, whole = op.parent, type_of(op.results[0])
    assert block is not None
    is_narrow = isinstance(whole.element, BFloat16Type | Float16Type)
    exact = whole.with_(element=Float32Type()) if is_narrow else whole

    def make(target: str, args: Mapping[str, Any], type_: TensorType, hint: str, before: Operation = op) -> SSAValue:
        new = AtenOp.of(target, args, (type_,), op.location)
        new.attributes.update(op.attributes)
        new.results[0].name_hint = hint
        block.insert_op_before(new, before)
        return new.results[0]

    def wide(value: SSAValue) -> SSAValue:
        kind = type_of(value).with_(element=exact.element)
        same = type_of(value).element == exact.element
        return value if same else make("aten._to_copy", {"self": value, "dtype": exact.element}, kind, "cast")

    result = product.results[0]
    flat = type_of(result)
    if is_returned:
        result = _shaped_as_returned(result)
        owner = result.owner
        assert isinstance(owner, Operation) and owner.next_op is not None
        result = make("aten.clone", {"self": result}, type_of(result), "kept", owner.next_op)
        assert isinstance(result.owner, Operation)
        result.owner.attributes[PLACEMENT] = WORDS["forward"]
        if type_of(result).shape != flat.shape:
            result = make("aten.view", {"self": result, "size": _sizes(flat.shape)}, flat, "flat")
    pair = wide(gradient.operands[0]), wide(result)
    flat = type_of(pair[1])
    terms = make("aten.mul.Tensor", {"self": pair[0], "other": pair[1]}, flat, "mul")
    row = flat.with_(shape=(*flat.shape[:-1], ONE))
    sums = make("aten.sum.dim_IntList", {"self": terms, "dim": (-1,), "keepdim": True}, row, "sum")
    if len(whole.shape) != len(row.shape):
        shape = (*whole.shape[:-1], ONE)
        sums = make("aten.view", {"self": sums, "size": _sizes(shape)}, exact.with_(shape=shape), "sums")
    apart = make("aten.sub.Tensor", {"self": op.operands[0], "other": sums}, exact, "sub")
    value = make("aten.mul.Tensor", {"self": op.operands[1], "other": apart}, exact, "mul")
    if is_narrow:
        value = make("aten._to_copy", {"self": value, "dtype": whole.element}, whole, "cast")
    op.results[0].replace_all_uses_with(value)
    block.erase_op(op)


def _shaped_as_returned(value: SSAValue) -> SSAValue:
    """A product, or the view with its batches apart: a copy of what lies so needs no quotients of indices."""
    for use in value.uses:
        op = use.operation
        if (
            isinstance(op, AtenOp)
            and op.target in _VIEWS
            and type_of(op.results[0]).shape[-2:] == type_of(value).shape[-2:]
        ):
            return op.results[0]
    return value


def _sizes(shape: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(size.as_int() if size.as_int() is not None else size for size in shape)
