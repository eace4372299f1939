"""Minimum cut of a directed graph with capacities (Dinic's algorithm).

networkx has minimum cuts. This one stays beside it, because networkx would take more than 5 % of our share of a first
call where memory has a budget: `cut_within_budget` then looks for seven cuts instead of one. CPU seconds for the joint
graphs of training a narrow GPT-2, building the network included, on a busy machine with two cores. networkx is given
the whole network, or one in which parallel edges and chains are one edge, which takes 0.007 and 0.032 s; importing it
takes 0.35 s, which AOTAutograd spends anyway. Our share is all stages behind the partition.

| layers | nodes | edges | here | boykov_kolmogorov | contracted | our share | that of it: one cut / seven |
|---|---|---|---|---|---|---|---|
| 12 | 1,116 | 2,027 | 0.013 | 0.070 | 0.035 | 6.2 | 1.1 % / 7.9 % |
| 48 | 4,356 | 7,931 | 0.089 | 0.486 | 0.531 | 9.8 | 4.9 % / 35 % |
"""

from __future__ import annotations


class FlowNetwork:
    """A graph whose nodes are numbers. Capacities are integers, so that a flow is exact and the search ends."""

    def __init__(self) -> None:
        self._targets: list[int] = []
        self._capacity: list[int] = []
        self._edges: list[list[int]] = []
        """Edges that leave each node; edge `e ^ 1` is the reverse of edge `e`."""

    def add_node(self) -> int:
        """A new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def add_edge(self, source: int, target: int, capacity: int) -> None:
        """An edge from `source` to `target`; several between the same nodes add up."""
        if capacity <= 0 or source == target:
            return
        self._edges[source].append(len(self._targets))
        self._edges[target].append(len(self._targets) + 1)
        self._targets += (target, source)
        self._capacity += (capacity, 0)

    def source_side(self, source: int, sink: int) -> list[bool]:
        """For each node whether a minimum cut leaves it with the source.

        Among the minimum cuts it is the one nearest to the source, whatever the order of nodes and edges. The network
        is used up by the search.
        """
        while True:
            levels = self._levels(source)
            if levels[sink] < 0:
                return [level >= 0 for level in levels]
            self._augment(source, sink, levels)

    def _levels(self, source: int) -> list[int]:
        """Distance of each node from the source over edges that have capacity left; -1 out of reach."""
        levels = [-1] * len(self._edges)
        levels[source] = 0
        frontier = [source]
        targets, capacity = self._targets, self._capacity
        for node in frontier:
            below = levels[node] + 1
            for edge in self._edges[node]:
                target = targets[edge]
                if levels[target] < 0 and capacity[edge]:
                    levels[target] = below
                    frontier.append(target)
        return levels

    def _augment(self, source: int, sink: int, levels: list[int]) -> None:
        """Push flow along shortest paths until each of them has a full edge."""
        position = [0] * len(self._edges)
        targets, capacity = self._targets, self._capacity
        path: list[int] = []
        node = source
        while True:
            if node == sink:
                flow = min([capacity[edge] for edge in path])
                for edge in path:
                    capacity[edge] -= flow
                    capacity[edge ^ 1] += flow
                full = next(k for k, edge in enumerate(path) if not capacity[edge])
                node = targets[path[full] ^ 1]
                del path[full:]
                continue
            edges, below = self._edges[node], levels[node] + 1
            first = position[node]
            while first < len(edges) and not (capacity[edges[first]] and levels[targets[edges[first]]] == below):
                first += 1
            position[node] = first
            if first < len(edges):
                path.append(edges[first])
                node = targets[edges[first]]
            elif not path:
                return
            else:
                node = targets[path.pop() ^ 1]
                position[node] += 1
