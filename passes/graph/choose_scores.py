"""`graph-choose-scores`: which attention that is trained becomes loops, by recorded measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.machine import TargetsAttr, targets_of
from ...dialects.raw import operands_of
from ...machines import GpuTarget
from ...machines.nests import TRAINING, NestShape, nearest
from ..analysis.sizes import Sizes
from ..analysis.slices import backward_slice
from ..common.choices import NONE, RECORDED, Candidate, mark
from ..common.implementations import MOST_OF_CHAIN, NEST
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._alternatives import behind_views, way_of_library
from ._joint import forward_results, late_values
from ._questions import Group
from ._scores import Scores, gradient_product, scores_among
from ._ways import number_of_way, take_way, ways_of

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
                   Not where something else reads what gradients of scores are made of, as the gradient of a bias does.
                   Of a choice between a library's call and what it stands for (`inductile::either_way`) the second
                   way stays where it is marked so, the first one else, in forward and backward.

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
        if forward_results(function) is None or module is None:
            return
        if self.loop_products or self.choices == NONE:
            for number in map(number_of_way, ways_of(block.ops)):
                take_way(block, number, second=self.loop_products)
            return
        targets, ops = targets_of(module), list(block.ops)
        late = late_values(function, block)
        chooser = _Chooser(self, targets, ops, Sizes.of_function(function), late)
        for each in ways_of(ops):
            reader = behind_views(operands_of(each)[1])
            fused = behind_views(operands_of(each)[0])
            library = way_of_library(fused) if isinstance(fused, AtenOp) else ""
            second = isinstance(reader, AtenOp) and chooser.choose(reader, library)
            take_way(block, number_of_way(each), second)
        for reader in chooser.scores.readers if self.choices == RECORDED else ():
            if isinstance(reader, AtenOp) and reader.parent is block and late.isdisjoint(reader.results):
                chooser.choose(reader)


class _Chooser:
    """Decides about the attention of one joint graph."""

    def __init__(
        self,
        owner: ChooseScores,
        targets: TargetsAttr,
        ops: Sequence[Operation],
        sizes: Sizes,
        late: set[SSAValue],
    ) -> None:
        self.owner = owner
        self.targets = targets
        self.ops = ops
        self.sizes = sizes
        self.late = late
        self.scores = scores_among(ops, targets, every=True)
        self.chosen: set[AtenOp] = set()

    def choose(self, reader: AtenOp, library: str | None = None) -> bool:
        """Whether an attention becomes loops; then it is marked so.

        reader:  its last product
        library: what the library does for a mask, where its way is a call
        """
        name, target = self.owner.name, self.targets.target(type_of(reader.results[0]).device)
        products = [op for op in self.ops if isinstance(op, AtenOp) and op in self.scores.read_by.get(reader, ())]
        columns = type_of(reader.results[0]).shape[-1].as_int()
        if reader in self.chosen or not isinstance(target, GpuTarget) or not products:
            return reader in self.chosen
        if columns is None or columns > MOST_OF_CHAIN:
            return False
        shape = self._shape(products, reader, library)
        found = nearest(shape, target.nests)
        told = "nothing like it was measured" if found is None else "it was faster"
        if self._reads_gradient(products):
            found, told = None, "something else, as the gradient of a bias, is made of its gradient"
        if found is None or not found.is_ahead:
            remark("missed", name, reader, f"the library for {shape}: {told}")
            return False
        if not counter(name):
            return False
        for op in {*products, *_with_gradients(products, self.scores, self.ops)}:
            mark(op, Candidate(NEST, _ANY_TILE), self.owner.allow_tf32)
        self.chosen.add(reader)
        remark("passed", name, reader, f"loops for {shape}", library=found.library, nest=found.nest)
        return True

    def _reads_gradient(self, products: Sequence[AtenOp]) -> bool:
        """Whether an op of backward that no loop of products is reads what is made of scores."""
        own, scores = set(products), self.scores
        for op in self.ops:
            made = frozenset[Operation]().union(*(scores.origins.get(value, frozenset()) for value in op.operands))
            if not own & made or op in scores.readers or not self.late.intersection(op.operands):
                continue
            if not any(result in scores.origins for result in op.results):
                return True
        return False

    def _shape(self, products: Sequence[AtenOp], reader: AtenOp, library: str | None) -> NestShape:
        """What records are asked about."""
        first, last = self.ops.index(products[0]), self.ops.index(reader)
        between = set(self.ops[first:last])
        needed = set(backward_slice([reader.operands[0]], lambda op: op in between))
        inside = [op for op in self.ops[first : last + 1] if op in needed or op in products or op is reader]
        group = Group((*_sources_of(inside, self.ops), *inside), (*products, reader), is_attention=True)
        shape = group.shape(self.sizes).beside(TRAINING)
        return shape.beside(library) if library else shape


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
