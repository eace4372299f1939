"""`graph-split-softmax`: two numbers of each row are all that backward needs of a softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i1
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.aten.types import type_of
from ...dialects.machine import targets_of
from ...dialects.sym import ONE, Ranges, prove_le
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._joint import forward_results, late_values
from ._recompute import RecomputeClass, recompute_class
from ._scores import scores_among
from ._segments import readers

_TARGETS = frozenset({"aten._softmax", "aten._log_softmax", "aten._safe_softmax"})


@dataclass(frozen=True)
class SplitSoftmax(AtenPass):
    """Write a softmax, or its logarithm, that backward reads as what it is made of.

    level:         aten, functions with `forward_results` (see `passes/graph/_joint.py`)
    precondition:  stands before `graph-partition`
    guarantee:     the same values, computed in the same steps as those of the one op. `aten._softmax`,
                   `aten._safe_softmax` and `aten._log_softmax` are split whose result an op of the backward graph
                   reads, where both are
                   contiguous and the rows are known not to be empty; not what is in memory, because the forward graph
                   returns it or an op that fuses with nothing reads it: with the option `loop_products` products of
                   the softmax of scores fuse (`_scores.py`).

    As one op it is kept whole or run again whole: memory for all of its elements, or two more passes over them, for the
    maximum and the sum of each row. Of the parts, the partition saves these two, and what is left is elementwise.

        %y = aten._log_softmax(%x, dim = 1, half_to_float = false) : !aten.tensor<4x10xf32>
    becomes
        %m = aten.amax(%x, dim = [1], keepdim = true) : !aten.tensor<4x1xf32>
        %d = aten.sub.Tensor(%x, %m) : !aten.tensor<4x10xf32>
        %e = aten.exp(%d) : !aten.tensor<4x10xf32>
        %s = aten.sum.dim_IntList(%e, dim = [1], keepdim = true) : !aten.tensor<4x1xf32>
        %l = aten.log(%s) : !aten.tensor<4x1xf32>
        %y = aten.sub.Tensor(%d, %l) : !aten.tensor<4x10xf32>
    and of `aten._softmax` the last two are
        %r = aten.reciprocal(%s) : !aten.tensor<4x1xf32>
        %y = aten.mul.Tensor(%e, %r) : !aten.tensor<4x10xf32>
    Where loops of products read the softmax of scores, backward has exp(x - l) with l = %m + log(%s), so that it gets
    one number of each row. Of `aten._safe_softmax`, which is 0 in a row of -inf, forward reads %y with a 0 in such
    rows, and backward has an infinite l for them.
    """

    name = "graph-split-softmax"
    loop_products: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every joint function of the module."""
        count = forward_results(function)
        found = [each for each in block.ops if isinstance(each, AtenOp) and each.target in _TARGETS]
        if count is None or not found:
            return
        module = function.parent_op()
        assert module is not None
        scores = scores_among(block.ops, targets_of(module), every=self.loop_products)
        fused = scores.readers
        ranges, late = symbol_ranges(function), late_values(function, block)
        assert isinstance(block.last_op, ReturnOp)
        returned = set(block.last_op.operands[:count])
        for each in found:
            reason = _objection(each, returned, late, ranges, fused)
            if reason is not None:
                remark("missed", self.name, each, reason)
            elif counter(self.name):
                _split(each, late, each.results[0] in scores.origins)
                remark("passed", self.name, each, "split into statistics of rows and an elementwise step")


def _objection(
    op: AtenOp, returned: set[SSAValue], late: set[SSAValue], ranges: Ranges, fused: set[Operation]
) -> str | None:
    """Why an op stays as it is."""
    (result,) = op.results
    if result in returned:
        return "the forward graph returns it: it is in memory"
    if not any(value in late for use in result.uses for value in use.operation.results):
        return "backward does not read it"
    if any(_fuses_with_nothing(reader) for reader in readers(result) if reader not in fused):
        return "an op that fuses with nothing reads it: it is in memory"
    source, type_ = type_of(op.operands[0]), type_of(result)
    if not source.shape or not source.is_contiguous or not type_.is_contiguous:
        return "no contiguous rows"
    size = source.shape[op.arg("dim")]
    return None if prove_le(ONE, size, ranges) else "its rows may be empty"


def _fuses_with_nothing(op: Operation) -> bool:
    return not isinstance(op, ReturnOp) and recompute_class(op) in (RecomputeClass.HEAVY, RecomputeClass.NEVER)


