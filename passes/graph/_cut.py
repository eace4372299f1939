"""The minimum cut behind `graph-partition`: which values of the forward graph to keep, which ops to run again."""

from __future__ import annotations

from dataclasses import field

from xdsl.ir import Operation, SSAValue

from ...dialects.aten import TensorType
from ...records import dataclass
from ..counters import counter
from ._flow import FlowNetwork
from ._recompute import ByteCosts, RecomputeClass

_SOURCE, _SINK = 0, 1
_FOREVER = 1 << 60
"""Capacity of an edge that no cut may take; larger than all finite ones together."""
_LAST_RESORT = 1 << 48
"""Capacity of saving an argument that is written later."""
_EIGHTHS = 8
"""Costs are counted in eighths of a byte, the finest there are."""


@dataclass
class ForwardGraph:
    """What the cut is chosen from; values by their ops in the order of the program."""

    ops: list[Operation]
    """Ops that do not depend on a tangent and need not run in the backward graph."""
    required: set[SSAValue]
    """Values that ops of the backward graph read."""
    classes: dict[Operation, RecomputeClass]
    arguments: list[SSAValue]
    """Arguments that the forward graph alone gets."""
    held: set[SSAValue] = field(default_factory=set)
    """Values that stay in memory, saved or not: parameters and buffers."""
    written: set[SSAValue] = field(default_factory=set)
    """Arguments that no longer have their elements when the backward graph runs."""
    materialized: set[SSAValue] = field(default_factory=set)
    """Values that the forward graph writes to memory anyway."""
    rewritten: set[SSAValue] = field(default_factory=set)
    """Values that, computed again, have to be written to memory, because something reads them that does not fuse."""
    unclaimed: set[Operation] = field(default_factory=set)
    """Ops that only the backward graph needs: they run once, wherever they are put."""
    forced: set[Operation] = field(default_factory=set)
    """Ops that the user wants run again rather than saved."""
    pinned: set[Operation] = field(default_factory=set)
    """Ops that must not run again, whatever their class."""
    unsaved: set[SSAValue] = field(default_factory=set)
    """Values that must not be saved; the backward graph may compute them again."""


@dataclass(frozen=True)
class Weights:
    """How a cut is weighed.

    hold:     what a byte costs that stays in memory between forward and backward, against one that is read or written
    argument: the same for an argument that is no parameter: often the caller keeps it anyway
    heavy:    whether ops of the classes NEST and HEAVY may run again
    """

    hold: float = 1.0
    argument: float = 0.5
    heavy: bool = False

    @classmethod
    def under_budget(cls, hold: float) -> Weights:
        """Memory at a price: all that is saved counts in full, and all may run again that can."""
        return cls(hold, hold, heavy=True)


def cheapest_cut(graph: ForwardGraph, costs: ByteCosts, weights: Weights) -> set[SSAValue]:
    """The values to save so that saving and recomputing together cost least.

    Saving costs the bytes of the value for holding it (unless it is held anyway, and half for an argument), for reading
    it, and for writing it where the forward graph would not. Running an op again costs what `ByteCosts.recompute` says,
    and the write and the read of its results where they must be in memory.
    """
    return _Network(graph, costs, weights).cut()


