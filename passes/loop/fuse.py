"""`loop-fuse`: nests that share axes become one future kernel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, ReduceOp
from ...dialects.machine import TargetsAttr, targets_of
from ...dialects.raw import ops_of
from ...machines import Target
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.memory import written_value
from ..analysis.nest_dependences import DependenceGraph, Node
from ..analysis.sizes import Sizes
from ..common.choices import chosen_tile, is_turned
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import enabled, format_location, remark
from ._accesses import loads_in
from ._alignment import Aligner, Alignment, MisalignedError
from ._build_fusions import build_fusions
from ._devices import device_of
from ._groups import Group, Groups
from ._live_bytes import fusing_crowds_memory
from ._parts import objection_to_sums

_SIBLINGS = 3
"""How many earlier readers of a value a nest is tried with."""


@dataclass(frozen=True)
class Fuse(LoopPass):
    """Group nests into `loop.fusion` ops.

    level:         loop
    precondition:  `loop-eliminate-views`; `loop-inline` before leaves fewer nests
    guarantee:     every generate, scan and scatter is inside a `loop.fusion`, single ones too. No fusion depends on
                   itself through others, through an ATen call, or through an `aten.copy_` that writes what it reads.
                   The results of one lie on one device: a kernel reads numbers of another, and writes nothing there.

    Nests are visited in order. Each joins the groups that produce what it reads where every value is read at its
    point; a scatter joins those before it in a chain that fills one tensor, where all write elsewhere (a cat). Then
    groups are tried that read the same values at the same points (siblings), or have a single point as well. Siblings
    that share only what is read again and again (a bias, a table of angles) must have one domain, all of it parallel,
    and no call of ATen between them. A fusion keeps as parallel axes those that all members have; joining is refused
    when

      - parallel points would be lost, and what both use is small beside what they compute; on a CPU, unless the one is
        a step in front of each row of the other;
      - fewer than `min_parallel` points would run in parallel although there is more than `small` to do (on a GPU, more
        than one loop, whose steps would wait for memory one after the other), or each would have more than `max_row`
        points inside and more than it had before;
      - it would have more than `max_members` members or `max_arguments` tensors;
      - scatters would sum over different parts of its axes, or a row and its sums would not fit a program of a GPU;
      - on a GPU, a number would be written back to where others read it, whose programs run at any time;
      - inputs that die would be held beside large results that are filled from a small value.

        %m = loop.generate (i0 in 8) { loop.reduce max (r0 in 64) { ... %x[i0, r0] ... } ... } : T
        %e = loop.generate (i0 in 8, i1 in 64) { ... %x[i0, i1] ... %m[i0] ... } : U
    becomes
        %e = loop.fusion (a0 in 8 | a1 in 64) {
          %m = loop.generate (i0 in 8) on (a0) { loop.reduce max (r0 in 64) on (a1) { ... } ... } : T
          %e = loop.generate (i0 in 8, i1 in 64) on (a0, a1) { ... } : U
          loop.yield %e
        } : U
    """

    name = "loop-fuse"
    optional: ClassVar[bool] = False
    simpler: ClassVar[dict[str, Any]] = {"max_members": 1}

    max_members: int = 64
    max_arguments: int = 40
    min_parallel: int = 16
    small: int = 8192
    max_row: int = 32768

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        module = function.parent_op()
        assert module is not None
        _Fuser(self, function, block, targets_of(module)).run()


class _Fuser:
    """Forms the groups of one function."""

    def __init__(self, options: Fuse, function: FuncOp, block: Block, targets: TargetsAttr) -> None:
        self.options = options
        self.targets = targets
        self.block = block
        self.groups = Groups(DependenceGraph(block), symbol_ranges(function))
        self.estimates = Sizes.of_function(function)
        self.turned: set[int] = set()
        """Positions of products whose sums fill the registers of a program."""
        self.scalars: int | None = None
        """The last nest without axes."""
        #: by value, positions of the nodes that read it last
        self.readers: dict[object, list[int]] = {}

    def run(self) -> None:
        for node in self.groups.graph.nodes:
            group = self.groups.add(node)
            if node.is_nest:
                group.points = self.points_of(node)
                if _reductions(node.op) and is_turned(chosen_tile(node.op)):
                    self.turned.add(node.position)
                self.join_producers(node)
                self.join_siblings(node)
                self.join_scalars(node)
        build_fusions(self.groups, self.block)

    def join_producers(self, node: Node) -> None:
        """Join the groups of what a node reads; one that has joined may be why another can: fewer axes are parallel."""
        left = [p for p in sorted(node.preds, reverse=True) if self.groups.graph.nodes[p].is_nest]
        while True:
            refused = [p for p in left if not self.try_merge(p, node, siblings=False)]
            if not refused or len(refused) == len(left):
                return
            left = refused

    def join_siblings(self, node: Node) -> None:
        tried: set[int] = set()
        for read in node.reads:
            known = self.readers.setdefault(read.source, [])
            for position in known:
                group = self.groups.group(position)
                if group.number not in tried:
                    tried.add(group.number)
                    self.try_merge(position, node, siblings=True)
            if not known or known[-1] != node.position:
                known.append(node.position)
                del known[:-_SIBLINGS]

    def join_scalars(self, node: Node) -> None:
        """Nests of one point each are one kernel, whatever they compute."""
        if self.groups.group(node.position).axes:
            return
        if self.scalars is not None:
            self.try_merge(self.scalars, node, siblings=True)
        self.scalars = node.position

    def try_merge(self, position: int, node: Node, siblings: bool) -> bool:
        """Merge two groups, if nothing objects; whether they are one."""
        left, right = self.groups.group(position), self.groups.group(node.position)
        if left is right:
            return True
        reason, alignment = self.objection(left, right, siblings)
        if reason is not None:
            if enabled():
                kind = "beside a reader of the same value" if siblings else "with what it reads"
                remark("missed", "loop-fuse", node.op, f"not fused {kind}: {reason}")
            return False
        if not counter("loop-fuse"):
            return False
        assert alignment is not None
        merged = self.groups.merge(left, right, alignment.pairs, alignment.parallel)
        remark("passed", "loop-fuse", node.op, "fused", members=len(merged.nodes))
        return True

    def objection(self, left: Group, right: Group, siblings: bool) -> tuple[str | None, Alignment | None]:
        """Why two groups are not merged, or how their axes are aligned."""
        options = self.options
        if len(left.nodes) + len(right.nodes) > options.max_members:
            return "too many members", None
        if _device(left) != _device(right):
            return "their results lie on different devices", None
        if all(any(node.position in self.turned for node in group.nodes) for group in (left, right)):
            return "registers hold the sums of one such product", None
        if (between := self.groups.between(left, right)) is not None:
            return f"{_shown(between.op)} between them depends on one and feeds the other", None
        try:
            alignment = Aligner(self.groups, left, right).run()
        except MisalignedError as error:
            return str(error), None
        if siblings and not alignment.reused and (left.axes or right.axes):
            if not alignment.shared:
                return "they read it at different points", None
            if not _is_one_domain(left, right, alignment):
                return "they read it at points of different domains", None
            if not self.is_between_nests(left, right):
                return "what both write would live through a call of ATen", None
        if self.arguments(left, right) > options.max_arguments:
            return "too many tensors", None
        if (left.axes or right.axes) and not self.target(left).keeps_order and _updates_what_it_reads(left, right):
            return "one program would write the number that others read", None
        if (crowding := fusing_crowds_memory(self.groups, left, right, self.estimates)) is not None:
            return crowding, None
        sums = objection_to_sums(self.groups, left, right, alignment, self.estimates, self.target(left))
        return sums or self.loss(left, right, alignment), alignment

    def target(self, group: Group) -> Target:
        """The machine that a group runs on."""
        return self.targets.target(_device(group))

    def is_between_nests(self, left: Group, right: Group) -> bool:
        """Whether nothing but nests stands between two groups in the program."""
        (_, first), (last, _) = sorted((g.nodes[0].position, g.nodes[-1].position) for g in (left, right))
        return all(node.is_nest for node in self.groups.graph.nodes[first : last + 1])

    def arguments(self, left: Group, right: Group) -> int:
        """Upper bound on the tensors that a merged group reads and writes."""
        sources = left.reads.keys() | right.reads.keys()
        own = {left, right}
        producer = self.groups.graph.producer
        outside = sum(1 for v in sources if v not in producer or self.groups.group(producer[v].position) not in own)
        return outside + sum(len(node.op.results) for group in own for node in group.nodes)

    def loss(self, left: Group, right: Group, alignment: Alignment) -> str | None:
        """Why sharing only these parallel axes would be slower."""
        options = self.options
        if _has_its_statistics(left, right):
            return None
        alone = self.product(left.parallel), self.product(right.parallel)
        together = self.product(alignment.parallel)
        points = max(left.points, right.points)
        if together >= max(alone):
            return None
        if points <= options.small and (points <= max(alone) or not self.target(left).needs_many_rows):
            return None
        reused = max((self.estimates.product(cast(TensorType, v.type).shape) for v in alignment.reused), default=0)
        if reused * 8 < points and not self.starts_rows(left, right, alignment):
            return f"what they share ({reused} elements) is not worth {max(alone)} parallel points"
        if together < options.min_parallel:
            return f"only {together} points would run in parallel"
        before = max(left.points // max(alone[0], 1), right.points // max(alone[1], 1))
        inside = points // max(together, 1)
        if inside > max(options.max_row, before):
            return f"each of {together} parallel points would have {inside} to do"
        return None

    def starts_rows(self, left: Group, right: Group, alignment: Alignment) -> bool:
        """Whether a group is what the other computes in front of each row: on a CPU its outer axes are enough.

        A GPU needs more threads than there are rows, and a kernel more for few numbers takes little of it.
        """
        shared, outer = alignment.parallel, right.axes[: len(alignment.parallel)]
        return not self.target(left).needs_many_rows and set(left.axes) == shared == {
            alignment.pairs.get(axis) for axis in outer
        }

    def product(self, axes: Iterable[int]) -> int:
        total = 1
        for axis in axes:
            total *= self.estimates.of(self.groups.sizes[axis])
        return total

    def points_of(self, node: Node) -> int:
        """Estimated points of the largest domain of a node."""
        domains = {frozenset(range(node.rank)), *(read.around for read in node.reads)}
        most = 1
        for axes in domains:
            total = 1
            for axis in axes:
                total *= self.estimates.of(node.sizes[axis])
            most = max(most, total)
        return most


def _device(group: Group) -> str:
    return device_of(group.nodes[0].op)


def _updates_what_it_reads(*groups: Group) -> bool:
    """Whether a single number of some groups is written back to where one of them reads: the counter of an optimizer.

    The programs of a GPU compute such a number each for itself, at any time.
    """
    reads = {value for group in groups for value in group.reads}
    numbers = [
        node for group in groups for node in group.nodes if all(s.as_int() == 1 for s in node.sizes[: node.rank])
    ]
    uses = [use.operation for node in numbers for result in node.op.results for use in result.uses]
    return any(written_value(op) in reads for op in uses)


def _has_its_statistics(left: Group, right: Group) -> bool:
    """Whether a group reduces rows of what a sum over a softmax in the other one weighs its elements by.

    The sum needs the products behind these rows anyway, and has the maximum and the sum of each row.
    """
    if not all(type(node.op) is GenerateOp for node in (*left.nodes, *right.nodes)):
        return False
    sums = [op for node in right.nodes for op in _reductions(node.op) if _combines(op, "softmax_sum")]
    rows = [op for node in left.nodes for op in _reductions(node.op)]
    if not sums or not rows or not all(_combines(op, "max") or _combines(op, "sum") for op in rows):
        return False
    known = [_read_by_products(op) for op in sums]
    return all(read and read in known for read in map(_read_by_products, rows))


def _read_by_products(op: ReduceOp) -> set[SSAValue]:
    """What products in the body of a reduction read."""
    return {load.operands[0] for inner in ops_of(op.body.block) if type(inner) is ReduceOp for load in loads_in(inner)}


def _reductions(nest: Operation) -> list[ReduceOp]:
    return [op for op in ops_of(nest.regions[0].block) if type(op) is ReduceOp]


def _combines(op: ReduceOp, monoid: str) -> bool:
    return {combiner.data for combiner in op.combiners} == {monoid}


def _is_one_domain(left: Group, right: Group, alignment: Alignment) -> bool:
    """Whether both groups run all their points in parallel, over the same axes."""
    pairs = alignment.pairs
    return pairs.keys() == set(right.axes) and alignment.parallel == {*pairs.values()} == set(left.axes)


def _shown(op: Operation) -> str:
    """The name of an op and its line, or its module."""
    where = format_location(op.location).rpartition("/")[2]
    return f"{op.name} at {where}" if where else op.name
