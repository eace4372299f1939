"""`graph-choose-scores`: which attention that is trained becomes loops, by recorded measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.aten import AtenOp, CallOp
from ...dialects.aten.types import type_of
from ...dialects.machine import TargetsAttr, targets_of
from ...dialects.raw import operands_of
from ...machines import GpuTarget
from ...machines.measured_nests import TRAINING_TILES
from ...machines.nests import MARGIN, TRAINING, NestShape, nearest
from ...records import dataclass
from ..analysis.sizes import Sizes
from ..analysis.slices import backward_slice
from ..common.choices import MEASURED, NONE, RECORDED, Candidate, Question, mark, timer
from ..common.implementations import MOST_OF_CHAIN, NEST
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._alternatives import behind_views, way_of_library
from ._joint import forward_results, late_values
from ._questions import Group
from ._scores import Scores, gradient_product, scores_among
from ._training_questions import training_text
from ._ways import number_of_way, take_way, ways_of

#: rows, step, warps and stages are left to the passes that map kernels
_ANY_TILE = (0, 0, 0, 0)
_OF_BIAS = "something else, as the gradient of a bias, is made of its gradient"


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
        chooser = _Chooser(self, targets_of(module), function, block)
        found = chooser.attentions()
        asked = self._asked(chooser, found)
        for each in found:
            question = asked.get(each)
            is_nest = chooser.recorded(each) if question is None else chooser.measured(each, question)
            if each.way is not None:
                take_way(block, number_of_way(each.way), is_nest)

    def _asked(self, chooser: _Chooser, found: Sequence[_Attention]) -> dict[_Attention, _Answered]:
        """What was measured of those about which somebody can be asked; all are asked at once."""
        who = timer() if self.choices == MEASURED else None
        if who is None:
            return {}
        questions = {each: question for each in found if (question := chooser.question(each)) is not None}
        different = list(dict.fromkeys(questions.values()))
        answers = dict(zip(different, who.times(different), strict=True)) if different else {}
        return {each: _Answered(question, answers[question]) for each, question in questions.items()}


@dataclass(frozen=True, eq=False)
class _Attention:
    """An attention of a joint graph.

    reader:   its last product
    products: those of its scores
    shape:    what records are asked about
    way:      the choice between it and a library's call; None where nothing else computes it
    """

    reader: AtenOp
    products: tuple[AtenOp, ...]
    shape: NestShape
    way: CallOp | None = None


@dataclass(frozen=True)
class _Answered:
    """A question, and microseconds by the names of the candidates that ran."""

    question: Question
    times: Mapping[str, float]


class _Chooser:
    """Decides about the attention of one joint graph."""

    def __init__(self, owner: ChooseScores, targets: TargetsAttr, function: FuncOp, block: Block) -> None:
        self.owner = owner
        self.targets = targets
        self.function = function
        self.block = block
        self.ops = list(block.ops)
        self.sizes = Sizes.of_function(function)
        self.late = late_values(function, block)
        self.scores = scores_among(self.ops, targets, every=True)

    def attentions(self) -> list[_Attention]:
        """Those that stand beside a library's call, one for each choice, then the others."""
        found: list[_Attention] = []
        seen: set[AtenOp] = set()
        for way in ways_of(self.ops):
            first, second = operands_of(way)
            reader, fused = behind_views(second), behind_views(first)
            library = way_of_library(fused) if isinstance(fused, AtenOp) else ""
            attention = self._attention(reader, library, way) if isinstance(reader, AtenOp) else None
            if attention is None:
                take_way(self.block, number_of_way(way), second=False)
            else:
                found.append(attention)
                seen.add(attention.reader)
        for reader in self.scores.readers:
            is_early = self.late.isdisjoint(reader.results)
            if isinstance(reader, AtenOp) and reader.parent is self.block and reader not in seen and is_early:
                attention = self._attention(reader, "", None)
                found += [] if attention is None else [attention]
        return found

    def _attention(self, reader: AtenOp, library: str, way: CallOp | None) -> _Attention | None:
        """An attention by its last product; None for what is none that units of a GPU compute.

        library: what the library does for a mask, where its way is a call
        """
        products = [op for op in self.ops if isinstance(op, AtenOp) and op in self.scores.read_by.get(reader, ())]
        columns = type_of(reader.results[0]).shape[-1].as_int()
        if self._target(reader) is None or not products or columns is None or columns > MOST_OF_CHAIN:
            return None
        return _Attention(reader, tuple(products), self._shape(products, reader, library), way)

    def _target(self, reader: AtenOp) -> GpuTarget | None:
        target = self.targets.target(type_of(reader.results[0]).device)
        return target if isinstance(target, GpuTarget) else None

    def recorded(self, attention: _Attention) -> bool:
        """Whether records say that an attention becomes loops; then it is marked so."""
        name, reader, shape = self.owner.name, attention.reader, attention.shape
        target = self._target(reader)
        found = None if target is None else nearest(shape, target.nests)
        told = "nothing like it was measured" if found is None else "it was faster"
        if self._reads_gradient(attention.products):
            found, told = None, _OF_BIAS
        if found is None or not found.is_ahead:
            remark("missed", name, reader, f"the library for {shape}: {told}")
            return False
        if not counter(name):
            return False
        self._mark(attention, Candidate(NEST, _ANY_TILE))
        remark("passed", name, reader, f"loops for {shape}", library=found.library, nest=found.nest)
        return True

    def question(self, attention: _Attention) -> Question | None:
        """What a timer is asked about an attention; None where it reads more than tensors."""
        target = self._target(attention.reader)
        if target is None or self._reads_gradient(attention.products):
            return None
        products, reader = attention.products, attention.reader
        text = training_text(self.function, products, reader, self.scores, self.late, attention.way)
        if text is None:
            remark("missed", self.owner.name, reader, "not measured: it is no function of its tensors alone")
            return None
        tiles = (_ANY_TILE, *(tile for tile in TRAINING_TILES if tile[0] < 2 * attention.shape.sizes[1]))
        candidates = Candidate(""), *(Candidate(NEST, tile) for tile in tiles)
        return Question(text, target.name, candidates, self.owner.allow_tf32)

    def measured(self, attention: _Attention, answered: _Answered) -> bool:
        """Whether loops were the fastest; then the attention is marked so."""
        times, candidates = answered.times, answered.question.candidates
        ran = sorted((each for each in candidates if str(each) in times), key=lambda each: times[str(each)])
        told = {str(each): f"{times[str(each)]:.1f} us" for each in ran}
        library = candidates[0]
        best = ran[0] if ran else library
        if str(library) in times and times[str(best)] * MARGIN > times[str(library)]:
            best = library
        is_nest = best is not library and counter(self.owner.name)
        kind, what = ("passed", str(best)) if is_nest else ("missed", str(library))
        behind = f"as measured for {attention.shape}" if ran else "for nothing ran"
        remark(kind, self.owner.name, attention.reader, f"{what}, {behind}", **told)
        if is_nest:
            self._mark(attention, best)
        return is_nest

    def _mark(self, attention: _Attention, candidate: Candidate) -> None:
        """Let the products of an attention, and of its gradients, be nests."""
        for op in {*attention.products, *_with_gradients(attention.products, self.scores, self.ops)}:
            mark(op, candidate, self.owner.allow_tf32)

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