class _Network:
    """Each op is a node, and so is each of its results. A node on the sink's side exists in the backward graph: an
    op by running again, a value by being computed or saved. So the cut takes the edge from the source to an op that
    runs again, and the edge from an op to a result that is saved."""

    def __init__(self, graph: ForwardGraph, costs: ByteCosts, weights: Weights) -> None:
        self.graph = graph
        self.costs = costs
        self.weights = weights
        self.network = FlowNetwork()
        assert (self.network.add_node(), self.network.add_node()) == (_SOURCE, _SINK)
        self.value_node: dict[SSAValue, int] = {}
        self.arguments = set(graph.arguments)
        self.choices: list[tuple[SSAValue, int, int]] = []
        """Values that may be saved, with the nodes of their op and their own."""

    def cut(self) -> set[SSAValue]:
        """Build the network, cut it, and read off what is saved."""
        for argument in self.graph.arguments:
            self._add_value(argument, _SOURCE)
        for op in self.graph.ops:
            self._add_op(op)
        side = self.network.source_side(_SOURCE, _SINK)
        return {value for value, producer, node in self.choices if side[producer] and not side[node]}

    def _add_op(self, op: Operation) -> None:
        class_ = self.graph.classes[op]
        inputs = [self.value_node[v] for v in op.operands if v in self.value_node]
        if class_ is RecomputeClass.FREE and len(inputs) == 1:
            # there whenever its base is
            for result in op.results:
                self.value_node[result] = inputs[0]
                if result in self.graph.required:
                    self.network.add_edge(inputs[0], _SINK, _FOREVER)
            return
        node = _SOURCE
        if self._may_run_again(op, class_):
            node = self.network.add_node()
            self.network.add_edge(_SOURCE, node, self._recompute_cost(op, class_))
            for operand in inputs:
                self.network.add_edge(operand, node, _FOREVER)
        for result in op.results:
            self._add_value(result, node, may_save=op not in self.graph.forced or node == _SOURCE)

    def _may_run_again(self, op: Operation, class_: RecomputeClass) -> bool:
        if class_ is RecomputeClass.NEVER or op in self.graph.pinned:
            return False
        if op in self.graph.forced:
            return True
        if op in self.graph.unclaimed:
            return True
        if class_ in (RecomputeClass.NEST, RecomputeClass.HEAVY) and not self.weights.heavy:
            return False
        return class_ is RecomputeClass.FREE or counter("graph-partition")

    def _recompute_cost(self, op: Operation, class_: RecomputeClass) -> int:
        if op in self.graph.forced:
            return 0
        cost = 0 if op in self.graph.unclaimed else self.costs.recompute(op, class_)
        rewritten = (r.type for r in op.results if r in self.graph.rewritten)
        cost += sum(2 * self.costs.bytes(type_) for type_ in rewritten if isinstance(type_, TensorType))
        return int(_EIGHTHS * cost)

    def _add_value(self, value: SSAValue, producer: int, may_save: bool = True) -> None:
        """Give a value a node, unless it is there whenever its op runs: then it shares that of the op."""
        graph = self.graph
        if not may_save or value in graph.unsaved or not isinstance(value.type, TensorType):
            node = producer
        else:
            node = self.network.add_node()
            self.network.add_edge(producer, node, self._save_cost(value))
            self.choices.append((value, producer, node))
        self.value_node[value] = node
        if value in graph.required:
            self.network.add_edge(node, _SINK, _FOREVER)

    def _save_cost(self, value: SSAValue) -> int:
        graph = self.graph
        if value in graph.written:
            return _LAST_RESORT
        hold = self.weights.argument if value in self.arguments else self.weights.hold
        uses = 1 + (0 if value in graph.held else hold) + (value not in graph.materialized)
        # empty tensors are not free: a saved value is an output and an input more
        return int(_EIGHTHS * uses * max(self.costs.bytes(value.type), 1))


def saved_bytes(saved: set[SSAValue], held: set[SSAValue], costs: ByteCosts) -> int:
    """Memory that saved values take between the two graphs, without that of parameters and buffers."""
    return sum(costs.bytes(value.type) for value in saved if value not in held)


def cut_within_budget(graph: ForwardGraph, costs: ByteCosts, budget: float) -> set[SSAValue]:
    """The cheapest cut that holds at most a share of memory.

    budget: 1 is what the cheapest cut without heavy ops holds, 0 the least that any cut holds. In between, the price
    of held memory rises until the cut fits; it may hold less than was allowed.
    """
    most = cheapest_cut(graph, costs, Weights())
    if budget >= 1:
        return most
    least = cheapest_cut(graph, costs, Weights.under_budget(2.0**24))
    floor = saved_bytes(least, graph.held, costs)
    limit = floor + budget * (saved_bytes(most, graph.held, costs) - floor)
    low, high, best = 0, 24, least
    while low < high:
        middle = (low + high) // 2
        saved = cheapest_cut(graph, costs, Weights.under_budget(2.0**middle))
        if saved_bytes(saved, graph.held, costs) <= limit:
            high, best = middle, saved
        else:
            low = middle + 1
    return best
