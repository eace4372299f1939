"""`graph-join-moments`: a variance and a mean of the same elements are one op."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.raw import ops_of
from ..common.locations import merged
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark

_Key = tuple[SSAValue, frozenset[int], bool]


class JoinMoments(AtenPass):
    """Make one op of a variance and a mean that reduce the same dims of one tensor.

    level:         aten
    precondition:  behind `graph-cse`, so that there is one op for equal ones
    guarantee:     the same values: a variance computes that mean anyway. Both are one reduction from the lowering on,
                   which reads its operand once.

        %v = aten.var.correction(%x, dim = [0], correction = 1, keepdim = false) : !aten.tensor<512xf32>
        %m = aten.mean.dim(%x, dim = [0], keepdim = false) : !aten.tensor<512xf32>
    becomes
        %v, %m = aten.var_mean.correction(%x, dim = [0], correction = 1, keepdim = false) : ..., ...
    """

    name = "graph-join-moments"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        variances: dict[_Key, AtenOp] = {}
        means: dict[_Key, AtenOp] = {}
        for op in ops_of(block):
            if isinstance(op, AtenOp) and op.packet in ("var", "mean") and (key := _key(op)) is not None:
                (variances if op.packet == "var" else means).setdefault(key, op)
        order = {op: k for k, op in enumerate(block.ops)} if variances.keys() & means.keys() else {}
        for key in [key for key in variances if key in means]:
            variance, mean = variances[key], means[key]
            if type_of(variance.results[0]) == type_of(mean.results[0]) and counter(self.name):
                remark("passed", self.name, variance, "with the mean of the same elements")
                _join(block, variance, mean, min(variance, mean, key=order.__getitem__))


def _key(op: AtenOp) -> _Key | None:
    """What an op reduces, and whether dims stay; None for an op that is more than a variance or a mean."""
    if op.attributes or op.target not in ("aten.var.correction", "aten.mean.dim"):
        return None
    type_ = type_of(op.operands[0])
    if op.packet == "mean" and op.arg("dtype") not in (None, type_.element):
        return None
    rank = len(type_.shape)
    dims = op.arg("dim") or range(rank)
    return op.operands[0], frozenset(dim % rank for dim in dims) if rank else frozenset(), bool(op.arg("keepdim"))


def _join(block: Block, variance: AtenOp, mean: AtenOp, first: AtenOp) -> None:
    args = {"self": variance.operands[0]} | {name: variance.arg(name) for name in ("dim", "correction", "keepdim")}
    types = variance.results[0].type, mean.results[0].type
    both = AtenOp.of("aten.var_mean.correction", args, types, merged((variance.location, mean.location)))
    block.insert_op_before(both, first)
    for result, op in zip(both.results, (variance, mean), strict=True):
        result.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(result)
        block.erase_op(op)
