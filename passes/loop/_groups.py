"""Groups of nests that become one fusion, their shared axes, and what depends on what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from heapq import heapify, heappop, heappush

from xdsl.ir import SSAValue

from ...dialects.loop import Parts, ScatterOp
from ...dialects.sym import Expr, Ranges
from ...records import dataclass
from ..analysis.nest_dependences import NO_AXIS, DependenceGraph, Node, Read


@dataclass(eq=False)
class Group:
    """Nodes that are computed together. A node that is no nest is a group of its own for ever.

    axes:      fused axes (numbers of `Groups.sizes`), outermost first
    parallel:  those of them that every member has among its own axes and may run in any order
    reads:     by value, the loads of it
    ancestors: bits of the groups that must come before, by `number`; direct ones in `preds`
    points:    estimated number of points of the largest domain of a member
    """

    number: int
    nodes: list[Node]
    axes: list[int] = field(default_factory=list)
    parallel: set[int] = field(default_factory=set)
    reads: dict[SSAValue, list[tuple[Node, Read]]] = field(default_factory=dict)
    preds: set[int] = field(default_factory=set)
    succs: set[int] = field(default_factory=set)
    ancestors: int = 0
    points: int = 1

    @property
    def is_nest(self) -> bool:
        """Whether it can become a fusion."""
        return self.nodes[0].is_nest


class Groups:
    """A partition of the nodes that stays free of cycles; axes are merged by union-find."""

    def __init__(self, graph: DependenceGraph, ranges: Ranges) -> None:
        self.graph = graph
        self.ranges = ranges
        self.groups: list[Group] = []
        self._parent: list[int] = []
        self.sizes: list[Expr] = []
        """Size of each fused axis."""
        self._axis_parent: list[int] = []
        self.places: list[list[int]] = []
        """By node, the fused axis of each of its axes, to be looked up with `axis`; NO_AXIS for size 1."""

    def add(self, node: Node) -> Group:
        """Make the group of the next node alone."""
        place = [NO_AXIS if size.as_int() == 1 else self._new_axis(size) for size in node.sizes]
        self.places.append(place)
        group = Group(
            node.position,
            [node],
            [a for a in place if a != NO_AXIS],
            {place[k] for k in node.parallel},
            preds={self.group(p).number for p in node.preds},
        )
        for read in node.reads:
            group.reads.setdefault(read.source, []).append((node, read))
        for number in group.preds:
            pred = self.groups[number]
            pred.succs.add(group.number)
            group.ancestors |= pred.ancestors | 1 << number
        self.groups.append(group)
        self._parent.append(group.number)
        return group

    def _new_axis(self, size: Expr) -> int:
        self.sizes.append(size)
        self._axis_parent.append(len(self._axis_parent))
        return len(self._axis_parent) - 1

    def group(self, position: int) -> Group:
        """The group of the node at a position."""
        parent = self._parent
        while parent[position] != position:
            parent[position] = parent[parent[position]]
            position = parent[position]
        return self.groups[position]

    def axis(self, number: int) -> int:
        """The axis that an axis was merged into."""
        parent = self._axis_parent
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    def place(self, node: Node, axis: int) -> int:
        """The fused axis of an axis of a node; NO_AXIS for one of size 1."""
        found = self.places[node.position][axis] if axis != NO_AXIS else NO_AXIS
        return found if found == NO_AXIS else self.axis(found)

    def axes_of(self, node: Node) -> set[int]:
        """The fused axes that a node and its reductions run along."""
        return {self.place(node, axis) for axis in range(len(node.sizes))} - {NO_AXIS}

    def parts_of(self, node: Node) -> dict[int, Parts]:
        """The fused axes that a node sums over beside what others compute there (a scatter `from_zero`), in parts."""
        if type(node.op) is not ScatterOp or node.op.from_zero is None:
            return {}
        places = {name: self.place(node, axis) for axis, name in enumerate(node.op.axes.names)}
        return {places[name]: parts for name, parts in node.op.summed.items() if places[name] != NO_AXIS}

    def between(self, left: Group, right: Group) -> Node | None:
        """An op outside that comes both behind one group and before the other: of a path, a call rather than a nest."""
        for start, end in ((left, right), (right, left)):
            last = found = self._path_outside(start, end)
            while found is not None and found.is_nest:
                last, found = found, self._path_outside(start, found)
            if last is not None:
                return (found or last).nodes[0]
        return None

    def _path_outside(self, start: Group, end: Group) -> Group | None:
        """The last group of a path from one group to another that leads through others."""
        bit = 1 << start.number
        if not end.ancestors & bit:
            return None
        for position in end.preds:
            pred = self.group(position)
            if pred is not start and pred is not end and pred.ancestors & bit:
                return pred
        return None

    def merge(self, left: Group, right: Group, pairs: dict[int, int], parallel: set[int]) -> Group:
        """Merge the later of two groups into the earlier; `pairs` gives axes of `left` for axes of `right`."""
        for axis, onto in pairs.items():
            self._axis_parent[axis] = onto
        axes = list(dict.fromkeys(self.axis(a) for a in left.axes + right.axes))
        kept, gone = (left, right) if left.number < right.number else (right, left)
        self._parent[gone.number] = kept.number
        kept.nodes = sorted(kept.nodes + gone.nodes, key=lambda n: n.position)
        kept.axes, kept.parallel = axes, {self.axis(a) for a in parallel}
        for source, reads in gone.reads.items():
            kept.reads.setdefault(source, []).extend(reads)
        kept.points = max(kept.points, gone.points)
        own = {kept.number}
        kept.preds = {self.group(p).number for p in kept.preds | gone.preds} - own
        kept.succs = {self.group(s).number for s in kept.succs | gone.succs} - own
        kept.ancestors = (kept.ancestors | gone.ancestors) & ~(1 << kept.number | 1 << gone.number)
        self._tell_descendants(kept)
        return kept

    def _tell_descendants(self, group: Group) -> None:
        """Add the ancestors of a group, and itself, to all groups behind it that do not know them yet."""
        pending = [group]
        while pending:
            current = pending.pop()
            bits = current.ancestors | 1 << current.number
            for position in current.succs:
                following = self.group(position)
                if following is not current and bits & ~following.ancestors:
                    following.ancestors |= bits
                    pending.append(following)

    def roots(self) -> Iterator[Group]:
        """The groups that are left."""
        return (g for g in self.groups if self._parent[g.number] == g.number)

    def in_order(self) -> list[Group]:
        """The groups so that each comes behind what it needs, else as its last member does in the program."""
        waiting: dict[int, int] = {}
        for group in self.roots():
            waiting[group.number] = len({self.group(p).number for p in group.preds} - {group.number})
        ready = [(g.nodes[-1].position, g.number) for g in self.roots() if not waiting[g.number]]
        heapify(ready)
        ordered: list[Group] = []
        while ready:
            group = self.groups[heappop(ready)[1]]
            ordered.append(group)
            for number in {self.group(s).number for s in group.succs} - {group.number}:
                waiting[number] -= 1
                if not waiting[number]:
                    heappush(ready, (self.groups[number].nodes[-1].position, number))
        return ordered
