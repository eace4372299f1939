"""Nodes of a joint graph stand in order again after passes have replaced what they read."""

import pytest
import torch
from torch.fx import Graph

from inductile.errors import UnsupportedError
from inductile.lowering.fx_write_back import put_in_order

aten = torch.ops.aten


def test_a_reader_in_front_of_what_it_reads_gets_it_first() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    early = graph.call_function(aten.sym_size.int, (x, 0))
    late = graph.call_function(aten.view.default, (x, [4]))
    result = graph.call_function(aten.exp.default, (late,))
    graph.output((early, result))
    early.args = (late, 0)
    put_in_order(graph)
    graph.lint()
    assert [node.name for node in graph.nodes] == [x.name, late.name, early.name, result.name, "output"]


def test_what_has_an_effect_is_not_moved() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    early = graph.call_function(aten.exp.default, (x,))
    late = graph.call_function(aten.add_.Tensor, (x, 1))
    graph.output((early, late))
    early.args = (late,)
    with pytest.raises(UnsupportedError, match="has an effect"):
        put_in_order(graph)


def test_nodes_that_read_one_another_have_no_order() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    size = graph.call_function(aten.sym_size.int, (x, 0))
    view = graph.call_function(aten.view.default, (x, [size]))
    graph.output(view)
    size.args = (view, 0)
    with pytest.raises(UnsupportedError, match="read itself"):
        put_in_order(graph)
