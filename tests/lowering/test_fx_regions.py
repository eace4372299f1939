"""Bodies of higher-order operators as functions of the imported module."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import CallOp as FuncCall
from xdsl.dialects.func import FuncOp

from inductile.dialects.aten import CallOp
from inductile.lowering.fx_import import ImportedGraph
from inductile.passes.analysis.region_calls import EAGER
from inductile.passes.verification import find_violation

from ..versions import torch_version
from .fx_graphs import imported, ops, parse


def functions(graph: ImportedGraph) -> list[str]:
    assert find_violation(graph.module) is None
    assert str(parse(str(graph.module))) == str(graph.module)
    return [each.sym_name.data for each in graph.module.ops if isinstance(each, FuncOp)]


@torch.compiler.nested_compile_region
def _marked(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).sin()


_region: Any = _marked


def test_branches_inside_branches_have_names_of_their_own() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        def inner(a: torch.Tensor) -> torch.Tensor:
            return torch.cond(a[0] > 1, lambda b: b + 1, lambda b: b - 1, (a,))

        return torch.cond(x.sum() > 0, inner, inner, (x,))

    for dynamic in (False, True):
        (graph,) = imported(function, torch.ones(3), dynamic=dynamic)
        names = functions(graph)
        assert names[0] == "forward" and len(names) == len(set(names)) == 7
        assert set(names[1:]) <= graph.references.keys()


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_region_that_repeats_is_one_private_function(dynamic: bool) -> None:
    """With unknown sizes torch 2.11 gives the first call a graph of its own, which then stands in its caller."""

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return _region(_region(_region(x, w), w), w)

    (graph,) = imported(function, torch.ones(3, 3), torch.ones(3, 3), dynamic=dynamic)
    assert len(functions(graph)) == 2
    assert [type(op) for op in ops(graph)].count(FuncCall) == (2 if dynamic and torch_version() == (2, 11) else 3)
    assert not [op for op in ops(graph) if isinstance(op, CallOp)]


@torch.compiler.nested_compile_region
def _sorted(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[::2], x[1::2]]).sin()


_parity: Any = _sorted


def test_equal_sizes_may_be_other_expressions() -> None:
    """The result has (s0 + 1) // 2 + s0 // 2 rows, which torch has found to be s0."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return _parity(_parity(x))

    (graph,) = imported(function, torch.ones(6, 3), dynamic=True)
    assert not [op for op in ops(graph) if isinstance(op, CallOp)]


def test_a_region_that_is_called_once_stands_in_its_caller() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return _region(x, w) + 1

    (graph,) = imported(function, torch.ones(3, 3), torch.ones(3, 3))
    assert functions(graph) == ["forward"]
    assert not [op for op in ops(graph) if isinstance(op, CallOp | FuncCall)]


def test_a_body_that_cannot_be_imported_stays_a_graph() -> None:
    """The other body, which could be, is no function either: the call is torch's."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a * torch.tensor([1.0, 2.0, 3.0]), (x,))

    (graph,) = imported(function, torch.ones(3))
    assert functions(graph) == ["forward"]
    (call,) = [op for op in ops(graph) if isinstance(op, CallOp)]
    reason = call.attributes[EAGER]
    assert isinstance(reason, StringAttr) and "tensor of its own" in reason.data
    assert {str(value) for value in call.args()[1:3]} <= graph.references.keys()
