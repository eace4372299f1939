"""`graph-partition`: which values of the forward graph the backward graph gets, and which it computes again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IndexType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.machine import targets_of
from ...errors import UnsupportedError
from ...records import dataclass
from .. import remarks
from ..analysis.memory import roots
from ..analysis.sizes import Sizes
from ..function_pass import AtenPass
from ._checkpoints import forced_ops, pinned_ops, unsaved_values
from ._cut import ForwardGraph, cut_within_budget, saved_bytes
from ._joint import (
    CONSTANT,
    MUTATED,
    PARTITION,
    PLACEMENT,
    SAVED,
    STATIC,
    TANGENT,
    UNIT,
    WORDS,
    argument_marks,
    forward_results,
    set_argument_marks,
    word,
)
from ._recompute import ByteCosts, RecomputeClass, recompute_class
from ._scores import scores_among


@dataclass(frozen=True)
class Partition(AtenPass):
    """Mark each value of a joint graph as saved, or its op as run again, by a minimum cut.

    level:         aten, functions with `forward_results` (see `passes/graph/_joint.py`)
    precondition:  results of the forward graph depend on no tangent
    guarantee:     what the backward graph reads is a saved value, an argument of its own, or computed from such by ops
                   marked "recompute" and "backward". No op that draws random numbers, writes, checks or defines
                   symbols runs in both graphs. No view is saved, its base is. A value that the caller gets is saved
                   only where an op of the backward graph reads it, as eager would: the caller may overwrite it.

    The cut makes the sum of these least, in bytes of memory traffic (`passes/graph/_recompute.py` has the rates):

    | a saved value         | its bytes for holding it (half for an argument, which the caller may keep anyway, none   |
    |                       | for a parameter or buffer) and for reading it; once more for writing it, where nothing   |
    |                       | else needs it in memory                                                                  |
    | view                  | free                                                                                     |
    | elementwise, indexed  | 0.25 an element for arithmetic, 1.5 for functions; fuses with its readers, or else a     |
    | copies, constants     | write and a read                                                                         |
    | reduction             | a pass over operands and results; over what a softmax reads only, since its last step    |
    |                       | fuses with its readers                                                                   |
    | matrix product,       | never; below `budget` 1 the traffic and a byte for 16 floating-point operations          |
    | convolution, attention|                                                                                          |
    | scores that are loops | their arithmetic, at the pace of matrix units                                            |
    | scan, scatter, pool   | never; below `budget` 1 eight passes over operands and results. What they read and make  |
    | with places           | fuses with them                                                                          |
    | sort, pure call       | never; below `budget` 1 eight passes over operands and results                           |
    | random, effects       | never                                                                                    |

    Ops that `torch.utils.checkpoint` tags run again, but for the random ones, whose results are saved.

    With the option `loop_products` products of matrices whose rows are normalised, the scores of attention, are loops
    that fuse with what reads them where a GPU has matrix units for them: running one again costs its arithmetic there,
    so that two numbers of each row are saved instead of a matrix of scores, or of weights. So are products that have
    many times the elements of their factors, if another product reads what is made of them, as in sigmoid attention.

    budget: memory that saved values may take, from 0 (the least possible) to 1 (what the cut takes when memory has no
            price of its own).

        func.func @joint(%w: T {static}, %x: T, %t: T {tangent}) -> (T, T) attributes {forward_results = 1 : i64} {
          %0 = aten.mul.Tensor(%w, %x) : T
          %1 = aten.sin(%0) : T
          %2 = aten.cos(%0) : T
          %3 = aten.mul.Tensor(%t, %2) : T
          func.return %1, %3 : T, T
        }
    becomes
        func.func @joint(%w: T {saved, static}, %x: T {saved}, %t: T {tangent}) -> (T, T) attributes {...} {
          %0 = aten.mul.Tensor(%w, %x) {partition = "recompute"} : T
          %1 = aten.sin(%0) {partition = "forward"} : T
          %2 = aten.cos(%0) {partition = "backward"} : T
          %3 = aten.mul.Tensor(%t, %2) {partition = "backward"} : T
    """

    name = "graph-partition"
    optional: ClassVar[bool] = False

    budget: float = 1.0
    loop_products: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every joint function of the module. UnsupportedError when no partition exists."""
        count = forward_results(function)
        if count is not None:
            _Partitioner(function, block, count, self.loop_products).run(self.budget)


class _Partitioner:
    """State of the partition of one function."""

    def __init__(self, function: FuncOp, block: Block, forward_count: int, loop_products: bool) -> None:
        self.function = function
        self.block = block
        returned = block.last_op
        assert isinstance(returned, ReturnOp)
        self.forward_outputs = list(returned.operands[:forward_count])
        self.backward_outputs = list(returned.operands[forward_count:])
        self.ops = [op for op in block.ops if op is not returned]
        self.marks = argument_marks(function)
        self.arguments: dict[SSAValue, dict[str, Attribute]] = dict(zip(block.args, self.marks, strict=True))
        self.backward: set[Operation] = set()
        self.late: set[SSAValue] = set()
        """Values that exist in the backward graph only."""
        self.classes: dict[Operation, RecomputeClass] = {}
        module = function.parent_op()
        assert module is not None
        self.targets = targets_of(module)
        self.scores = scores_among(self.ops, self.targets, every=loop_products, wide=loop_products)

    def run(self, budget: float) -> None:
        """Choose and mark."""
        self._find_backward()
        graph = self._forward_graph()
        costs = ByteCosts(Sizes.of_function(self.function), self.targets)
        saved = cut_within_budget(graph, costs, budget)
        needed = self._needed_again(saved)
        saved &= needed.read
        self.backward |= needed.ops & graph.unclaimed
        again = needed.ops - graph.unclaimed
        self._mark(saved, again)
        if remarks.enabled():
            self._explain(saved, again, graph, costs)

    def _find_backward(self) -> None:
        """Ops that depend on a tangent, or have to run in the backward graph for another reason."""
        self.late = {value for value, marks in self.arguments.items() if TANGENT in marks}
        for op in self.ops:
            if word(op, PLACEMENT) == "backward" or any(value in self.late for value in op.operands):
                self.backward.add(op)
                self.late.update(op.results)
        for value in self.forward_outputs:
            if value in self.late:
                raise UnsupportedError(f"the forward graph returns %{value.name_hint}, which depends on a tangent")

    def _forward_graph(self) -> ForwardGraph:
        ops = [op for op in self.ops if op not in self.backward]
        self.classes = {op: recompute_class(op) for op in self.ops}
        self.classes |= dict.fromkeys(self.scores.products, RecomputeClass.SCORES)
        constants = {value for value, marks in self.arguments.items() if CONSTANT in marks}
        read = [value for op in self.ops if op in self.backward for value in op.operands]
        required = {value for value in (*read, *self.backward_outputs) if value not in self.late} - constants
        arguments = [v for v in self.arguments if v not in self.late and v not in constants]
        graph = ForwardGraph(ops, required, self.classes, arguments)
        graph.held = {v for v in arguments if STATIC in self.arguments[v]}
        graph.written = {v for v in arguments if MUTATED in self.arguments[v]}
        graph.written.update(root for op in ops if op.name == "aten.copy_" for root in roots(op.operands[0]))
        graph.materialized = {*arguments, *self.forward_outputs, *self._in_memory(ops)}
        graph.rewritten = self._in_memory(self.backward)
        graph.unclaimed = self._unclaimed(ops)
        graph.forced = forced_ops(ops)
        graph.pinned = pinned_ops(ops, graph.forced) - graph.unclaimed
        early = [value for op in (*graph.unclaimed, *graph.forced) for value in op.operands]
        graph.unsaved = unsaved_values(self.forward_outputs, (*required, *early))
        return graph

    def _unclaimed(self, ops: Sequence[Operation]) -> set[Operation]:
        """Ops that neither the results of the forward graph nor its effects need."""
        needed = {value.owner for value in self.forward_outputs}
        found: set[Operation] = set()
        for op in reversed(ops):
            is_placed = word(op, PLACEMENT) == "forward"
            if op in needed or is_placed or self.classes[op] is RecomputeClass.NEVER:
                needed.update(value.owner for value in op.operands)
            else:
                found.add(op)
        return found

    def _in_memory(self, ops: Iterable[Operation]) -> set[SSAValue]:
        """Values that are in memory because ops that fuse with nothing read or make them."""
        opaque = [op for op in ops if self.classes[op] in (RecomputeClass.HEAVY, RecomputeClass.NEVER)]
        apart = [op for op in opaque if op not in self.scores.readers]
        read = {root for op in apart for value in op.operands for root in roots(value)}
        return read.union(*(op.results for op in opaque))

    def _needed_again(self, saved: set[SSAValue]) -> _Needed:
        """Walk back from what the backward graph reads to what is saved."""
        needed = _Needed(set(), set())
        pending = [v for op in self.backward for v in op.operands if v not in self.late]
        pending += [v for v in self.backward_outputs if v not in self.late]
        while pending:
            value = pending.pop()
            if value in needed.read:
                continue
            needed.read.add(value)
            owner = value.owner
            if value in saved or (isinstance(owner, Block) and CONSTANT in self.arguments[value]):
                continue
            if isinstance(owner, Block) or self.classes[owner] is RecomputeClass.NEVER:
                if not (isinstance(owner, Block) and isinstance(value.type, IndexType)):
                    raise UnsupportedError(f"%{value.name_hint} can be neither saved for backward nor computed again")
                continue  # sizes are given to both graphs
            needed.ops.add(owner)
            pending += owner.operands
        return needed

    def _mark(self, saved: set[SSAValue], again: set[Operation]) -> None:
        for op in self.ops:
            word_ = "backward" if op in self.backward else "recompute" if op in again else "forward"
            op.attributes[PARTITION] = WORDS[word_]
            numbers = [k for k, result in enumerate(op.results) if result in saved]
            if numbers:
                op.attributes[SAVED] = DenseArrayBase.from_list(i64, numbers)
        for value, marks in self.arguments.items():
            if value in saved:
                marks[SAVED] = UNIT
        set_argument_marks(self.function, self.marks)

    def _explain(self, saved: set[SSAValue], again: set[Operation], graph: ForwardGraph, costs: ByteCosts) -> None:
        for value in (*self.arguments, *(r for op in self.ops for r in op.results)):
            if value in saved:
                op = value.owner if isinstance(value.owner, Operation) else None
                size = costs.bytes(value.type)
                remarks.remark("passed", self._name, op, f"%{value.name_hint} is saved for backward", bytes=size)
        for op in self.ops:
            if op in again and self.classes[op] is not RecomputeClass.FREE:
                reason = "runs again in backward" + (", as its checkpoint asks" if op in graph.forced else "")
                remarks.remark("passed", self._name, op, reason, **{"class": self.classes[op].name.lower()})
        held = saved_bytes(saved, graph.held, costs)
        remarks.remark(
            "analysis", self._name, self.function, "partition", saved=len(saved), bytes=held, recomputed=len(again)
        )

    _name: ClassVar[str] = Partition.name


@dataclass
class _Needed:
    """Values that the backward graph reads, and ops of the forward graph that it runs."""

    read: set[SSAValue]
    ops: set[Operation]