def _split(op: AtenOp, late: set[SSAValue], is_fused: bool) -> None:
    """Rows are computed in float32 at least, as the one op does. `is_fused`: loops of products read the result."""
    source, result = op.operands[0], op.results[0]
    dim, element = op.arg("dim"), type_of(source).element
    if isinstance(element, BFloat16Type | Float16Type):
        element = Float32Type()
    whole = type_of(source).with_(element=element)
    kept = list(whole.shape)
    kept[dim] = ONE
    row = whole.with_(shape=tuple(kept))
    make = _Maker(op)
    x = make.cast(source, whole)
    along = {"dim": (dim,), "keepdim": True}
    highest = make("aten.amax", {"self": x, **along}, row, "amax")
    centered = make("aten.sub.Tensor", {"self": x, "other": highest}, whole, "sub")
    powers = make("aten.exp", {"self": centered}, whole, "exp")
    total = make("aten.sum.dim_IntList", {"self": powers, **along}, row, "sum")
    if op.target == "aten._log_softmax":
        logarithm = make("aten.log", {"self": total}, row, "log")
        value = make("aten.sub.Tensor", {"self": centered, "other": logarithm}, whole, "sub")
    else:
        inverse = make("aten.reciprocal", {"self": total}, row, "reciprocal")
        value = make("aten.mul.Tensor", {"self": powers, "other": inverse}, whole, "mul")
    hidden: SSAValue | None = None
    if op.target == "aten._safe_softmax":
        hidden = make("aten.isneginf", {"self": highest}, row.with_(element=i1), "hidden")
        value = make("aten.masked_fill.Scalar", {"self": value, "mask": hidden, "value": 0.0}, whole, "seen")
    if op.target != "aten._log_softmax" and (is_fused or hidden is not None):
        again = make.cast(_again(make, x, highest, total, hidden), type_of(result))
        _read_again(result, again, late)
    result.replace_all_uses_with(make.cast(value, type_of(result)))
    assert op.parent is not None
    op.parent.erase_op(op)


def _again(make: _Maker, x: SSAValue, highest: SSAValue, total: SSAValue, hidden: SSAValue | None) -> SSAValue:
    """The same softmax for backward: exp(x - l), with one number of each row, infinite for a hidden one."""
    row, whole = type_of(highest), type_of(x)
    logarithm = make("aten.log", {"self": total}, row, "log")
    behind = make("aten.add.Tensor", {"self": highest, "other": logarithm}, row, "logsumexp")
    if hidden is not None:
        behind = make("aten.masked_fill.Scalar", {"self": behind, "mask": hidden, "value": inf}, row, "logsumexp")
    centered = make("aten.sub.Tensor", {"self": x, "other": behind}, whole, "sub")
    return make("aten.exp", {"self": centered}, whole, "exp")


def _read_again(value: SSAValue, again: SSAValue, late: set[SSAValue]) -> None:
    """Let ops of backward read what is computed again, by way of views and elementwise ops of their own.

    They are new ones: whoever writes a joint graph back takes the operands of others for what they were.
    """
    for op in dict.fromkeys(use.operation for use in value.uses):
        is_late = not late.isdisjoint(op.results)
        if not is_late and recompute_class(op) not in (RecomputeClass.FREE, RecomputeClass.CHEAP):
            continue
        copy = op.clone()
        copy.operands = [again if each is value else each for each in op.operands]
        assert op.parent is not None
        op.parent.insert_op_after(copy, op)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            if is_late:
                old.replace_all_uses_with(new)
                late.add(new)
            else:
                _read_again(old, new, late)
        for each in (op, copy):
            if all(result.first_use is None for result in each.results):
                op.parent.erase_op(each)


@dataclass(frozen=True)
class _Maker:
    """Makes ops in front of one, with its attributes."""

    before: AtenOp

    def __call__(self, target: str, args: Mapping[str, Any], type_: TensorType, hint: str) -> SSAValue:
        """Insert an op; its result."""
        new = AtenOp.of(target, args, (type_,), self.before.location)
        new.attributes.update(self.before.attributes)
        new.results[0].name_hint = hint
        assert self.before.parent is not None
        self.before.parent.insert_op_before(new, self.before)
        return new.results[0]

    def cast(self, value: SSAValue, type_: TensorType) -> SSAValue:
        """A value of the element type of another one."""
        same = type_of(value).element == type_.element
        return value if same else self("aten._to_copy", {"self": value, "dtype": type_.element}, type_, "cast")
