"""Graphs inside graphs: bodies of higher-order operators become functions of the module.

A body has a scope of its own: its symbols are declared from its own arguments. The call stays an `aten.call` that names
the functions. A region (`invoke_subgraph`) that computes in the names of its caller is a private function and a
`func.call`, which `host-inline` puts in its place; one that is called once stands in its caller from the start.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.fx import GraphModule, Node
from xdsl.dialects.builtin import ArrayAttr, FunctionType, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ..dialects.aten import AtenOp, MemoryFormat, Reference, TensorType
from ..dialects.raw import operands_of
from ..dialects.sym import Expr, SymAttr, SymIntOp
from ..errors import UnsupportedError
from ..passes.analysis.memory import may_return_alias, roots, written_values
from ..passes.analysis.region_calls import EAGER, INVOKE, body_positions, is_usual_call
from ..passes.common.copies import copy_op
from ..records import dataclass
from .fx_private import known_true
from .fx_symbols import SymbolTable
from .fx_targets import callee_name
from .fx_types import INDEX, location_of

if TYPE_CHECKING:
    from .fx_import import GraphImporter


@dataclass
class Body:
    """An imported body without its return.

    outputs: what it returns: SSA values, expressions, numbers or None
    """

    block: Block
    ops: list[Operation]
    symbols: SymbolTable
    outputs: Sequence[Any]

    @property
    def is_in_names_of_caller(self) -> bool:
        """Whether its ops mean the same in the caller: its symbols are torch's, and none is bound inside."""
        return not self.symbols.has_own_names and not any("binds" in op.properties for op in self.ops)


class Regions:
    """The bodies of one graph and of the graphs inside it."""

    def __init__(self, names: Sequence[str]) -> None:
        self.functions: list[FuncOp] = []
        self._names = set(names)
        self._bodies: dict[int, str] = {}
        self._private: dict[int, tuple[FuncOp, Body]] = {}

    def import_call(self, importer: GraphImporter, node: Node) -> bool:
        """Import the bodies of a call, and the call too where it is done then; else the importer goes on with it."""
        if type(node.target) is torch._ops.OpOverload or not isinstance(node.target, torch._ops.HigherOrderOperator):
            return False
        target = callee_name(node.target)
        positions = body_positions(target)
        if not positions:
            return False
        carriers = [each for k in positions if isinstance(each := node.args[k], Node)]
        if len(carriers) < len(positions):
            return False
        before = self._state()
        try:
            if not is_usual_call(target, node.args, node.kwargs):
                raise UnsupportedError("its bodies write what they are given")
            graphs = [_graph_of(importer.graph, each) for each in carriers]
            if target == INVOKE and self._call(importer, node, carriers[0], graphs[0]):
                return True
            if target == INVOKE:
                self._restore(before)
            names = [self._function(importer, each, carrier) for each, carrier in zip(graphs, carriers, strict=True)]
        except UnsupportedError as error:
            self._restore(before)
            importer.reasons[node] = str(error)
            for carrier in carriers:
                held = operator.attrgetter(str(carrier.target))(importer.graph)
                importer.nodes.values[carrier] = importer.nodes.refer_to(f"{carrier.target}_eager", held)
            return False
        for carrier, name in zip(carriers, names, strict=True):
            importer.nodes.values[carrier] = Reference(name)
        return False

    def _state(self) -> tuple[Any, ...]:
        return list(self.functions), dict(self._bodies), dict(self._private)

    def _restore(self, state: tuple[Any, ...]) -> None:
        """Forget functions that nothing will call."""
        self.functions, self._bodies, self._private = state

    def _function(self, importer: GraphImporter, graph: GraphModule, carrier: Node) -> str:
        """The name of the function that is a body with memory of its own for what it returns."""
        known = self._bodies.get(id(graph))
        if known is not None:
            return known
        body = _imported(importer, graph)
        results = _fresh_results(body)
        name = self._name(importer, carrier, graph)
        self.functions.append(_made(name, body, results))
        self._bodies[id(graph)] = name
        return name

    def _name(self, importer: GraphImporter, carrier: Node, graph: GraphModule) -> str:
        """A name that no other function has, and no object beside the module but the graph itself."""
        references = importer.nodes.references
        wanted = re.sub(r"\W", "_", str(carrier.target), flags=re.ASCII)
        wanted = wanted if re.match(r"[A-Za-z_]", wanted) else f"body_{wanted}"
        name, number = wanted, 0
        while name in self._names or references.get(name, graph) is not graph:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        references[name] = graph
        return name

    def _call(self, importer: GraphImporter, node: Node, carrier: Node, graph: GraphModule) -> bool:
        """Import a region in the names of its caller; False where that is not possible."""
        known = self._private.get(id(graph))
        body = _imported(importer, graph) if known is None else known[1]
        taken = list(body.block.args)
        given = [importer.nodes.value_of(each) for each in node.args[2:]]
        given = _as_traced(taken, given, graph, node, importer.nodes.ops)
        if not body.is_in_names_of_caller or not _same(body, taken, given):
            return False
        location = location_of(node)
        operands = [_operand(each, importer.nodes.ops) for each in given]
        values: dict[SSAValue, SSAValue] = dict(zip(taken, operands, strict=True))
        if known is None and _calls_of(importer.graph, graph) == 1:
            for argument, operand in values.items():
                argument.replace_all_uses_with(operand)
            importer.nodes.ops += body.ops
            outputs = [values.get(each, each) if isinstance(each, SSAValue) else each for each in body.outputs]
            importer.nodes.values[node] = tuple(outputs)
            return True
        returned = _own_results(body)
        if known is None:
            function = _made(self._name(importer, carrier, graph), body, returned, visibility="private")
            self.functions.append(function)
            self._private[id(graph)] = (function, body)
        else:
            function = known[0]
        call = CallOp.create(
            operands=operands,
            result_types=[value.type for value in returned],
            properties={"callee": SymbolRefAttr(function.sym_name.data)},
            location=location,
        )
        importer.nodes.ops.append(call)
        for result, value in zip(call.results, returned, strict=True):
            result.name_hint = value.name_hint or node.name  # what it is, not that a region made it
        values |= dict(zip(returned, call.results, strict=True))
        importer.nodes.values[node] = tuple([_outside(each, values, importer.nodes.ops) for each in body.outputs])
        return True


