"""What passes changed in an imported graph, written back to the FX nodes it was imported from.

The nodes keep their metadata. An op that is gone makes its node's readers read the node of its replacement; an op that
is new gets a node, with the metadata of the node that it replaces and a value found by running it on fake tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.aten import AtenOp
from ..errors import UnsupportedError
from ..passes.analysis.functions import first_function
from ..records import dataclass
from .fx_export import GraphExporter
from .fx_import import ImportedGraph
from .fx_private import fake_mode_of

#: metadata that says what a node computes, not where it comes from
_OF_THE_VALUE = ("val", "tensor_meta", "unbacked_bindings", "eager_input_vals")


_SIZES = (torch.ops.aten.sym_size.int, torch.ops.aten.sym_stride.int)


@dataclass
class Snapshot:
    """A function as it was imported.

    operands: ops and their operands
    made_for: the node that each op was made for
    values:   for each SSA value the node that computes it
    numbers:  for each symbol a node that computes it
    """

    operands: dict[Operation, tuple[SSAValue, ...]]
    made_for: dict[Operation, Node]
    values: dict[SSAValue, Node]
    numbers: dict[str, Node]


def operands_of(function: FuncOp) -> dict[Operation, tuple[SSAValue, ...]]:
    """The ops of a function and their operands as they are now."""
    return {op: tuple(op.operands) for op in function.body.block.ops}


def write_back(graph: GraphModule, imported: ImportedGraph, before: Snapshot) -> dict[SSAValue, Node]:
    """Make `graph` compute what the function computes now; returns the node of each value.

    Raises UnsupportedError for a change that is neither an op that replaces others nor an op that went away.
    """
    function = first_function(imported.module)
    now = operands_of(function)
    if len(now) == len(before.operands) and all(
        op in before.operands
        and len(values) == len(before.operands[op])
        and all(map(_same, values, before.operands[op]))
        for op, values in now.items()
    ):
        return before.values
    return _Writer(graph, function, imported, before).change(now)


def _same(left: SSAValue, right: SSAValue) -> bool:
    return left is right


def put_in_order(graph: Graph) -> None:
    """Move nodes that stand behind a reader in front of it; the others stay where they are.

    A size that was read of a value early may now be read of its replacement, which stands where it was needed first.
    Raises UnsupportedError where a node with an effect would have to move, and where nodes read one another.
    """
    placed: set[Node] = set()
    opened: set[Node] = set()
    for reader in list(graph.nodes):
        waiting = [reader]
        while waiting:
            node = waiting[-1]
            missing = [each for each in node.all_input_nodes if each not in placed]
            if missing and node not in placed:
                if node in opened:
                    raise UnsupportedError(f"a pass made {node.name} of a joint graph read itself")
                opened.add(node)
                waiting += missing
                continue
            waiting.pop()
            if node in placed:
                continue
            placed.add(node)
            if node is not reader:
                if node.op == "call_function" and node.is_impure():
                    raise UnsupportedError(f"a pass moved {node.name} of a joint graph, which has an effect")
                reader.prepend(node)


class _Writer(GraphExporter):
    """State of one write-back: exports the new ops into the graph that is there."""

    def __init__(self, graph: GraphModule, function: FuncOp, imported: ImportedGraph, before: Snapshot) -> None:
        super().__init__(function, imported)
        self.root = graph
        self.graph = graph.graph
        self.nodes = dict(before.values)
        self.symbols = dict(before.numbers)
        self.before = before
        self.mode = fake_mode_of(node.meta.get("val") for node in graph.graph.nodes)
        self.origin: Node | None = None
        """The node whose metadata new nodes get."""
        self.value: Any = None
        """The value of the next call, where it is known."""

    def change(self, now: dict[Operation, tuple[SSAValue, ...]]) -> dict[SSAValue, Node]:
        """Change the graph."""
        self._read_results(now)
        replaced = dict(self._replacements(now))
        replaces = {new: old for old, new in replaced.items()}
        origins = self._origins(now, replaces)
        for op, anchor in self._new_ops(now):
            self.origin = origins.get(op)
            self.value = self._known_value(op, replaces)
            with self.graph.inserting_before(anchor):
                self.export_op(op)
        for old, new in replaced.items():
            node = self.before.values.get(old)
            if node is not None:
                node.replace_all_uses_with(self.nodes[new])
                self.nodes[old] = self.nodes[new]
        self._drop_dead()
        put_in_order(self.graph)
        try:
            self.graph.lint()
        except RuntimeError as error:
            raise UnsupportedError(f"a pass left a joint graph malformed: {error}") from error
        assert isinstance(self.root, GraphModule)
        self.root.recompile()
        return self.nodes

    def _drop_dead(self) -> None:
        """Erase nodes without a use. FX's own sweep wants nodes in order, which one that is dead may not be: a new
        node stands in front of the next node that is kept."""
        for node in reversed(list(self.graph.nodes)):
            if node.op not in ("placeholder", "output") and not node.users and not node.is_impure():
                self.graph.erase_node(node)

    def _read_results(self, now: dict[Operation, tuple[SSAValue, ...]]) -> None:
        """Give results a node that are read now and were not before: their op took the place of an equal one.

        Only of several results is the op's node known to have them; an op with one result that is not its node's value
        was made on the way to that value, and gets a node of its own.
        """
        for value in (value for operands in now.values() for value in operands):
            op = value.owner
            node = self.before.made_for.get(op) if isinstance(op, AtenOp) and value not in self.nodes else None
            if node is None:
                continue
            assert isinstance(op, AtenOp)
            known, self.origin = dict(self.nodes), node
            if op.schema.has_one_tensor_result:
                with self.graph.inserting_before(node):
                    self.export_op(op)
            else:
                with self.graph.inserting_before(node.next):
                    self._unpack(op, node)
            self.nodes.update(known)

    def _replacements(self, now: dict[Operation, tuple[SSAValue, ...]]) -> Iterator[tuple[SSAValue, SSAValue]]:
        """Values of ops that are gone, each with the value that is read instead."""
        for op, operands in now.items():
            if op not in self.before.operands:
                continue
            before = self.before.operands[op]
            if len(before) != len(operands):
                raise UnsupportedError(f"a pass changed the number of operands of {op.name} in a joint graph")
            for old, new in zip(before, operands, strict=True):
                if old is not new:
                    if isinstance(old.owner, Block) or old.owner.parent is not None:
                        raise UnsupportedError(f"a pass changed an operand of {op.name} in a joint graph")
                    yield old, new

    def _origins(
        self, now: dict[Operation, tuple[SSAValue, ...]], replaces: dict[SSAValue, SSAValue]
    ) -> dict[Operation, Node]:
        """For each new op the node that it, or the next new op behind it, replaces."""
        found: dict[Operation, Node] = {}
        origin: Node | None = None
        for op in reversed(now):
            if op in self.before.operands:
                origin = None
                continue
            for result in op.results:
                origin = self.before.values.get(replaces.get(result, result), origin)
            if origin is not None:
                found[op] = origin
        return found

    def _known_value(self, op: Operation, replaces: dict[SSAValue, SSAValue]) -> Any:
        """The fake tensor of a node that computes what an op of the same type computes now."""
        old = replaces.get(op.results[0]) if len(op.results) == 1 else None
        node = self.before.values.get(old) if old is not None and old.type == op.results[0].type else None
        return None if node is None else node.meta.get("val")

    def _new_ops(self, now: dict[Operation, tuple[SSAValue, ...]]) -> list[tuple[Operation, Node]]:
        """New ops in order, each with the node in front of which it goes."""
        found: list[tuple[Operation, Node]] = []
        anchor = next(iter(self.graph.find_nodes(op="output")))
        for op in reversed(now):
            if op in self.before.operands:
                anchor = self.before.made_for.get(op, anchor)
            else:
                found.append((op, anchor))
        return found[::-1]

    def call(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Node:
        """A new node, with its metadata."""
        node = super().call(function, args, kwargs)
        if self.origin is not None:
            node.meta = {key: value for key, value in self.origin.meta.items() if key not in _OF_THE_VALUE}
        if self.value is not None and function not in _SIZES and isinstance(function, torch._ops.OpOverload):
            node.meta["val"] = self.value
            return node
        with self.mode or nullcontext(), torch.no_grad():
            fake_args, fake_kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: n.meta["val"])
            node.meta["val"] = function(*fake_args, **fake_kwargs)
        return node
