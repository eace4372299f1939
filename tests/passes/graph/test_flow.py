"""Minimum cuts against networkx."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from inductile.passes.graph._flow import FlowNetwork

_EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, 2, 3, 10, 1 << 60])), max_size=50)


@given(_EDGES)
def test_cut_is_minimal(edges: list[tuple[int, int, int]]) -> None:
    network, graph = FlowNetwork(), nx.DiGraph()
    for _ in range(10):
        graph.add_node(network.add_node())
    edges = [edge for edge in edges if edge[0] != edge[1]]
    for source, target, capacity in edges:
        network.add_edge(source, target, capacity)
        known = graph.edges[source, target]["capacity"] if graph.has_edge(source, target) else 0
        graph.add_edge(source, target, capacity=known + capacity)
    side = network.source_side(0, 9)
    assert side[0]
    assert not side[9]
    cut = sum(capacity for source, target, capacity in edges if side[source] and not side[target])
    assert cut == nx.minimum_cut_value(graph, 0, 9)


@given(_EDGES)
def test_cut_is_the_nearest_to_the_source(edges: list[tuple[int, int, int]]) -> None:
    """The order of edges does not matter, as it would if any of several minimum cuts could come out."""
    sides = []
    for order in (edges, edges[::-1]):
        network = FlowNetwork()
        for _ in range(10):
            network.add_node()
        for edge in order:
            network.add_edge(*edge)
        sides.append(network.source_side(0, 9))
    assert sides[0] == sides[1]
