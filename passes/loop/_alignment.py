"""Which axes of two groups of nests are the same axis of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ...dialects.loop import ScatterOp
from ._dependences import NO_AXIS, Node, Read
from ._groups import Group, Groups


class MisalignedError(Exception):
    """Two groups cannot share a kernel; the message says why."""


@dataclass
class Alignment:
    """`pairs` gives axes of the left group for axes of the right one; `parallel` are axes of the left."""

    pairs: dict[int, int] = field(default_factory=dict)
    parallel: set[int] = field(default_factory=set)
    reuses: bool = False
    """Whether a value is produced and read, or some value is read at the same points by both."""


class Aligner:
    """Finds the alignment of two groups.

    A value that one group reads of the other fixes axes: it must be read at the point where it is produced. Then
    equal reads of a third value suggest axes, then equal sizes. Raises MisalignedError.
    """

    def __init__(self, groups: Groups, left: Group, right: Group) -> None:
        self.groups, self.left, self.right = groups, left, right
        self.found = Alignment()
        self.taken: set[int] = set()

    def run(self) -> Alignment:
        """The alignment."""
        self._fix_by_values(self.left, self.right, self._pair)
        self._fix_by_values(self.right, self.left, lambda producer, reader: self._pair(reader, producer))
        self._suggest_by_reads()
        self._suggest_by_sizes()
        left, right, pairs = self.left, self.right, self.found.pairs
        self.found.parallel = {onto for r, onto in pairs.items() if r in right.parallel and onto in left.parallel}
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
            if any(groups.group(p) is producers for p in node.opaque):
                raise MisalignedError("it writes into a tensor that the other one produces")
        for source, reads in readers.reads.items():
            producer = groups.graph.producer.get(source)
            if producer is None or groups.group(producer.position) is not producers:
                continue
            if type(producer.op) is ScatterOp:
                raise MisalignedError("it reads what the other one scatters")
            self.found.reuses = True
            for node, read in reads:
                for dimension, axis in enumerate(read.index):
                    produced = groups.place(producer, dimension)
                    place = groups.place(node, axis)
                    if produced != NO_AXIS and (place == NO_AXIS or not pair(produced, place)):
                        raise MisalignedError("it reads other elements than those produced at its point")

    def _suggest_by_reads(self) -> None:
        for (left_node, left), (right_node, right) in self._shared_reads():
            equal = True
            for left_axis, right_axis in zip(left.index, right.index, strict=True):
                left_place = self.groups.place(left_node, left_axis)
                right_place = self.groups.place(right_node, right_axis)
                if left_place == NO_AXIS or right_place == NO_AXIS:
                    equal = equal and left_place == right_place
                elif not self._pair(left_place, right_place):
                    equal = False
            covered = {a for a in right.index if a != NO_AXIS}
            self.found.reuses |= equal and bool(covered) and right.around <= covered

    def _shared_reads(self) -> Iterator[tuple[tuple[Node, Read], tuple[Node, Read]]]:
        left, right = self.left.reads, self.right.reads
        for source in right if len(right) < len(left) else left:
            if source in left and source in right:
                yield left[source][-1], right[source][-1]

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