def mark_eager(ops: Sequence[Operation], reason: str) -> None:
    """Say of the call among some ops why its bodies are not compiled."""
    for op in ops:
        if op.name == "aten.call":
            op.attributes[EAGER] = StringAttr(reason)


def _graph_of(graph: GraphModule, carrier: Node) -> GraphModule:
    held = operator.attrgetter(str(carrier.target))(graph)
    if not isinstance(held, GraphModule):
        raise UnsupportedError(f"its body is a {type(held).__name__}")
    return held


def _imported(importer: GraphImporter, graph: GraphModule) -> Body:
    """The ops of a body. Raises UnsupportedError for one that writes what it is given, and for what has no type."""
    inner = importer.inside(graph)
    outputs = inner.import_body()
    written = next((op for op in inner.nodes.ops if written_values(op)), None)
    if written is not None:
        raise UnsupportedError(f"{written.name} in its body writes what it is given")
    return Body(inner.block, inner.nodes.ops, inner.symbols, outputs)


def _made(name: str, body: Body, results: Sequence[SSAValue], visibility: str | None = None) -> FuncOp:
    body.block.add_ops([*body.ops, ReturnOp.create(operands=results)])
    types = FunctionType.from_lists([a.type for a in body.block.args], [value.type for value in results])
    function = FuncOp(name, types, Region(body.block), visibility=visibility)
    function.attributes["symbols"] = ArrayAttr(body.symbols.declarations)
    return function


def _fresh_results(body: Body) -> list[SSAValue]:
    """What a body returns, one value each; views of arguments, and of what is returned already, are copies.

    An argument itself is returned as it is: what runs the call sees that it is one.
    """
    results: list[SSAValue] = []
    taken: set[SSAValue] = set(body.block.args)
    for output in body.outputs:
        if isinstance(output, Expr):
            number = SymIntOp.create(properties={"value": SymAttr.of(output)}, result_types=(INDEX,))
            body.ops.append(number)
            output = number.result
        if not isinstance(output, SSAValue):
            raise UnsupportedError(f"its body returns {output!r}")
        found = {output, *roots(output)}
        if not isinstance(output.owner, Block) and isinstance(output.type, TensorType) and found & taken:
            args = {"self": output, "memory_format": MemoryFormat("contiguous_format")}
            kind = TensorType.get(output.type.shape, output.type.element, None, output.type.device)
            copy = AtenOp.of("aten.clone", args, (kind,))
            body.ops.append(copy)
            output = copy.results[0]
        taken |= found
        results.append(output)
    return results


def _own_results(body: Body) -> list[SSAValue]:
    """The values that only a body makes, each once; what is a view of an argument, the caller makes."""
    own = [each for each in body.outputs if isinstance(each, SSAValue) and not isinstance(_base(each).owner, Block)]
    return list(dict.fromkeys(own))


