"""From a functional FX graph of AOTAutograd to a module with one function at the aten level."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import field
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FunctionType, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..dialects.aten import AtenOp, MemoryFormat, TensorType
from ..dialects.raw import ops_of
from ..dialects.raw import type_of as type_of_value
from ..dialects.sym import Expr, SymAttr, SymIntOp
from ..errors import UnsupportedError
from ..passes.common.results import set_any_strides
from ..records import dataclass
from .fx_layouts import Arrangement, arrangement_of, is_marked, layouts_of, restrided
from .fx_machines import attach_machines
from .fx_ops import NodeImporter
from .fx_private import given_arguments
from .fx_regions import Regions, mark_eager
from .fx_symbols import SymbolTable
from .fx_types import INDEX, tensor_type, type_of


@dataclass(frozen=True)
class ResultSlot:
    """Output of a graph that is a result of the function, by its number."""

    number: int


@dataclass
class ImportedGraph:
    """A graph as IR, with what IR does not hold.

    `module` holds the function, and behind it those that it calls: bodies of higher-order operators; `constants` are
    the values of its arguments behind those of the graph; `references` are the graphs and objects that `aten.call`
    names, those of bodies among them; `output_structure` says for each output of the graph which
    result of the function it is, or the Python constant (None, int) that it always is; `result_types` are those with
    which the results were traced, `arrangements` the layouts that arguments have to come in, of those that may not.
    """

    module: ModuleOp
    constants: list[torch.Tensor] = field(default_factory=list)
    references: dict[str, Any] = field(default_factory=dict)
    output_structure: tuple[Any, ...] = ()
    result_types: tuple[Attribute, ...] = ()
    arrangements: tuple[Arrangement, ...] = ()

    @property
    def imported(self) -> ImportedGraph:
        """Itself; of a joint graph it is a part."""
        return self

    def hold_layouts(self) -> None:
        """Hold every argument to its layout: hooks on saved tensors may give backward the same values in another."""
        types = [argument.type for argument in self.function.regions[0].block.args]
        own = types[: len(types) - len(self.constants)]
        self.arrangements += tuple(layouts_of(own, {each.position for each in self.arrangements}))

    @property
    def function(self) -> Operation:
        """The function that the graph became; it stands first."""
        return next(iter(self.module.ops))

    def returns_results(self) -> bool:
        """Whether the outputs of the graph are the results of the function, in order."""
        return all(type(o) is ResultSlot and o.number == k for k, o in enumerate(self.output_structure))

    def arrange_outputs(self, results: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of the graph from the results of the function."""
        return tuple([results[o.number] if type(o) is ResultSlot else o for o in self.output_structure])


def import_graph(
    graph: GraphModule, inputs: Sequence[Any] | None = None, name: str = "forward", check_types: bool = False
) -> ImportedGraph:
    """Import a graph whose nodes carry `meta["val"]`, as AOTAutograd's do.

    `inputs` are used for placeholders without it, and say in which strides tensors come. With `check_types` every op's
    meta function is run again and its result compared with the node's, which costs far more than the import.

    Raises UnsupportedError for values that the aten level has no type for.
    """
    importer = GraphImporter(graph, list(inputs) if inputs is not None else [], Regions([name]))
    imported = importer.run(name)
    if given := given_arguments(graph):
        imported.function.attributes["given"] = DenseArrayBase.from_list(i64, given)
    if check_types:
        from .fx_check import check_result_types

        check_result_types(graph)
    return imported


