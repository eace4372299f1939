"""`graph-round-decisions`: what a comparison or an index depends on is rounded as the program says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.raw import operands_of, ops_of, type_of
from ..common.rounding import ROUNDED, UNIT, is_rounded
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._dtypes import is_float
from ._joint import PARTITION, word
from ._recompute import RecomputeClass, recompute_class

#: functions with steps whose results are floats; those with results that are bools or integers are known by these
_STEPS = frozenset({
    "ceil", "floor", "floor_divide", "fmod", "frac", "heaviside", "nextafter", "remainder", "round", "sgn", "sign",
    "trunc",
})  # fmt: skip
#: functions whose answer rounding does not change, but for what is near the largest number; which sign a NaN gets by
#: rounding differs among eager's own kernels
_INDIFFERENT = frozenset({"isnan", "isneginf", "isposinf", "signbit"})
_16_BITS = (Float16Type, BFloat16Type)


class RoundDecisions(AtenPass):
    """Mark the ops of 16 bits on which a decision depends, so that their results are rounded wherever they are used.

    level:         aten; also joint functions, behind `graph-partition`
    precondition:  none
    guarantee:     of a value of 16 bits, all that a decision depends on is `rounded`, up to what is in memory anyway:
                   arguments, and results of ops that fuse with nothing and run once.

    Inside a kernel values of 16 bits keep the digits that they are computed with, while those in memory are rounded.
    For arithmetic either is as good. But a decision (a comparison, an index, a step as of `floor`) takes another way
    for the slightest difference: the gradient of a maximum goes to the elements that equal it, and where the maximum
    was saved, none of those that are computed again need be equal to it.

        %p = aten.mul.Tensor(%x, %y) : !aten.tensor<4x8xbf16>
        %m = aten.amax(%p, dim = [-1], keepdim = true) : !aten.tensor<4x1xbf16>
        %e = aten.eq.Tensor(%p, %m) : !aten.tensor<4x8xi1>
    becomes
        %p = aten.mul.Tensor(%x, %y) {rounded} : !aten.tensor<4x8xbf16>
        %m = aten.amax(%p, dim = [-1], keepdim = true) {rounded} : !aten.tensor<4x1xbf16>
        %e = aten.eq.Tensor(%p, %m) : !aten.tensor<4x8xi1>
    """

    name = "graph-round-decisions"
    optional: ClassVar[bool] = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        for each in _depended_on(_decided_of(block)):
            if not is_rounded(each) and counter(self.name):
                each.attributes[ROUNDED] = UNIT
                remark("passed", self.name, each, "rounded wherever it is used, as a decision depends on it")


def _decided_of(block: Block) -> Iterator[SSAValue]:
    """The floating-point operands of the ops that decide."""
    for op in ops_of(block):
        if not isinstance(op, AtenOp) or op.packet in _INDIFFERENT:
            continue
        if op.packet in _STEPS or _divides(op) or any(map(_is_discrete, op.results)):
            yield from filter(_has_floats, operands_of(op))


def _divides(op: AtenOp) -> bool:
    """Whether it is a division that rounds its quotient to an integer."""
    return op.packet == "div" and "rounding_mode" in op.schema.by_name and op.arg("rounding_mode") is not None


def _has_floats(value: SSAValue) -> bool:
    kind = type_of(value)
    return type(kind) is TensorType and is_float(kind.element)


def _is_discrete(value: SSAValue) -> bool:
    kind = type_of(value)
    return type(kind) is TensorType and type(kind.element) is IntegerType


def _depended_on(values: Iterable[SSAValue]) -> Iterator[Operation]:
    """The ops of 16 bits that the values depend on, through floats that a kernel may compute again."""
    seen: set[Operation] = set()
    pending = [value.owner for value in values]
    while pending:
        op = pending.pop()
        if isinstance(op, Block) or op in seen:
            continue
        seen.add(op)
        if not _is_computed_anywhere(op):
            continue
        if any(isinstance(r.type, TensorType) and isinstance(r.type.element, _16_BITS) for r in op.results):
            yield op
        pending += [value.owner for value in op.operands if _has_floats(value)]


def _is_computed_anywhere(op: Operation) -> bool:
    """Whether a value may be computed in several kernels or graphs, instead of lying in memory for all of them."""
    if not isinstance(op, AtenOp | CallOp):
        return False
    kind = recompute_class(op)
    return kind not in (RecomputeClass.HEAVY, RecomputeClass.NEVER) or word(op, PARTITION) == "recompute"