def _base(value: SSAValue) -> SSAValue:
    """What a value is a view of, by ops with one operand."""
    while isinstance(owner := value.owner, Operation) and may_return_alias(owner) and len(operands_of(owner)) == 1:
        value = operands_of(owner)[0]
    return value


def _outside(output: Any, values: dict[SSAValue, SSAValue], ops: list[Operation]) -> Any:
    """What an output is in the caller; views of arguments are made there."""
    if not isinstance(output, SSAValue) or output in values:
        return values.get(output, output)  # pyright: ignore[reportArgumentType, reportCallIssue]
    owner = cast(Operation, output.owner)
    for operand in operands_of(owner):
        _outside(operand, values, ops)
    ops.append(copy_op(owner, values))
    return values[output]


def _operand(value: Any, ops: list[Operation]) -> SSAValue:
    if isinstance(value, SSAValue):
        return value
    number = SymIntOp.create(properties={"value": SymAttr.of(value)}, result_types=(INDEX,))
    ops.append(number)
    return number.result


def _as_traced(
    taken: Sequence[BlockArgument], given: Sequence[Any], graph: GraphModule, node: Node, ops: list[Operation]
) -> list[Any]:
    """What a body is given, in the expressions of its own sizes where torch's guards say that those are equal.

    The result of a region has a size such as 2*(s0//4) + 2*((s0//2 - 1)//2) + 2 and goes into that region again, which
    was traced with s0. The operand is a view in the sizes of the argument, which costs nothing.
    """
    holders = [each for each in graph.graph.nodes if each.op == "placeholder"]
    values = list(given)
    if not len(holders) == len(taken) == len(given):
        return values
    for number, (argument, value) in enumerate(zip(taken, given, strict=True)):
        if not isinstance(value, SSAValue):
            continue
        wanted, kind = argument.type, value.type
        if wanted == kind or not isinstance(wanted, TensorType) or not isinstance(kind, TensorType):
            continue
        if not (wanted.is_contiguous and kind.is_contiguous) or wanted.shape == kind.shape:
            continue
        if _have_equal_sizes(holders[number], node.args[2 + number]):
            shape = TensorType.get(wanted.shape, kind.element, None, kind.device)
            view = AtenOp.of("aten.view", {"self": value, "size": wanted.shape}, (shape,), location_of(node))
            ops.append(view)
            values[number] = view.results[0]
    return values


def _have_equal_sizes(*nodes: Any) -> bool:
    """Whether the tensors that two nodes make have equal sizes, by what torch's guards say of symbols."""
    tensor, other = (node.meta.get("val") if isinstance(node, Node) else None for node in nodes)
    if not isinstance(tensor, torch.Tensor) or not isinstance(other, torch.Tensor) or tensor.dim() != other.dim():
        return False
    return all(known_true(size == wanted) for size, wanted in zip(tensor.shape, other.shape, strict=True))


def _same(body: Body, taken: Sequence[BlockArgument], given: Sequence[Any]) -> bool:
    """Whether a caller gives a body what it was traced with: equal types, and integers that are the same symbols.

    Raises UnsupportedError where sizes differ: what was known of them when the body was traced may not hold.
    """
    if len(taken) != len(given):
        raise UnsupportedError(f"its body takes {len(taken)} values, and {len(given)} are given")
    integers = {each.data.arg: each.symbol for each in body.symbols.declarations if each.data.dim is None
                and each.data.stride is None}  # fmt: skip
    same = True
    for argument, value in zip(taken, given, strict=True):
        if not isinstance(value, SSAValue):
            known = integers.get(argument.index)
            if not isinstance(value, Expr) or (known is not None and known is not value):
                raise UnsupportedError(f"its body was traced with another argument {argument.index}")
            continue
        kinds = argument.type, value.type
        if kinds[0] == kinds[1]:
            continue
        if not all(isinstance(kind, TensorType) for kind in kinds) or _sizes(kinds[0]) != _sizes(kinds[1]):
            raise UnsupportedError(f"its body was traced with {kinds[0]}, and {kinds[1]} is given")
        same = False
    return same


def _sizes(kind: Any) -> tuple[Any, ...]:
    return kind.shape, kind.element, kind.device


def _calls_of(graph: GraphModule, body: GraphModule) -> int:
    """How often a graph calls a region."""
    count = 0
    for node in graph.graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.HigherOrderOperator):
            carrier = node.args[0] if node.args else None
            if isinstance(carrier, Node) and carrier.op == "get_attr":
                count += operator.attrgetter(str(carrier.target))(graph) is body
    return count
