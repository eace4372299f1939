"""`graph-choose-scores`: which attention that is trained becomes loops, by recorded measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.machine import targets_of
from ...machines import GpuTarget
from ...machines.nests import nearest
from ..analysis.sizes import Sizes
from ..analysis.slices import backward_slice
from ..common.choices import Candidate, mark
from ..common.implementations import MOST_OF_CHAIN, NEST
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._joint import forward_results, late_values
from ._questions import Group
from ._scores import Scores, gradient_product, scores_among
from .choose_products import RECORDED

#: the word of a record for forward with backward
TRAINING = "training"
#: rows, step, warps and stages are left to the passes that map kernels
_ANY_TILE = (0, 0, 0, 0)


@dataclass(frozen=True)
class ChooseScores(AtenPass):
    """Mark the products of an attention that was written op by op, and of its gradients, where loops were faster.

    level:         aten, functions with `forward_results` (see `passes/graph/_joint.py`)
    precondition:  before `graph-split-softmax`, `graph-reassociate-row-sums` and `graph-partition`, which treat scores
                   whose product is a nest as loops that run again
    guarantee:     the same values. Where the records of the target have a similar attention with its gradients, under
                   the word "training", and loops took 3 % less for both together, the products of scores, those that
                   read what is computed of them, and those that the gradient of the softmax is made of are marked as
                   nests; `lower-aten-to-loop` makes them. With the option `loop_products` all products are nests.

        %s = aten.bmm(%q, %k) : !aten.tensor<64x2048x2048xbf16, device = "cuda:0">
    becomes
        %s = aten.bmm(%q, %k) {implementation = "nest", tile = array<i64: 0, 0, 0, 0>, precision = "bf16"} : ...
    """

    name = "graph-choose-scores"
    choices: str = RECORDED
    loop_products: bool = False
    allow_tf32: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every joint function of the module."""
        module = function.parent_op()
        if self.loop_products or self.choices != RECORDED or forward_results(function) is None or module is None:
            return
        targets, ops = targets_of(module), list(block.ops)
        scores = scores_among(ops, targets, every=True)
        late, sizes = late_values(function, block), Sizes.of_function(function)
        for reader in scores.readers:
            if isinstance(reader, AtenOp) and late.isdisjoint(reader.results):
                target = targets.target(type_of(reader.results[0]).device)
                if isinstance(target, GpuTarget):
                    self._choose(reader, scores, ops, target, sizes)

    def _choose(
        self, reader: AtenOp, scores: Scores, ops: Sequence[Operation], target: GpuTarget, sizes: Sizes
    ) -> None:
        products = [op for op in ops if isinstance(op, AtenOp) and op in scores.read_by[reader]]
        columns = type_of(reader.results[0]).shape[-1].as_int()
        if not products or columns is None or columns > MOST_OF_CHAIN:
            return
        inside = ops[ops.index(products[0]) : ops.index(reader) + 1]
        front = _sources_of(inside, ops)
        shape = Group((*front, *inside), (*products, reader), is_attention=True).shape(sizes).beside(TRAINING)
        found = nearest(shape, target.nests)
        if found is None or not found.is_ahead:
            told = "nothing like it was measured" if found is None else "it was faster"
            remark("missed", self.name, reader, f"the library for {shape}: {told}")
            return
        if not counter(self.name):
            return
        for op in {*products, *_with_gradients(products, scores, ops)}:
            mark(op, Candidate(NEST, _ANY_TILE), self.allow_tf32)
        remark("passed", self.name, reader, f"loops for {shape}", library=found.library, nest=found.nest)


def _sources_of(inside: Sequence[Operation], ops: Sequence[Operation]) -> list[Operation]:
    """The ops in front that masks and biases between products are computed from."""
    operands = [value for op in inside for value in op.operands]
    found = set(backward_slice(operands, lambda op: isinstance(op, AtenOp) and op not in inside))
    return [op for op in ops if op in found]


def _with_gradients(products: Sequence[AtenOp], scores: Scores, ops: Sequence[Operation]) -> list[AtenOp]:
    """The products that read what is computed of scores, and those that the gradients of their softmax are made of."""
    own = set(products)
    found = [op for op in scores.readers if isinstance(op, AtenOp) and own & scores.read_by[op]]
    for op in ops:
        gradient = gradient_product(op) if isinstance(op, AtenOp) else None
        if gradient is not None and own & scores.origins.get(op.operands[1], frozenset()):
            found.append(gradient)
    return found
