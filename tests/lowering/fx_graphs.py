"""Graphs as AOTAutograd hands them to a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from inductile.dialects.aten import AtenOp, CallOp
from inductile.dialects.context import new_context
from inductile.lowering.fx_export import export_graph
from inductile.lowering.fx_import import ImportedGraph, import_graph
from inductile.lowering.fx_private import aot_backend
from inductile.lowering.registry import parse_passes

Compiler = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[..., Any]]


@contextmanager
def data_dependent_graphs() -> Iterator[None]:
    """Let `.item()` and `nonzero` into graphs."""
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def compiled(function: Callable[..., Any], compiler: Compiler, dynamic: bool = False) -> Callable[..., Any]:
    """`function` through torch.compile, each graph replaced by what `compiler` makes of it."""

    def boxed(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        callee = compiler(graph, inputs)

        def run(args: list[Any]) -> Any:
            taken = list(args)
            args.clear()
            return callee(*taken)

        run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return run

    torch._dynamo.reset()
    backend = aot_backend(boxed, boxed, boxed, {})
    return torch.compile(function, backend=backend, dynamic=dynamic)


def imported(function: Callable[..., Any], *inputs: Any, dynamic: bool = False) -> list[ImportedGraph]:
    """The graphs of a call of `function`, imported and verified, their recorded types checked."""
    graphs: list[ImportedGraph] = []

    def compiler(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        graphs.append(import_graph(graph, examples, check_types=True))
        graphs[-1].module.verify()
        return graph.forward

    compiled(function, compiler, dynamic)(*inputs)
    return graphs


def ops(graph: ImportedGraph) -> list[Operation]:
    """Ops of the imported function."""
    function = graph.module.body.block.first_op
    assert isinstance(function, FuncOp)
    return list(function.body.block.ops)


def targets(graph: ImportedGraph) -> list[str]:
    """Names of the ATen ops and calls, in order."""
    return [op.target for op in ops(graph) if isinstance(op, AtenOp | CallOp)]


@dataclass
class RoundTrip:
    """A compiler: import, text, parse, passes, export."""

    passes: str = ""
    graphs: int = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        first = import_graph(graph, inputs, check_types=True)
        text = str(first.module)
        module = parse(text)
        assert str(module) == text
        for module_pass in parse_passes(self.passes):
            module_pass.apply(new_context(), module)
        module.verify()
        self.graphs += 1
        return export_graph(ImportedGraph(module, first.constants, first.references, first.output_structure))


def parse(text: str) -> ModuleOp:
    """A verified module."""
    module = Parser(new_context(), text).parse_module()
    module.verify()
    return module