class GraphImporter:
    """State of one import; `run` does it. Its nodes' values stay readable in `nodes.values`.

    regions:    the functions that bodies of higher-order operators become; without, these stay graphs beside the IR
    is_a_body:  whether the graph is such a body
    """

    def __init__(
        self, graph: GraphModule, inputs: list[Any], regions: Regions | None = None, is_a_body: bool = False
    ) -> None:
        self.regions = regions
        self.is_a_body = is_a_body
        self.reasons: dict[Node, str] = {}
        """Why the bodies of some calls do not become functions."""
        self.graph = graph
        self.inputs = inputs
        self.block = Block()
        self.symbols = SymbolTable()
        self.nodes = NodeImporter(self.symbols)
        self.constants: list[torch.Tensor] = []
        self.arrangements: list[Arrangement] = []
        self.any_strides: list[int] = []
        """Numbers of the results that may have any."""

    def run(self, name: str) -> ImportedGraph:
        """Import everything."""
        structure = self._import_outputs(self._import_nodes())
        self.block.add_ops(self.nodes.ops)
        returned = self.block.last_op
        assert returned is not None
        types = FunctionType.from_lists([a.type for a in self.block.args], list(returned.operand_types))
        function = FuncOp(name, types, Region(self.block))
        function.attributes["symbols"] = ArrayAttr(self.symbols.declarations)
        set_any_strides(function, self.any_strides)
        bodies: Sequence[FuncOp] = () if self.regions is None else self.regions.functions
        imported = ImportedGraph(ModuleOp([function, *bodies]), self.constants, self.nodes.references, structure)
        blocks = (self.block, *(body.body.block for body in bodies))
        inner = [type_of_value(result) for block in blocks for op in ops_of(block) for result in op.results]
        attach_machines(imported.module, [*types.inputs, *types.outputs], inner)
        imported.result_types = tuple(returned.operand_types)
        imported.arrangements = tuple(self.arrangements)
        return imported

    def _import_nodes(self) -> Node:
        """Import all but the return; the node of that."""
        nodes = list(self.graph.graph.nodes)
        self._import_arguments([node for node in nodes if node.op == "placeholder"])
        for node in nodes:
            if node.op == "call_function":
                self.import_call(node)
            elif node.op == "get_attr":
                self._import_attribute(node)
            elif node.op not in ("placeholder", "output"):
                raise UnsupportedError(f"node {node.name} is a {node.op}: the graph is not functional")
        return nodes[-1]

    def inside(self, graph: GraphModule) -> GraphImporter:
        """An importer for the graph of a body; objects that it refers to go beside the same module."""
        inner = GraphImporter(graph, [], self.regions, is_a_body=True)
        inner.nodes.references = self.nodes.references
        return inner

    def import_body(self) -> tuple[Any, ...]:
        """Import all but the return; what is returned."""
        outputs = self.nodes.value_of(self._import_nodes().args[0])
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def _import_arguments(self, placeholders: list[Node]) -> None:
        metas = [node.meta["val"] if "val" in node.meta else self.inputs[k] for k, node in enumerate(placeholders)]
        traced = {position: metas[position] for position in restrided(placeholders, self.inputs)}
        for position in traced:
            metas[position] = self.inputs[position]
        self.symbols.declare_arguments(metas)
        for node, meta in zip(placeholders, metas, strict=True):
            argument = self._add_argument(type_of(meta, self.symbols), node.name)
            is_integer = isinstance(meta, (int, torch.SymInt)) and not isinstance(meta, bool)
            self.nodes.values[node] = self.symbols.expr(meta) if is_integer else argument
        for position, meta in traced.items():
            self._restore(placeholders[position], position, meta)

    def _restore(self, node: Node, position: int, meta: torch.Tensor) -> None:
        """Let the nodes read an argument in the strides with which they were traced, those of `meta`."""
        argument, traced = self.block.args[position], tensor_type(meta, self.symbols)
        arrangement = arrangement_of(position, cast(TensorType, argument.type), traced, meta)
        if arrangement is None:
            return
        self.arrangements.append(arrangement)
        args = {"self": argument, "memory_format": MemoryFormat("contiguous_format")}
        copy = AtenOp.of("aten.clone", args, (traced,))
        self.nodes.ops.append(copy)
        copy.results[0].name_hint = node.name
        self.nodes.values[node] = copy.results[0]

    def _add_argument(self, type_: Attribute, name: str) -> SSAValue:
        argument = self.block.insert_arg(type_, len(self.block.args))
        argument.name_hint = name
        if not isinstance(type_, TensorType):
            self.nodes.numbers.add(argument)
        return argument

    def _import_attribute(self, node: Node) -> None:
        """A tensor becomes an argument behind the graph's own; anything else is referred to by name."""
        target = str(node.target)
        held = operator.attrgetter(target)(self.graph)
        if not isinstance(held, torch.Tensor):
            self.nodes.values[node] = self.nodes.refer_to(target, held)
            return
        if self.is_a_body:
            self.nodes.values[node] = self.nodes.full_of(held)
            return
        for number, constant in enumerate(self.constants):
            if constant is held:
                first = len(self.block.args) - len(self.constants)
                self.nodes.values[node] = self.block.args[first + number]
                return
        self.constants.append(held)
        self.nodes.values[node] = self._add_argument(type_of(held, self.symbols), node.name)

    def import_call(self, node: Node) -> None:
        """Import a call node; a subclass may look at the ops that it adds."""
        if node.target is operator.getitem:
            container, key = node.args
            value = self.nodes.values[container]  # pyright: ignore[reportArgumentType]
            if isinstance(value, (tuple, dict)):
                self.nodes.values[node] = value[key]  # pyright: ignore
                return
        if self.regions is not None and self.regions.import_call(self, node):
            return
        first = len(self.nodes.ops)
        self.nodes.import_call(node)
        if node in self.reasons:
            mark_eager(self.nodes.ops[first:], self.reasons[node])

    def _import_outputs(self, node: Node) -> tuple[Any, ...]:
        """Emit the return; says for each output which result it is or which constant."""
        outputs = self.nodes.value_of(node.args[0])
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        returned = node.args[0] if isinstance(node.args[0], (tuple, list)) else node.args
        results: list[SSAValue] = []
        structure: list[Any] = []
        for output, source in zip(outputs, returned, strict=True):
            value = output
            if isinstance(output, Expr):
                constant = output.as_int()
                if constant is not None:
                    structure.append(constant)
                    continue
                number = SymIntOp.create(properties={"value": SymAttr.of(output)}, result_types=(INDEX,))
                self.nodes.ops.append(number)
                value = number.result
            if isinstance(value, SSAValue):
                structure.append(ResultSlot(len(results)))
                if is_marked(source):
                    self.any_strides.append(len(results))
                results.append(value)
            elif value is None or isinstance(value, (bool, int, float, str)):
                structure.append(value)
            else:
                raise UnsupportedError(f"a graph returns {value!r}, which is no tensor, number or text")
        self.nodes.ops.append(ReturnOp.create(operands=results))
        return tuple(structure)
