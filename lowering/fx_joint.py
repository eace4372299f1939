"""Joint graphs of AOTAutograd: import with what the partitioner has to know, and the split into forward and backward.

joint = import_joint(graph, inputs, forward_outputs, static)
... passes, the last of them `graph-partition`, on joint.imported.module ...
forward, backward = joint.split()
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule, Node
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.aten.values import SSA_CLASSES
from ..dialects.effects import is_pure
from ..dialects.sym import Expr
from ..passes.analysis.functions import first_function
from ..passes.common.rounding import is_rounded
from ..passes.graph import _joint as marks
from ..records import dataclass
from .fx_import import GraphImporter, ImportedGraph, ResultSlot
from .fx_ops import is_chosen, mark_chosen, mark_rounded
from .fx_order import order_backward
from .fx_private import (
    checkpoint_region,
    checkpoint_wish,
    has_gradient_hook,
    is_tangent,
    mutated_arguments,
    runs_in_backward,
    split_joint,
)
from .fx_saved_numbers import numbers_to_save
from .fx_write_back import Snapshot, operands_of, write_back


@dataclass
class JointGraph:
    """A joint graph, as FX and as IR. `snapshot` says which op was made for which node."""

    graph: GraphModule
    imported: ImportedGraph
    snapshot: Snapshot
    forward_outputs: int

    def split(self) -> tuple[GraphModule, GraphModule]:
        """The forward and the backward graph that the marks of `graph-partition` ask for.

        What other passes changed is first written back to the nodes. Raises UnsupportedError for a partition that FX
        cannot express.
        """
        nodes = write_back(self.graph, self.imported, self.snapshot)
        self.mark_rounded(nodes)
        self._mark_chosen(nodes)
        saved = [nodes[value] for value in self._saved_values()]
        numbers = numbers_to_save(self.graph, saved, self.forward_outputs)
        position = {node: k for k, node in enumerate(self.graph.graph.nodes)}
        tensors = sorted(dict.fromkeys(saved), key=position.__getitem__)
        forward, backward = split_joint(self.graph, tensors, numbers, self.forward_outputs)
        order_backward(backward)
        return forward, backward

    def mark_rounded(self, nodes: Mapping[SSAValue, Node] | None = None) -> None:
        """Let nodes say which of their ops are marked `rounded`; the graphs that they go to keep it."""
        nodes = self.snapshot.values if nodes is None else nodes
        for op in self._function.body.block.ops:
            for result in op.results if is_rounded(op) else ():
                if result in nodes:
                    mark_rounded(nodes[result])

    def _mark_chosen(self, nodes: Mapping[SSAValue, Node]) -> None:
        """Let nodes say which of their products are nests; the graphs that they go to keep it."""
        for op in self._function.body.block.ops:
            for result in op.results if is_chosen(op) else ():
                if result in nodes:
                    mark_chosen(nodes[result], op)

    @property
    def _function(self) -> FuncOp:
        return first_function(self.imported.module)

    def _saved_values(self) -> list[SSAValue]:
        function = self._function
        block = function.body.block
        arguments = zip(block.args, marks.argument_marks(function), strict=True)
        found: list[SSAValue] = [value for value, marked in arguments if marks.SAVED in marked]
        for op in block.ops:
            numbers = op.attributes.get(marks.SAVED)
            if isinstance(numbers, DenseArrayBase):
                found += [op.results[int(k)] for k in numbers.get_values()]
        return found


def import_joint(
    graph: GraphModule, inputs: Sequence[Any], forward_outputs: int, static: Collection[int] = ()
) -> JointGraph:
    """Import a joint graph.

    forward_outputs: how many of the outputs, from the first, are those of the forward graph
    static:          numbers of the arguments that are parameters or buffers

    Raises UnsupportedError for values that the aten level has no type for.
    """
    importer = _JointImporter(graph, list(inputs))
    imported = importer.run("joint")
    function = first_function(imported.module)
    slots = imported.output_structure[:forward_outputs]
    results = sum(isinstance(slot, ResultSlot) for slot in slots)
    function.attributes[marks.FORWARD_RESULTS] = marks.count_attr(results)
    importer.mark_arguments(function, static)
    values: dict[SSAValue, Node] = {}
    numbers: dict[str, Node] = {}
    for node, value in importer.nodes.values.items():
        if type(value) in SSA_CLASSES:
            values.setdefault(value, node)
        elif isinstance(value, Expr) and value.as_atom is not None:
            numbers.setdefault(str(value), node)
    snapshot = Snapshot(operands_of(function), importer.made_for, values, numbers)
    return JointGraph(graph, imported, snapshot, forward_outputs)


class _JointImporter(GraphImporter):
    """Keeps what autograd and checkpointing say of a node as attributes of its ops."""

    def __init__(self, graph: GraphModule, inputs: list[Any]) -> None:
        super().__init__(graph, inputs)
        self.made_for: dict[Operation, Node] = {}
        """The node for which each op was made."""

    def import_call(self, node: Node) -> None:
        first = len(self.nodes.ops)
        super().import_call(node)
        attributes = _attributes(node)
        for op in self.nodes.ops[first:]:
            self.made_for[op] = node
            if attributes:
                op.attributes.update(attributes)
            if not is_pure(op):
                op.attributes[marks.PLACEMENT] = marks.WORDS["backward" if runs_in_backward(node) else "forward"]

    def mark_arguments(self, function: FuncOp, static: Collection[int]) -> None:
        """Say what each argument is."""
        placeholders = self.graph.graph.find_nodes(op="placeholder")
        mutated = mutated_arguments(self.graph)
        numbers = set(static)
        found: list[dict[str, Attribute]] = []
        for number, node in enumerate(placeholders):
            roles = {
                marks.TANGENT: is_tangent(node),
                marks.STATIC: number in numbers,
                marks.MUTATED: node in mutated,
            }
            found.append({role: marks.UNIT for role, holds in roles.items() if holds})
        found.extend({marks.CONSTANT: marks.UNIT} for _ in self.constants)
        marks.set_argument_marks(function, found)


def _attributes(node: Node) -> dict[str, Attribute]:
    wish = checkpoint_wish(node)
    if not wish:
        return {}
    found: dict[str, Attribute] = {marks.CHECKPOINT: marks.WORDS[wish]}
    region = checkpoint_region(node)
    if region is not None:
        found[marks.REGION] = marks.count_attr(region)
    if has_gradient_hook(node):
        found[marks.HAS_HOOK] = marks.UNIT
    return found
