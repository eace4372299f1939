"""`graph-merge-seeds`: the seeds of a graph are drawn at once."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block

from ...dialects.aten import AtenOp, Device, TensorType
from ...dialects.aten.types import element_type, type_of
from ...dialects.raw import ops_of
from ...dialects.sym import ONE, const
from ..common.locations import merged
from ..counters import counter
from ..function_pass import AtenPass
from ._joint import PLACEMENT

_INT64 = element_type("int64")
_HIGH = 2**63 - 1


class MergeSeeds(AtenPass):
    """Draw all seeds of a device with one op.

    level:         aten
    precondition:  none
    guarantee:     of the ops that draw one seed (`aten.randint.low` of all int64 from 0 on), there is one a device
                   and, in a joint graph, one for each of forward and backward. What is drawn in what order is not
                   what eager draws before either.

        %0 = aten.randint.low(low = 0, high = 9223372036854775807, size = [1], ...) : !aten.tensor<1xi64>
        %1 = aten.randint.low(low = 0, high = 9223372036854775807, size = [1], ...) : !aten.tensor<1xi64>
    becomes
        %2 = aten.randint.low(low = 0, high = 9223372036854775807, size = [2], ...) : !aten.tensor<2xi64>
        %0 = aten.slice.Tensor(%2, start = 0, end = 1) : !aten.tensor<1xi64>
        %1 = aten.slice.Tensor(%2, start = 1, end = 2) : !aten.tensor<1xi64>
    """

    name = "graph-merge-seeds"
    redraws: ClassVar[bool] = True  # `--verify-each=numerics` does not expect equal numbers behind it

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        groups: dict[tuple[str, Attribute | None], list[AtenOp]] = {}
        for each in ops_of(block):
            if isinstance(each, AtenOp) and _is_seed(each) and counter(self.name):
                key = (type_of(each.results[0]).device, each.attributes.get(PLACEMENT))
                groups.setdefault(key, []).append(each)
        for seeds in groups.values():
            if len(seeds) > 1:
                _merge(block, seeds)


def _is_seed(op: AtenOp) -> bool:
    if op.target != "aten.randint.low" or op.arg("low") != 0 or op.arg("high") != _HIGH:
        return False
    type_ = type_of(op.results[0])
    return type_.shape == (ONE,) and type_.element == _INT64


def _merge(block: Block, seeds: list[AtenOp]) -> None:
    first = type_of(seeds[0].results[0])
    args = {"low": 0, "high": _HIGH, "size": (len(seeds),), "dtype": _INT64, "device": Device(first.device)}
    type_ = TensorType.get((const(len(seeds)),), _INT64, None, first.device)
    drawn = AtenOp.of("aten.randint.low", args, (type_,), merged(seed.location for seed in seeds))
    if PLACEMENT in seeds[0].attributes:
        drawn.attributes[PLACEMENT] = seeds[0].attributes[PLACEMENT]
    drawn.results[0].name_hint = "seeds"
    block.insert_op_before(drawn, seeds[0])
    for number, seed in enumerate(seeds):
        part = {"self": drawn.results[0], "start": number, "end": number + 1}
        view = AtenOp.of("aten.slice.Tensor", part, (first,), seed.location)
        view.results[0].name_hint = "seed"
        block.insert_op_before(view, seed)
        seed.results[0].replace_all_uses_with(view.results[0])
        block.erase_op(seed)
