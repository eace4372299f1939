"""`loop-split-reductions`: long reductions for few elements run in parallel parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, Float32Type, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import EmptyOp, GenerateOp, IndexOp, LoadOp, ReduceOp, ScatterOp, YieldOp, yielded
from ...dialects.raw import ops_of
from ...dialects.sym import AxesAttr, Expr, MapAttr, SymAttr, ceildiv, const, smin, symbol
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.sizes import Sizes
from ..analysis.slices import inputs_of
from ..analysis.tensor_bytes import item_size
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._bodies import copy_slice, outside_values, substitute_axes
from ._devices import target_of
from ._identities import constant_identity, has_constants
from ._parts import objection_to_length, objection_to_parts
from ._splice import fresh_names
from .assign_layouts import unit_dimension

T = TypeVar("T")


@dataclass(frozen=True)
class SplitReductions(LoopPass):
    """Reduce in two stages where few elements are each reduced from many.

    level:         loop
    precondition:  `loop-inline` before; no `loop.fusion` yet
    guarantee:     the same values, floating-point sums in another order. On the CPU, a reduction at the top of a
                   generate of at most `max_outer` elements, over at least `min_length`, becomes a generate of about
                   `parts` partial results for each element and a reduction of these. On a GPU as many parts are made
                   as give `programs` programs something to do, one for a row, or `COLUMN_PROGRAMS` that each take a
                   cache line of columns where the reduction does not run along memory. A reduction of all of a matrix
                   whose rows another nest reduces has these as parts. Sums of long columns of what another nest reduces
                   by rows get parts of few rows, and are scatters over rows and columns, so that `loop-fuse` can let
                   the programs of the rows sum them. Axes that are short enough become parallel as they are; else
                   one is split evenly, or, where its size has no fitting divisor, with a last part in which the
                   identity, or for max and the like the last element once more, fills up.

        %s = loop.generate () { %r = loop.reduce sum (r0 in 65536) { %v = loop.load %x[r0] ... } ... } : T
    becomes
        %p = loop.generate (i0 in 64) {
          %r = loop.reduce sum (r0 in 1024) { %v = loop.load %x[1024*i0 + r0] ... } ...
        } : !aten.tensor<64xf32>
        %s = loop.generate () { %r = loop.reduce sum (r0 in 64) { %v = loop.load %p[r0] ... } ... } : T

    and beside rows
        %s = loop.generate (i0 in 512) { %r = loop.reduce sum (r0 in 8192) { %v = loop.load %x[r0, i0] ... } ... } : T
    becomes
        %d = loop.empty : !aten.tensor<256x512xf32>
        %p = loop.scatter add (r0 in 8192, i0 in 512) into %d[r0 floordiv 32, i0] from_zero {
          %v = loop.load %x[r0, i0] ... } : !aten.tensor<256x512xf32>
        %s = loop.generate (i0 in 512) { %r = loop.reduce sum (r0 in 256) { %v = loop.load %p[r0, i0] ... } ... } : T
    """

    name = "loop-split-reductions"

    min_length: int = 32768
    max_outer: int = 16
    parts: int = 64
    programs: int = 2048

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        estimates = Sizes.of_function(function)
        for nest in list(block.ops):
            if type(nest) is GenerateOp:
                self.visit(nest, estimates)

    def visit(self, nest: GenerateOp, estimates: Sizes) -> None:
        """Split what is worth it at the top of a nest's body."""
        for reduce in [op for op in ops_of(nest.body.block) if type(op) is ReduceOp]:
            length = estimates.product(reduce.axes.sizes)
            beside = self.parts_beside_rows(nest, reduce, length, estimates)
            parts = beside or rows_of_programs(nest, reduce, estimates)
            parts = parts or self.wanted_parts(nest, reduce, length, estimates)
            if parts < 2:
                continue
            split = plan(reduce.axes, parts, estimates, STEPS if self.has_columns(nest, reduce) else 1)
            if (split.bound is None or has_constants(reduce.results)) and counter("loop-split-reductions"):
                remark("passed", "loop-split-reductions", nest, "two stages", length=length, parts=str(split.parts))
                parts_first = beside > 0 or self.columns_are_neighbours(nest, reduce, estimates)
                Splitter(nest, reduce, split, parts_first).run(beside > 0)

    def has_columns(self, nest: GenerateOp, reduce: ReduceOp) -> bool:
        """Whether programs of a GPU reduce neighbouring columns."""
        return target_of(nest).needs_many_rows and not runs_along_memory(reduce)

    def columns_are_neighbours(self, nest: GenerateOp, reduce: ReduceOp, estimates: Sizes) -> bool:
        """Whether programs that reduce neighbouring columns had better write partial results of these side by side.

        One for each part side by side lies as far apart as there are parts, and each is a write of its own. But the
        second stage then has columns too, and needs enough of them.
        """
        return self.has_columns(nest, reduce) and estimates.product(nest.axes.sizes) >= MIN_NEIGHBOURS

    def parts_beside_rows(self, nest: GenerateOp, reduce: ReduceOp, length: int, estimates: Sizes) -> int:
        """Parts of a sum of columns that the programs of another nest can compute beside its rows; 0 where none can."""
        columns = estimates.product(nest.axes.sizes)
        target = target_of(nest)
        if not isinstance(target, GpuTarget) or not may_join_rows(nest, reduce, columns, target):
            return 0
        parts = min(length // MIN_ROWS, JOINED_PARTS * max(JOINED_COLUMNS // columns, 1))
        return parts if parts > JOINED_PARTS // 2 and objection_to_parts(parts, target) is None else 0

    def wanted_parts(self, nest: GenerateOp, reduce: ReduceOp, length: int, estimates: Sizes) -> int:
        """Parts for each element; below two when the reduction is better left whole."""
        outer = estimates.product(nest.axes.sizes)
        if not target_of(nest).needs_many_rows:
            return self.parts if outer <= self.max_outer and length >= self.min_length else 0
        along_memory = runs_along_memory(reduce)
        programs = max(outer if along_memory else outer // COLUMNS, 1)
        if 8 * programs > self.programs:  # a second stage costs more than a GPU that is half busy
            return 0
        if along_memory:
            return min(self.programs // programs, length // MIN_ROW_PART)
        target = target_of(nest)
        if length < MIN_COLUMN or not isinstance(target, GpuTarget):
            return 0
        side_by_side = max(target.line_bytes // narrowest(reduce), target.warp)
        if keeps_busy(reduce, length * outer, -(-outer // side_by_side), target):
            return 0
        return parts_of_columns(length, max(outer // side_by_side, 1), len(reduce.results))


def parts_of_columns(length: int, programs: int, results: int) -> int:
    """Parts of columns of so many rows, where so many programs take neighbouring ones side by side.

    results: numbers that a part has for a column
    """
    part = max(PART_OF_COLUMN, ROWS_OF_RESULT * results)
    parts = min(COLUMN_PROGRAMS // programs, length // part, MOST_PARTS)
    return max(parts, min(FEW_PROGRAMS // programs, length // LEAST_PART_OF_COLUMN))


def keeps_busy(reduce: ReduceOp, points: int, programs: int, target: GpuTarget) -> bool:
    """Whether so many programs of whole columns lose less than a second stage takes.

    What they lose is what the memory could move while some processors have nothing left to read. One number for each
    point is all that a program may load and keep, for then its tiles are large enough that it reads fast by itself:
    sums of 512 x 4096 in bfloat16 take 7.7 us on an H200 whole and 10.1 in parts, variances of 8192 x 8192 83 and 50.
    So no other reduction reads the same, which would be fused with this one.
    """
    loads = [op for op in reduce.body.block.ops if type(op) is LoadOp]
    if len(loads) != 1 or len(reduce.results) != 1 or reduce.combine is not None:
        return False
    readers = {use.operation.parent_op() for use in loads[0].source.uses}
    if sum(type(reader) is ReduceOp for reader in readers) > 1:
        return False
    turns = -(-programs // target.processors)
    size = points * item_size(cast(TensorType, loads[0].source.type))
    return size * (turns * target.processors / max(programs, 1) - 1) <= target.launch_bytes


def narrowest(reduce: ReduceOp) -> int:
    """Bytes of the narrowest element that a reduction loads."""
    loads = [op for op in reduce.body.block.ops if type(op) is LoadOp]
    return min((item_size(cast(TensorType, load.source.type)) for load in loads), default=4)


#: columns that one GPU program reduces side by side, and the least along memory that is worth a part of its own
COLUMNS = 64
MIN_ROW_PART = 8192
#: rows from which on columns are cut: the second stage is a launch
MIN_COLUMN = 512
#: programs of parts of columns, rows of a part, those for each of its results, and parts of a column: the second stage
#: reads them all
COLUMN_PROGRAMS = 2048
PART_OF_COLUMN = 128
ROWS_OF_RESULT = 64
MOST_PARTS = 1024
#: programs below which parts are shorter, and rows of these: nothing else would keep the memory busy
FEW_PROGRAMS = 512
LEAST_PART_OF_COLUMN = 32
#: columns for which the partial results of neighbours lie side by side: 64 programs of 128 bytes for the second stage
MIN_NEIGHBOURS = 2048
#: rows of a part of columns that the steps of a program divide, if there are so many: no step is masked, none left over
STEPS = 128


#: rows of a matrix of which each may be a part of a sum of all: the second stage is one program
LEAST_ROWS = 128
MOST_ROWS = 16384


def rows_of_programs(nest: GenerateOp, reduce: ReduceOp, estimates: Sizes) -> int:
    """The rows of a matrix that a sum of all of it had better have as parts; 0 for none.

    Where another nest reduces the same rows, as the softmax whose logarithms a divergence adds up, its programs have
    the rows at hand, and one launch does both.
    """
    if not target_of(nest).needs_many_rows or nest.axes.data or len(reduce.axes.data) != 2:
        return 0
    loads = [op for op in reduce.body.block.ops if type(op) is LoadOp]
    rows = estimates.of(reduce.axes.data[0][1])
    found = any(is_reduced_by_rows(source, nest) for source in sources_along(loads, reduce.axes.names[-1]))
    return rows if found and LEAST_ROWS <= rows <= MOST_ROWS else 0


#: parts of sums of columns beside rows of `JOINED_COLUMNS` elements: programs of whole rows for a GPU to be busy with
JOINED_PARTS = 256
JOINED_COLUMNS = 1024
#: rows of a part, for which the partial sums are little beside what is read
MIN_ROWS = 8
#: fewest columns, so that a few rows are enough for a program
MIN_COLUMNS = 128
#: values that are looked at for one that is reduced by rows
MOST_VALUES = 16


def may_join_rows(nest: GenerateOp, reduce: ReduceOp, columns: int, target: GpuTarget) -> bool:
    """Whether a program that has a row at hand can sum columns too, and another nest has such rows for `loop-fuse`."""
    sums = all(name.data == "sum" for name in reduce.combiners)
    floats = all(isinstance(result.type, Float32Type) for result in reduce.results)
    alone = sum(type(op) is ReduceOp for op in nest.body.block.ops) == 1
    if (
        not (sums and floats and alone)
        or columns < MIN_COLUMNS
        or objection_to_length(columns * len(reduce.results), target)
    ):
        return False
    if not nest.axes.data or nest.axes.sizes[-1].as_int() != columns:
        return False
    last = nest.axes.names[-1]
    loads = [op for op in reduce.body.block.ops if type(op) is LoadOp]
    return any(has_row_programs(source, nest) for source in sources_along(loads, last))


def sources_along(loads: Iterable[Operation], axis: str) -> Iterator[SSAValue]:
    """What is loaded along memory by an axis, which is one of several indices."""
    for load in loads:
        if type(load) is LoadOp and len(load.map.data) > 1 and load.map.data[-1] is symbol(axis):
            yield load.source


def has_row_programs(source: SSAValue, columns: GenerateOp) -> bool:
    """Whether another nest reduces rows of a value, or of what is computed from it, or with it, element by element."""
    shape = cast(TensorType, source.type).shape
    todo, seen = [source], {source}
    while todo and len(seen) <= MOST_VALUES:
        value = todo.pop(0)
        if is_reduced_by_rows(value, columns):
            return True
        users = [use.operation.parent_op() for use in value.uses if type(use.operation) is LoadOp]
        for maker in (value.owner, *users):
            if type(maker) is GenerateOp and maker.axes.data:
                made_of = sources_along(maker.body.block.ops, maker.axes.names[-1])
                near = dict.fromkeys((*made_of, *maker.results))
                todo += [each for each in near if cast(TensorType, each.type).shape == shape and each not in seen]
                seen.update(todo)
    return False


def is_reduced_by_rows(source: SSAValue, columns: GenerateOp) -> bool:
    """Whether a reduction outside of the nest `columns` reads a value and runs along its memory, from row to row."""
    for use in source.uses:
        reduce = use.operation.parent_op()
        if type(reduce) is not ReduceOp or columns.is_ancestor(reduce):
            continue
        if any(True for _ in sources_along([use.operation], reduce.axes.names[-1])):
            return True
    return False


def runs_along_memory(reduce: ReduceOp) -> bool:
    """Whether neighbours along the reduction's last axis are neighbours in memory of something that it loads.

    Only what is loaded along most axes counts: a number for each row, such as a mean, lies along columns of rows.
    """
    last = reduce.axes.names[-1]
    loads = [op for op in reduce.body.block.ops if type(op) is LoadOp and op.map.data]
    most = max(map(_axes_of, loads), default=0)
    return any(last in _index_along_memory(load).free_symbols for load in loads if _axes_of(load) == most) or not loads


def _axes_of(load: LoadOp) -> int:
    """How many axes the place of a load depends on."""
    return len(frozenset[str]().union(*(index.free_symbols for index in load.map.data)))


def _index_along_memory(load: LoadOp) -> Expr:
    """The index of the dimension whose elements lie side by side."""
    dimension = unit_dimension(cast(TensorType, load.source.type))
    return load.map.data[-1 if dimension is None else dimension]


@dataclass
class Split:
    """How the axes of a reduction become parts and what is left.

    parts:         sizes of the axes of the partial results
    inner:         axes of the first stage's reduction
    substitution:  old axes by new ones; the k-th part axis is `part(k)`
    bound:         (index, size) when the index may exceed the old axis, in the last part
    """

    parts: list[Expr]
    inner: list[tuple[str, Expr]]
    substitution: dict[str, Expr]
    bound: tuple[Expr, Expr] | None = None


def part(number: int) -> str:
    """Placeholder for the name of a part axis."""
    return f"part{number}"


def plan(axes: AxesAttr, wanted: int, estimates: Sizes, steps: int = 1) -> Split:
    """Choose which axes to run in parallel, outermost first, until there are about `wanted` parts, of whole steps."""
    split = Split([], [], {})
    have = 1
    for name, size in axes.data:
        rest, likely = max(wanted // have, 1), estimates.of(size)
        if rest < 2 or likely < 2:
            split.inner.append((name, size))
            continue
        position = symbol(part(len(split.parts)))
        if likely <= rest and len(split.inner) + len(split.parts) < len(axes.data) - 1:
            split.substitution[name] = position
            split.parts.append(size)
            have *= likely
            continue
        count = _divisor(size.as_int(), rest, steps)
        chunk = ceildiv(size, count)
        index = position * chunk + symbol(name)
        if size.as_int() is None or likely % count:
            split.bound = index, size
            index = smin(index, size - 1)
        split.substitution[name] = index
        split.parts.append(const(count))
        split.inner.append((name, chunk))
        have = wanted
    return split


def _divisor(size: int | None, wanted: int, steps: int) -> int:
    """The divisor of a size that is nearest to `wanted`, if one is within a factor of two; else `wanted`.

    Those come first that leave a multiple of as large a power of two, up to `steps`, as is left about.
    """
    if size is None:
        return wanted
    step = min(1 << max((size // wanted).bit_length() - 1, 0), steps)
    near = [d for d in range(max(wanted // 2, 2), 2 * wanted + 1) if size % d == 0]
    return min(near, key=lambda d: (size // d % step != 0, abs(d - wanted)), default=wanted)


class Splitter:
    """Rewrites one reduction."""

    def __init__(self, nest: GenerateOp, reduce: ReduceOp, split: Split, parts_first: bool) -> None:
        self.nest, self.reduce, self.split = nest, reduce, split
        self.parts_first = parts_first
        taken = frozenset((*nest.axes.names, *(name for name, _ in split.inner)))
        self.names = fresh_names("i", len(split.parts), taken)
        self.renaming = {part(k): symbol(name) for k, name in enumerate(self.names)}

    def run(self, beside_rows: bool) -> None:
        """Insert the first stage in front of the nest and make its reduction the second."""
        first = self.scatters() if beside_rows else [self.first_stage()]
        block = self.nest.parent
        assert block is not None
        block.insert_ops_before(first, self.nest)
        second = self.second_stage([result for op in first if not isinstance(op, EmptyOp) for result in op.results])
        body = self.nest.body.block
        body.insert_op_before(second, self.reduce)
        for old, new in zip(self.reduce.results, second.results, strict=True):
            old.replace_all_uses_with(new)
        body.erase_op(self.reduce)

    def scatters(self) -> list[Operation]:
        """The first stage as sums over the whole domain, one for each result."""
        nest, reduce, inner = self.nest, self.reduce, dict(self.split.inner)
        parts = [
            symbol(name) // inner[name] if name in inner else symbol(name)
            for name in reduce.axes.names
            if name in self.split.substitution
        ]
        axes = AxesAttr.of(*reduce.axes.data, *nest.axes.data)
        index = MapAttr.of(*self.in_order([symbol(name) for name in nest.axes.names], parts))
        shape = tuple(self.in_order(nest.axes.sizes, self.split.parts))
        device = cast(TensorType, nest.results[0].type).device
        made: list[Operation] = []
        for value in yielded(reduce.body):
            ops: list[Operation] = []
            copies = copy_slice(outside_values(reduce), nest.body.block, ops)
            copies = copy_slice([value], reduce.body.block, ops, copies)
            ops.append(YieldOp.create(operands=[copies[value]]))
            empty = EmptyOp.of(TensorType.get(shape, value.type, device=device), location=reduce.location)
            body = Region(Block(ops))
            made += [empty, ScatterOp.of(empty.out, axes, index, body, "add", ["from_zero"], location=reduce.location)]
        return made

    def first_stage(self) -> GenerateOp:
        """The partial results."""
        nest, reduce = self.nest, self.reduce
        ops: list[Operation] = []
        copies = copy_slice(inputs_of(reduce), nest.body.block, ops)
        body = reduce.body.clone()
        for op in body.walk():
            if any(v in copies for v in op.operands):
                op.operands = [copies.get(v, v) for v in op.operands]
        substitution = {name: e.subs(self.renaming) for name, e in self.split.substitution.items()}
        substitute_axes(body.block, substitution)
        inner = ReduceOp.of(
            AxesAttr.of(*self.split.inner),
            [c.data for c in reduce.combiners],
            body,
            [copies.get(v, v) for v in reduce.operands],
            None if reduce.combine is None else reduce.combine.clone(),
        )
        inner.location = reduce.location
        if self.split.bound is not None:
            self.fill_up(inner, ops)
        ops += [inner, YieldOp.create(operands=inner.results)]
        axes = AxesAttr.of(*self.in_order(nest.axes.data, list(zip(self.names, self.split.parts, strict=True))))
        device = cast(TensorType, nest.results[0].type).device
        types = [TensorType.get(axes.sizes, r.type, device=device) for r in inner.results]
        return GenerateOp.of(axes, Region(Block(ops)), types, location=nest.location)

    def in_order(self, elements: Sequence[T], parts: Sequence[T]) -> list[T]:
        """Dimensions of the partial results."""
        return [*parts, *elements] if self.parts_first else [*elements, *parts]

    def fill_up(self, inner: ReduceOp, ops: list[Operation]) -> None:
        """Let the identity stand for what is behind the end, where another last element would count."""
        values = yielded(inner.body)
        identity = list(inner.operands) or constant_identity([c.data for c in inner.combiners], values, ops)
        if identity is None:
            return
        assert self.split.bound is not None
        index, size = (SymAttr.of(e.subs(self.renaming)) for e in self.split.bound)
        block = inner.body.block
        last = cast(YieldOp, block.last_op)
        position = IndexOp.create(properties={"expr": index}, result_types=(i64,))
        end = IndexOp.create(properties={"expr": size}, result_types=(i64,))
        inside = arith.CmpiOp(position.results[0], end.results[0], "slt")
        selects = [arith.SelectOp(inside.results[0], v, i) for v, i in zip(values, identity, strict=True)]
        block.insert_ops_before([position, end, inside, *selects], last)
        last.operands = [select.results[0] for select in selects]

    def second_stage(self, first: Sequence[SSAValue]) -> ReduceOp:
        """The reduction of partial results."""
        reduce = self.reduce
        names = fresh_names("r", len(self.split.parts), frozenset(self.nest.axes.names))
        index = MapAttr.of(*(symbol(n) for n in self.in_order(self.nest.axes.names, names)))
        loads = [LoadOp.of(result, index, location=reduce.location) for result in first]
        body = Region(Block([*loads, YieldOp.create(operands=[load.results[0] for load in loads])]))
        combiners = [c.data for c in cast("ArrayAttr[StringAttr]", reduce.combiners)]
        axes = AxesAttr.of(*zip(names, self.split.parts, strict=True))
        combine = None if reduce.combine is None else reduce.combine.clone()
        second = ReduceOp.of(axes, combiners, body, tuple(reduce.operands), combine)
        second.location = reduce.location
        return second
