"""From a function at the aten level to an FX graph that runs, through `torch.ops`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.utils._pytree import tree_leaves
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.aten import AtenOp, CallOp, Device, Layout, MemoryFormat, Operator, Reference, Tuple, torch_name
from ..dialects.aten.binding import MEASURED, bindings
from ..dialects.sym import Atom, Expr, SymbolAttr, SymbolDeclaration, SymIntOp, symbol
from ..errors import UnsupportedError
from ..passes.analysis.functions import first_function
from .fx_import import ImportedGraph, ResultSlot
from .fx_targets import resolve

_BINARY: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "min": torch.sym_min, "max": torch.sym_max,
}  # fmt: skip


def export_graph(program: ModuleOp | ImportedGraph) -> GraphModule:
    """The first function of a module as a graph module; its arguments are the function's, its outputs the results.

    For an imported graph the constants are attributes of the graph module, not arguments, and the outputs are
    arranged as those of the graph it came from. Raises UnsupportedError for ops of other levels.
    """
    imported = program if isinstance(program, ImportedGraph) else ImportedGraph(program)
    function = first_function(imported.module)
    return GraphExporter(function, imported).run(arrange=program is imported)


class GraphExporter:
    """State of one export. `nodes` and `symbols` say what values and symbols are in the graph so far."""

    def __init__(self, function: FuncOp, imported: ImportedGraph) -> None:
        self.function = function
        self.imported = imported
        self.root = torch.nn.Module()
        self.graph = Graph()
        self.nodes: dict[SSAValue, Any] = {}
        self.symbols: dict[str, Any] = {}
        self.atoms: dict[Atom, Any] = {}

    def run(self, arrange: bool) -> GraphModule:
        """Export everything."""
        self._export_arguments()
        for op in self.function.body.block.ops:
            if isinstance(op, ReturnOp):
                self._export_return(op, arrange)
            else:
                self.export_op(op)
        return GraphModule(self.root, self.graph)

    def export_op(self, op: Operation) -> None:
        """Export one op; UnsupportedError for an op of another level."""
        if isinstance(op, AtenOp):
            self._export_aten(op)
        elif isinstance(op, CallOp):
            self._export_call(op)
        elif isinstance(op, SymIntOp):
            self.nodes[op.result] = self._number(op.value.data)
        else:
            raise UnsupportedError(f"{op.name} has no counterpart in an FX graph")

    def _export_arguments(self) -> None:
        arguments = self.function.body.block.args
        constants = self.imported.constants
        first_constant = len(arguments) - len(constants)
        for number, argument in enumerate(arguments):
            name = argument.name_hint or f"arg{number}"
            if number < first_constant:
                self.nodes[argument] = self.graph.placeholder(f"{name}_{number}")
            else:
                self.root.register_buffer(f"constant_{number}", constants[number - first_constant])
                self.nodes[argument] = self.graph.get_attr(f"constant_{number}")
        declarations = self.function.attributes.get("symbols", ())
        for declaration in declarations:  # pyright: ignore[reportGeneralTypeIssues]
            assert isinstance(declaration, SymbolAttr)
            self._declare(declaration.data)

    def _declare(self, declaration: SymbolDeclaration) -> None:
        if declaration.arg is None:
            return  # an op binds it
        argument = self.nodes[self.function.body.block.args[declaration.arg]]
        if declaration.dim is not None:
            argument = self.call(torch.ops.aten.sym_size.int, (argument, declaration.dim))
        elif declaration.stride is not None:
            argument = self.call(torch.ops.aten.sym_stride.int, (argument, declaration.stride))
        self.symbols[declaration.name] = argument

    def call(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Node:
        """A new node that calls a function."""
        return self.graph.call_function(function, tuple(args), kwargs)

    def _export_aten(self, op: AtenOp) -> None:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for argument in op.schema.arguments:
            value = self._value(op.arg(argument.name))
            if argument.kwarg_only or kwargs:
                if argument.name in op.properties or argument.is_tensor:
                    kwargs[argument.name] = value
            else:
                args.append(value)
        node = self.call(resolve(f"aten::{op.schema.name}"), args, kwargs)
        if op.schema.has_one_tensor_result:
            self.nodes[op.results[0]] = node
        else:
            self._unpack(op, node)
        self._bind(op)

    def _unpack(self, op: AtenOp, node: Node) -> None:
        results = iter(op.results)
        is_nested = op.schema.has_result_groups
        sizes = op.result_sizes if is_nested else (1,) * len(op.results)
        for position, size in enumerate(sizes):
            item = self.call(operator.getitem, (node, position))
            if is_nested and op.schema.returns[position].is_list:
                for inner in range(size):
                    self.nodes[next(results)] = self.call(operator.getitem, (item, inner))
            else:
                self.nodes[next(results)] = item

    def _export_call(self, op: CallOp) -> None:
        args = [self._value(value) for value in op.args()]
        kwargs = {key: self._value(value) for key, value in op.kwargs().items()}
        node = self.call(resolve(op.target), args, kwargs)
        if op.results:  # how they are nested is not part of the IR
            leaves = self.call(tree_leaves, (node,))
            for number, result in enumerate(op.results):
                self.nodes[result] = self.call(operator.getitem, (leaves, number))
        self._bind(op)

    def _bind(self, op: AtenOp | CallOp) -> None:
        for binding in bindings(op) if op.binds else ():
            measured = self.nodes[op.results[binding.result]]
            if binding.dim is not None:
                measured = self.call(torch.ops.aten.sym_size.int, (measured, binding.dim))
            elif binding.stride is not None:
                measured = self.call(torch.ops.aten.sym_stride.int, (measured, binding.stride))
            elif isinstance(op.results[binding.result].type, IndexType):
                measured = self.call(torch.sym_int, (measured,))
            name = f"{MEASURED}.{binding.name}"
            self.symbols[name] = measured
            self.symbols[binding.name] = self._number(binding.value.subs({MEASURED: symbol(name)}))

    def _export_return(self, op: ReturnOp, arrange: bool) -> None:
        results = [self.nodes[value] for value in op.operands]
        if arrange:
            structure = self.imported.output_structure
            results = [results[slot.number] if isinstance(slot, ResultSlot) else slot for slot in structure]
        self.graph.output(tuple(results))

    def _value(self, value: Any) -> Any:
        """What torch takes for an argument's value."""
        if isinstance(value, SSAValue):
            return self.nodes[value]
        if isinstance(value, Expr):
            return self._number(value)
        if isinstance(value, tuple):
            items = [self._value(item) for item in value]
            return tuple(items) if isinstance(value, Tuple) else items
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, Attribute):
            return getattr(torch, torch_name(value))
        if isinstance(value, Device):
            return torch.device(value)
        if isinstance(value, Layout | MemoryFormat):
            return getattr(torch, value)
        if isinstance(value, Operator):
            return resolve(value)
        return self._referenced(value) if isinstance(value, Reference) else value

    def _referenced(self, name: Reference) -> Any:
        held = self.imported.references.get(name)
        if isinstance(held, torch.nn.Module):
            if not hasattr(self.root, name):
                self.root.add_module(name, held)
            return self.graph.get_attr(str(name))
        if held is None:
            raise UnsupportedError(f"nothing is given for the reference @{name}")
        return held

    def _number(self, expr: Expr) -> Any:
        """An int, or the node that computes an expression."""
        total: Any = 0
        for monomial, coefficient in expr.terms:
            factor: Any = coefficient
            for atom in monomial:
                value = self._atom(atom)
                factor = value if isinstance(factor, int) and factor == 1 else self._fold(operator.mul, factor, value)
            is_zero = isinstance(total, int) and total == 0
            total = factor if is_zero else self._fold(operator.add, total, factor)
        return total

    def _fold(self, function: Callable[..., Any], left: Any, right: Any) -> Any:
        if isinstance(left, Node) or isinstance(right, Node):
            return self.call(function, (left, right))
        return function(left, right)

    def _atom(self, atom: Atom) -> Any:
        if atom.kind == "symbol":
            if atom.name not in self.symbols:
                raise UnsupportedError(f"symbol {atom.name} is used before an op defines it")
            return self.symbols[atom.name]
        found = self.atoms.get(atom)
        if found is None:
            args = [self._number(arg) for arg in atom.args]
            found = args[0]
            for arg in args[1:]:
                found = self._fold(_BINARY[atom.kind], found, arg)
            self.atoms[atom] = found
        return found
