"""Which axes of two groups of nests are the same axis of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from xdsl.ir import SSAValue

from ...dialects.loop import ScatterOp
from ...dialects.sym import Expr, symbol
from ...records import dataclass
from ..analysis.nest_dependences import NO_AXIS, Node, Read
from ..analysis.scatters import are_disjoint, chain_before
from ._accesses import access_of, map_of
from ._groups import Group, Groups


class MisalignedError(Exception):
    """Two groups cannot share a kernel; the message says why."""


@dataclass
class Alignment:
    """`pairs` gives axes of the left group for axes of the right one; `parallel` are axes of the left."""

    pairs: dict[int, int] = field(default_factory=dict)
    parallel: set[int] = field(default_factory=set)
    reused: list[SSAValue] = field(default_factory=list)
    """Values that one produces and the other reads, or that both read at the same points."""
    shared: list[SSAValue] = field(default_factory=list)
    """Values that both read at the same points of some axes, and again at each point of the others."""


class Aligner:
    """Finds the alignment of two groups.

    A value that one group reads of the other fixes axes: it must be read at the point where it is produced. Then
    equal reads of a third value suggest axes, then equal sizes. Raises MisalignedError.
    """

    def __init__(self, groups: Groups, left: Group, right: Group) -> None:
        self.groups, self.left, self.right = groups, left, right
        self.found = Alignment()
        self.taken: set[int] = set()
        self.chained: list[Node] = []

    def run(self) -> Alignment:
        """The alignment."""
        self._fix_by_values(self.left, self.right, self._pair)
        self._fix_by_values(self.right, self.left, lambda producer, reader: self._pair(reader, producer))
        self._suggest_by_reads()
        self._suggest_by_sizes()
        left, right, pairs = self.left, self.right, self.found.pairs
        self.found.parallel = {onto for r, onto in pairs.items() if r in right.parallel and onto in left.parallel}
        if self.chained:
            self._check_chain()
        return self.found

    def _pair(self, left: int, right: int) -> bool:
        """Declare two axes the same; False when that contradicts what is known."""
        known = self.found.pairs.get(right)
        if known is not None:
            return known == left
        if left in self.taken or self.groups.sizes[left] is not self.groups.sizes[right]:
            return False
        self.found.pairs[right] = left
        self.taken.add(left)
        return True

    def _fix_by_values(self, producers: Group, readers: Group, pair: Callable[[int, int], bool]) -> None:
        groups = self.groups
        if not any(groups.group(p) is producers for p in readers.preds):
            return
        for node in readers.nodes:
            for position in node.opaque:
                if groups.group(position) is producers:
                    self._allow_chain(groups.graph.nodes[position], node)
        for source, reads in readers.reads.items():
            producer = groups.graph.producer.get(source)
            if producer is None or groups.group(producer.position) is not producers:
                continue
            if type(producer.op) is ScatterOp:
                raise MisalignedError("it reads what the other one scatters")
            self.found.reused.append(source)
            for node, read in reads:
                for dimension, axis in enumerate(read.index):
                    produced = groups.place(producer, dimension)
                    place = groups.place(node, axis)
                    if produced != NO_AXIS and (place == NO_AXIS or not pair(produced, place)):
                        raise MisalignedError("it reads other elements than those produced at its point")

    def _allow_chain(self, producer: Node, node: Node) -> None:
        """A scatter may continue in a tensor that others of the kernel have written elsewhere."""
        if type(producer.op) is not ScatterOp or type(node.op) is not ScatterOp:
            raise MisalignedError("it writes into a tensor that the other one produces")
        if not node.op.dest.has_one_use() or node.op.dest.type != node.op.out.type:
            raise MisalignedError("what it continues is needed as it was")  # a kernel copies no tensor in between
        for before in chain_before(node.op):
            known = self.groups.graph.producer[before.out]
            if self.groups.group(known.position) is not self.groups.group(producer.position):
                break
            if not are_disjoint(before, node.op, self.groups.ranges):
                raise MisalignedError("both may write the same element")
        self.chained += (producer, node)
        self.found.reused.append(producer.op.results[0])

    def _check_chain(self) -> None:
        """Pieces must share their outer axes: else neighbours in memory would be written far apart in time."""
        parallel = {*self.found.parallel, *(r for r, onto in self.found.pairs.items() if onto in self.found.parallel)}
        for node in self.chained:
            places = [self.groups.place(node, axis) for axis in range(node.rank)]
            shared = [place in parallel for place in places if place != NO_AXIS]
            if shared != sorted(shared, reverse=True) or not any(shared):
                raise MisalignedError("the pieces share no outer axes")

    def _suggest_by_reads(self) -> None:
        for (left_node, left), (right_node, right) in self._shared_reads():
            left_map, right_map = map_of(left.load).data, map_of(right.load).data
            equal = True
            for dimension, (left_axis, right_axis) in enumerate(zip(left.index, right.index, strict=True)):
                if left_axis != NO_AXIS and right_axis != NO_AXIS:
                    pairs = [(left_axis, right_axis)]
                else:
                    pairs = _match_linear(left_map[dimension], left, right_map[dimension], right)
                equal = self._pair_all(left_node, right_node, pairs) and equal
            seen = frozenset().union(*(e.free_symbols for e in right_map))
            covered = {axis for name, axis in right.scope.items() if name in seen}
            if equal and covered:
                (self.found.reused if right.around <= covered else self.found.shared).append(right.source)

    def _pair_all(self, left_node: Node, right_node: Node, pairs: list[tuple[int, int]] | None) -> bool:
        """Pair the places of axes of two nodes; False when they differ, or None was given."""
        equal = pairs is not None
        for left_axis, right_axis in pairs or ():
            left, right = self.groups.place(left_node, left_axis), self.groups.place(right_node, right_axis)
            if left == NO_AXIS or right == NO_AXIS:
                equal = equal and left == right
            else:
                equal = self._pair(left, right) and equal
        return equal

    def _shared_reads(self) -> Iterator[tuple[tuple[Node, Read], tuple[Node, Read]]]:
        left, right = self.left.reads, self.right.reads
        for source in right if len(right) < len(left) else left:
            if source in left and source in right:
                pair = _comparable(left[source], right[source])
                if not any(access_of(read.load).dynamic for _, read in pair):
                    yield pair

    def _suggest_by_sizes(self) -> None:
        """Axes that are parallel in both groups first, so that they can stay so; then those that are in neither."""
        left, right, sizes = self.left, self.right, self.groups.sizes
        for wanted in ((True, True), (False, False), None):
            for r in right.axes:
                if r in self.found.pairs:
                    continue
                for l in left.axes:  # noqa: E741
                    kinds = (l in left.parallel, r in right.parallel)
                    if l not in self.taken and sizes[l] is sizes[r] and wanted in (None, kinds):
                        self._pair(l, r)
                        break


def _comparable(
    left: Sequence[tuple[Node, Read]], right: Sequence[tuple[Node, Read]]
) -> tuple[tuple[Node, Read], tuple[Node, Read]]:
    """A read on either side: those whose place in each dimension is that of an axis, if both have one, else the last.

    Of neighbours (`x[i]`, `x[i + 1]`) it is the first that another nest reads as well.
    """
    plain = [next((each for each in reversed(reads) if NO_AXIS not in each[1].index), None) for reads in (left, right)]
    if plain[0] is None or plain[1] is None:
        return left[-1], right[-1]
    return plain[0], plain[1]


def _match_linear(left: Expr, left_read: Read, right: Expr, right_read: Read) -> list[tuple[int, int]] | None:
    """Axes of two linear indices with equal coefficients, the rest being equal too; None where they differ.

    Others, such as `i floordiv 4`, must be the same but for the name of the one axis.
    """
    left_parts, right_parts = left.split(left_read.scope), right.split(right_read.scope)
    if left_parts is None or right_parts is None:
        return _match_renamed(left, left_read, right, right_read)
    if left_parts[1] is not right_parts[1]:
        return None
    by_coefficient = {coefficient: name for name, coefficient in left_parts[0].items()}
    if len(by_coefficient) != len(left_parts[0]) or len(left_parts[0]) != len(right_parts[0]):
        return None
    pairs: list[tuple[int, int]] = []
    for name, coefficient in right_parts[0].items():
        partner = by_coefficient.get(coefficient)
        if partner is None:
            return None
        pairs.append((left_read.scope[partner], right_read.scope[name]))
    return pairs


def _match_renamed(left: Expr, left_read: Read, right: Expr, right_read: Read) -> list[tuple[int, int]] | None:
    left_axes = left.free_symbols & left_read.scope.keys()
    right_axes = right.free_symbols & right_read.scope.keys()
    if len(left_axes) != 1 or len(right_axes) != 1:
        return None
    (mine,), (other,) = left_axes, right_axes
    return [(left_read.scope[mine], right_read.scope[other])] if left.subs({mine: symbol(other)}) is right else None
