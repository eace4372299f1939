"""What an imported graph looks like."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses import FakeTensorMode
from torch.fx import Graph, GraphModule
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, f64, i1

from inductile.dialects.aten import AtenOp, CallOp, TensorType, element_type
from inductile.dialects.sym import SymbolAttr, SymIntOp, symbol
from inductile.errors import UnsupportedError
from inductile.lowering.fx_check import MetaMismatchError, check_result_types
from inductile.lowering.fx_import import ImportedGraph, ResultSlot, import_graph
from inductile.lowering.fx_sym import UnsupportedSymbol
from inductile.lowering.fx_symbols import SymbolTable
from inductile.passes.verification import find_violation

from .fx_graphs import compiled, data_dependent_graphs, imported, ops, targets


def symbols(graph: ImportedGraph) -> dict[str, Any]:
    declared = graph.module.body.block.first_op.attributes["symbols"]  # pyright: ignore[reportOptionalMemberAccess]
    assert isinstance(declared, ArrayAttr)
    return {s.data.name: s.data for s in declared if isinstance(s, SymbolAttr)}


def only(graph: ImportedGraph, target: str) -> AtenOp:
    found = [op for op in ops(graph) if isinstance(op, AtenOp) and op.target == target]
    assert len(found) == 1
    return found[0]


def test_numbers_in_tensor_arguments_take_the_scalar_overload() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + 1e-12, x == 2, torch.where(x > 0, x, 0.5), torch.pow(2, x), torch.div(x, 3, rounding_mode="floor")

    (graph,) = imported(function, torch.ones(4))
    assert only(graph, "aten.add.Scalar").arg("other") == 1e-12
    assert only(graph, "aten.eq.Scalar").arg("other") == 2
    assert only(graph, "aten.pow.Scalar").arg("self") == 2
    assert only(graph, "aten.div.Scalar_mode").args().keys() == {"self", "other", "rounding_mode"}


def test_gradients_that_a_mask_leaves_out_are_no_tensors() -> None:
    """Also where a meta function gives one; `grid_sampler_2d_backward` computes the second whatever its mask says."""
    aten = torch.ops.aten

    def function(x: torch.Tensor, w: torch.Tensor, i: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
        some = aten.native_batch_norm_backward(x, x, w, None, None, w, w, True, 1e-5, [False, True, True])
        return (*some[1:], aten.grid_sampler_2d_backward(g, i, g, 0, 0, False, [True, False])[0])

    (graph,) = imported(function, torch.ones(5, 4), torch.ones(4), torch.ones(1, 2, 3, 3), torch.ones(1, 2, 2, 2))
    assert find_violation(graph.module) is None
    norm, sampler = only(graph, "aten.native_batch_norm_backward"), only(graph, "aten.grid_sampler_2d_backward")
    assert [isinstance(each.type, TensorType) for each in norm.results] == [False, True, True]
    assert all(isinstance(each.type, TensorType) for each in sampler.results)


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        (torch.float16, 2, "float16"),
        (torch.int32, 2, "int32"),
        (torch.int32, 2.5, "float32"),
        (torch.bool, 2, "int64"),
        (torch.float32, 1j, "complex64"),
    ],
)
def test_numbers_without_a_scalar_overload_promote_like_numbers(dtype: torch.dtype, number: Any, expected: str) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(3, dtype=dtype)
    y = graph.call_function(torch.ops.aten.logical_and.default, (x, number))
    y.meta["val"] = torch.ones(3, dtype=torch.bool)
    graph.output((y,))
    found = import_graph(GraphModule({}, graph))
    full = only(found, "aten.full")
    assert full.arg("fill_value") == number
    assert full.results[0].type == TensorType.get((), element_type(expected))


def test_sizes_are_expressions_and_their_arithmetic_leaves_no_ops() -> None:
    def function(x: torch.Tensor) -> tuple[Any, ...]:
        n = x.shape[0]
        return x.reshape(n * 2, -1), torch.zeros(n // 2 + 3), n * 4

    (graph,) = imported(function, torch.ones(6, 8), dynamic=True)
    (name, *_) = symbols(graph)
    size = symbol(name)
    assert not any(isinstance(op, CallOp) for op in ops(graph))
    assert only(graph, "aten.zeros").arg("size") == (size // 2 + 3,)
    assert [str(op.value.data) for op in ops(graph) if isinstance(op, SymIntOp)] == [f"4*{name}"]
    assert graph.output_structure == (ResultSlot(0), ResultSlot(1), ResultSlot(2))
    assert graph.returns_results()


def test_symbols_say_where_they_come_from_and_what_is_known() -> None:
    x = torch.ones(8, 4)
    torch._dynamo.mark_dynamic(x, 0, min=4, max=64)

    (graph,) = imported(lambda x: x + 1, x)
    (declaration,) = symbols(graph).values()
    assert (declaration.min, declaration.max, declaration.hint) == (4, 64, 8)
    assert (declaration.arg, declaration.dim) in ((0, None), (0, 0), (1, 0))
    (graph,) = imported(lambda x: x.view(-1, 2) + 1, torch.ones(8), dynamic=True)
    (declaration,) = symbols(graph).values()
    assert (declaration.divisor, declaration.hint) == (2, 8)


def test_data_dependent_numbers() -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.zeros(int(n.item())), x.nonzero() * 2

    with data_dependent_graphs():
        (graph,) = imported(function, torch.ones(4), torch.tensor(3))
    item, rows = only(graph, "aten._local_scalar_dense"), only(graph, "aten.nonzero")
    assert only(graph, "aten.zeros").arg("size") == (symbol(item.binds[0]),)
    assert rows.results[0].type.shape[0] == symbol(rows.binds[0])  # pyright: ignore
    checks = [op for op in ops(graph) if isinstance(op, CallOp)]
    assert ("operator::ge", (symbol(rows.binds[0]), 0), i1) in [(c.target, c.args(), c.result_types[0]) for c in checks]
    assert symbols(graph)[item.binds[0]].arg is None


def test_numbers_that_are_no_polynomials_get_a_symbol() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(int(x.shape[0] ** 0.5), 2)

    (graph,) = imported(function, torch.ones(9), dynamic=True)
    *steps, last = [op for op in ops(graph) if isinstance(op, CallOp)]
    (name,) = last.binds
    assert [step.result_types for step in steps] == [(f64,), (f64,)]
    assert only(graph, "aten.zeros").arg("size") == (symbol(name), 2)
    assert (symbols(graph)[name].arg, symbols(graph)[name].hint) == (None, 3)


def symbolic_size(env: ShapeEnv, value: int) -> torch.SymInt:
    source = ConstantSource(f"size{value}")
    name = env.create_symbol(value, source=source, dynamic_dim=DimDynamic.DYNAMIC)
    size = env.create_symintnode(name, hint=value, source=source)
    assert isinstance(size, torch.SymInt)
    return size


def test_a_size_that_no_argument_carries_by_itself_is_computed_from_one() -> None:
    env = ShapeEnv()
    n, m = symbolic_size(env, 5), symbolic_size(env, 7)
    with FakeTensorMode(shape_env=env):
        x = torch.empty(4 * n + 1, m * n)
    table = SymbolTable()
    table.declare_arguments([x, m])
    other, whole = (declared.data for declared in table.declarations)
    assert (other.arg, other.dim, other.hint) == (1, None, 7)
    assert (whole.arg, whole.dim, whole.hint) == (0, 0, 21)
    assert table.expr(n) is (symbol(whole.name) - 1) // 4
    assert table.expr(4 * n + 1) is symbol(whole.name)
    with pytest.raises(UnsupportedSymbol, match="no argument and no op before gives"):
        table.expr(symbolic_size(env, 11))


def test_constants_are_arguments_behind_the_graphs_own() -> None:
    table = torch.tensor([1.0, 2.0])

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor([3.0, 4.0]) + torch.tensor([3.0, 4.0])

    (graph,) = imported(function, table)
    assert len(graph.constants) == len(graph.module.body.block.first_op.body.block.args) - 1  # pyright: ignore
    assert all(constant.tolist() == [3.0, 4.0] for constant in graph.constants)


def test_writes_to_inputs_keep_their_place() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        return x * 2

    (graph,) = imported(function, torch.ones(3), torch.ones(3))
    assert targets(graph) == ["aten.add.Tensor", "aten.mul.Scalar", "aten.copy_"]
    argument = graph.module.body.block.first_op.body.block.args[0]  # pyright: ignore
    assert only(graph, "aten.copy_").arg("self") is argument


def test_branches_are_references() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))

    (graph,) = imported(function, torch.ones(3))
    call = next(op for op in ops(graph) if isinstance(op, CallOp))
    assert call.target == "higher_order::cond"
    assert {str(value) for value in call.args()[1:3]} == graph.references.keys()
    assert all(isinstance(held, GraphModule) for held in graph.references.values())


def test_outputs_that_are_no_results() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x.detach() * w).sum()

    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    graphs: list[ImportedGraph] = []

    def compiler(graph: GraphModule, examples: Any) -> Any:
        graphs.append(import_graph(graph, examples))
        return graph.forward

    compiled(function, compiler)(x, w).backward()
    backward = graphs[-1]
    assert None in backward.output_structure
    assert not backward.returns_results()
    assert backward.arrange_outputs(["gradient"]) == tuple(
        None if slot is None else "gradient" for slot in backward.output_structure
    )


def test_locations_are_the_users_lines() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    (graph,) = imported(function, torch.ones(3))
    location = ops(graph)[0].location
    assert isinstance(location, FileLineColLoc)
    assert location.filename.data.endswith("test_fx_import.py")
    assert location.line.data == function.__code__.co_firstlineno + 1


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fn, torch.uint8, torch.bfloat16, torch.bool])
def test_dtypes(dtype: torch.dtype) -> None:
    (graph,) = imported(lambda x: x.clone(), torch.zeros(3).to(dtype))
    assert ops(graph)[0].results[0].type == TensorType.get(
        ops(graph)[0].results[0].type.shape,  # pyright: ignore
        element_type(str(dtype).removeprefix("torch.")),
    )


def test_sparse_tensors_are_refused() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.eye(3).to_sparse()
    graph.output((x,))
    with pytest.raises(UnsupportedError, match=r"layout torch\.sparse_coo"):
        import_graph(GraphModule({}, graph))


def test_python_functions_are_refused_by_name() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(3)
    y = graph.call_function(print, (x,))
    graph.output((y,))
    with pytest.raises(UnsupportedError, match="calls <built-in function print>"):
        import_graph(GraphModule({}, graph))


def test_recorded_types_are_checked_against_the_ops() -> None:
    captured: list[GraphModule] = []

    def compiler(graph: GraphModule, examples: Any) -> Any:
        captured.append(graph)
        assert check_result_types(graph) == 2
        node = next(n for n in graph.graph.nodes if n.target is torch.ops.aten.exp.default)
        node.meta["val"] = node.meta["val"].to(torch.float64)
        with pytest.raises(MetaMismatchError, match=r"exp .* is torch.float64"):
            check_result_types(graph)
        return graph.forward

    compiled(lambda x: x.exp().sin(), compiler)(torch.ones(3))
    assert captured


def test_none_for_a_required_tensor_stays_a_call() -> None:
    """The gradient of memory-efficient attention is called so, with None for its tensor `attn_bias`."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2, 3)
    call = graph.call_function(torch.ops.aten.add.Tensor, (x, None))
    call.meta["val"] = torch.empty(2, 3)
    graph.output((call,))
    found = import_graph(torch.fx.GraphModule(torch.nn.Module(), graph))
    assert any(op.name == "aten.call" for op in found.module.walk())
