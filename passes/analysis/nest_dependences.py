"""The ops of a function as nodes with what they depend on, for passes that reorder or group them."""

from __future__ import annotations

from dataclasses import field
from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp
from ...dialects.effects import has_side_effect
from ...dialects.loop import LoadOp, ReduceOp, ScanOp, ScatterOp
from ...dialects.sym import AxesAttr, Expr, MapAttr
from ...records import dataclass
from .memory import NESTS, roots, written_value, written_values
from .memory_order import MemoryOrder, Touched
from .mentions import mentioned_symbols

NO_AXIS = -1
"""Stands for an axis of size 1, or for an index that is no axis."""


@dataclass
class Read:
    """A load of a nest. `index` has, for each dimension, the nest's axis that is the whole index, or NO_AXIS."""

    load: LoadOp
    source: SSAValue
    index: tuple[int, ...]
    around: frozenset[int]
    """Axes that the load runs along, size 1 left out."""
    scope: dict[str, int]
    """Axes by name."""


@dataclass(eq=False)
class Node:
    """An op of the function, in program order.

    For a nest, axes are numbered: its own first, then those of its reductions; `sizes[k]` is the size of axis k.
    `parallel` are those whose points can be computed in any order.
    """

    position: int
    op: Operation
    preds: set[int] = field(default_factory=set)
    reads: list[Read] = field(default_factory=list)
    sizes: list[Expr] = field(default_factory=list)
    rank: int = 0
    parallel: set[int] = field(default_factory=set)
    reduces: list[tuple[ReduceOp, tuple[int, ...]]] = field(default_factory=list)
    opaque: set[int] = field(default_factory=set)
    """Nodes whose value it uses other than by loads: the destination of a scatter."""
    is_nest: bool = False


class DependenceGraph:
    """Nodes of a block but for its terminator; `producer` gives the node that makes a value.

    Besides uses there is an order wherever `aten.copy_` writes memory that others read, among ops with other effects,
    and from an op that binds a symbol to those that mention it.
    """

    def __init__(self, block: Block) -> None:
        self.nodes: list[Node] = []
        self.producer: dict[SSAValue, Node] = {}
        ops = list(block.ops)
        self.terminator = ops.pop() if ops and ops[-1].name == "func.return" else None
        self._written = {root for op in ops for value in written_values(op) for root in roots(value)}
        self._memory = MemoryOrder[SSAValue, int]()
        self._last_effect: int | None = None
        self._binder: dict[str, int] = {}
        for position, op in enumerate(ops):
            self._add(Node(position, op))

    def _add(self, node: Node) -> None:
        op = node.op
        node.is_nest = type(op) in NESTS
        if node.is_nest:
            _NestReader(node).run()
        values = [*op.operands, *(read.source for read in node.reads)]
        for value in values:
            producer = self.producer.get(value)
            if producer is not None:
                node.preds.add(producer.position)
        for value in op.operands:
            if value in self.producer:
                node.opaque.add(self.producer[value].position)
        node.preds |= self._before(node, values)
        if self._binder:
            node.preds |= {self._binder[name] for name in mentioned_symbols(op) if name in self._binder}
        if isinstance(op, AtenOp | CallOp):
            self._binder |= dict.fromkeys(op.binds, node.position)
        for result in op.results:
            self.producer[result] = node
        self.nodes.append(node)

    def _before(self, node: Node, values: list[SSAValue]) -> set[int]:
        """Positions of the ops that must stay before one that reads `values`, for memory and effects."""
        before: set[int] = set()
        op = node.op
        if type(op) not in NESTS and has_side_effect(op) and written_value(op) is None:
            before |= {self._last_effect} if self._last_effect is not None else set()
            self._last_effect = node.position
        if self._written:
            writes = frozenset(root for value in written_values(op) for root in roots(value))
            reads = self._written.intersection(root for value in values for root in roots(value))
            before |= self._memory.visit(node.position, Touched(writes | reads, writes))
        return before


class _NestReader:
    """Fills in the axes and reads of a nest's node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        #: axes of reductions by size: those that do not nest share a number
        self.reduce_axes: dict[Expr, list[int]] = {}

    def run(self) -> None:
        node, op = self.node, self.node.op
        axes = cast(AxesAttr, op.properties["axes"])
        scope: dict[str, int] = {}
        for name, size in axes.data:
            scope[name] = len(node.sizes)
            node.sizes.append(size)
        node.rank = len(node.sizes)
        node.parallel = {k for k in range(node.rank) if node.sizes[k].as_int() != 1}
        if type(op) is ScanOp:
            node.parallel.discard(scope[cast(StringAttr, op.properties["along"]).data])
        elif type(op) is ScatterOp and not _writes_commute(op):
            plain = {atom.name for e in op.map.data if (atom := e.as_atom) is not None}
            node.parallel &= {k for name, k in scope.items() if name in plain}
        for region in op.regions:
            self._read(region.blocks.first, scope)

    def _read(self, block: Block | None, scope: dict[str, int]) -> None:
        op = block.first_op if block is not None else None
        while op is not None:
            if type(op) is LoadOp:
                self._add_read(op, scope)
            elif type(op) is ReduceOp:
                inside = dict(scope)
                numbers = tuple(
                    self._reduce_axis(name, size, inside) for name, size in cast(AxesAttr, op.properties["axes"]).data
                )
                self.node.reduces.append((op, numbers))
                for region in op.regions:
                    self._read(region.blocks.first, inside)
            op = op.next_op

    def _reduce_axis(self, name: str, size: Expr, scope: dict[str, int]) -> int:
        known = self.reduce_axes.setdefault(size, [])
        number = next((k for k in known if k not in scope.values()), None)
        if number is None:
            number = len(self.node.sizes)
            self.node.sizes.append(size)
            known.append(number)
        scope[name] = number
        return number

    def _add_read(self, load: LoadOp, scope: dict[str, int]) -> None:
        sizes = self.node.sizes
        index: list[int] = []
        for expr in cast(MapAttr, load.properties["map"]).data:
            atom = expr.as_atom
            axis = scope.get(atom.name, NO_AXIS) if atom is not None and atom.kind == "symbol" else NO_AXIS
            index.append(axis)
        around = frozenset(axis for axis in scope.values() if sizes[axis].as_int() != 1)
        self.node.reads.append(Read(load, load.operands[0], tuple(index), around, scope))


def _writes_commute(op: ScatterOp) -> bool:
    """Whether the elements of a scatter may be written in any order."""
    return op.unique is not None or (op.kind.data != "set" and op.deterministic is None)
