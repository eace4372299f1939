"""The pass `kernel-join-runs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from math import prod

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.effects import is_pure
from ...dialects.kernel import BufferType
from ...dialects.sym import ZERO, Expr, MapAttr, SymAttr, as_expr, symbol
from ...records import dataclass
from ..analysis.effects import meeting_stores, written_buffers
from ..analysis.loops import Loop, fresh_axis, is_loop, kernel_names, named_in_bounds, ops_in, substitute_axes
from ..analysis.nests import element_bytes, is_unit
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import is_mapped, untiled_for_cpu
from .transforms import perfect_chain, range_of, reduction_chain, set_range

#: lines of the cache that a run takes at most: a longer one fills lanes and lines by itself
LONGEST_RUN = 2
#: fewest runs of a reduction: the results of all elements pass through memory
FEWEST_RUNS = 32
#: how much faster a core is with joined runs, so that it may be that many times fewer cores
GAIN = 2
#: local buffers of joined runs that the nearest cache should hold, beside what is read
LOCALS = 8
#: what may be combined in another order
COMBINERS = frozenset({"sum", "prod", "max", "min"})


@dataclass(frozen=True)
class KernelJoinRuns(KernelPass, kernels=untiled_for_cpu):
    """Join the short runs of memory that neighbours reduce to one axis of lanes (loop distribution, scalar expansion).

    Level: kernel.

    Precondition: in front of `kernel-map`; loops are serial. Only kernels for a CPU.
    Guarantee: where iterations of the loop around reductions each read runs of at most `LONGEST_RUN` lines of the
    cache, far apart, and the runs of neighbours follow one another, the loop is distributed over what is in it. A
    reduction becomes one of each element of all runs, into a local buffer, and then of each run. What loops need of the
    results is in local buffers too, once for each element of a run. Reductions combine in another order. Where there
    are too few nests around for all cores, a part of the neighbours is joined, a line at least.

    Group norm of images with channels last (8x64x56x56, 8 groups) on one core: 1.6 ms, eager 0.44. A run of 8 channels
    is half of a line, which was read for the next group again, and each addition waited for the one before.

        kernel.for i0 in 0 to 8 {
          %s = kernel.reduce sum i1 in 0 to 3136 {
            %p = kernel.reduce sum i2 in 0 to 8 { %v = kernel.load %x[8*i0 + 64*i1 + i2] ... } ... }
          kernel.for i1 in 0 to 3136 { kernel.for i2 in 0 to 8 { ... %s ... } } }
    becomes
        %a = kernel.local  %b = kernel.local
        kernel.for i3 in 0 to 64 {
          %s = kernel.reduce sum i1 in 0 to 3136 { %v = kernel.load %x[64*i1 + i3] ... }  kernel.store %s, %a[i3] }
        kernel.for i0 in 0 to 8 {
          %t = kernel.reduce sum i2 in 0 to 8 { %v = kernel.load %a[8*i0 + i2] ... }
          kernel.for i2 in 0 to 8 { kernel.store %t, %b[8*i0 + i2] } }
        kernel.for i1 in 0 to 3136 { kernel.for i3 in 0 to 64 { %u = kernel.load %b[i3] ... } }
    """

    name = "kernel-join-runs"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Join the runs of every nest of a kernel that is for a CPU and has no mapping yet."""
        if is_mapped(function):
            return
        for nest in list(function.body.block.ops):
            if isinstance(nest, kernel.ForOp) and not is_pinned(nest):
                self._on_nest(function, nest, facts)

    def _on_nest(self, function: kernel.FuncOp, nest: kernel.ForOp, facts: KernelFacts) -> None:
        chain = perfect_chain(nest)
        loop = chain[-1]
        run = _run_of(loop, facts)
        if run is None:
            return
        _hoist_loads(loop, run)
        count = _count(chain, run, facts)
        parts = [part for op in _loops(loop) if (part := _part_of(op, run)) is not None]
        objection = "there are too few for all cores" if count is None else _objection(chain, loop, parts)
        if objection is not None:
            remark("missed", self.name, loop, f"runs of neighbours are read one by one: {objection}")
        elif count is not None and counter(self.name):
            _Distribution(loop, run, count, parts, kernel_names(function)).run()
            remark("passed", self.name, loop, f"runs of {count} neighbours are one axis")


@dataclass(frozen=True)
class _Run:
    """What an iteration of the loop over `axis` reads side by side: `length` elements, of so many bytes in all."""

    axis: str
    length: Expr
    bytes: int


@dataclass(frozen=True)
class _Part:
    """A loop right inside of the one over neighbours: its loops along runs and along the rest, and the innermost."""

    op: Loop
    along: Loop
    rest: Sequence[Loop]

    @property
    def body(self) -> Block:
        """What is done for each element."""
        innermost = min((self.along, *self.rest), key=lambda each: len(ops_in(each)))
        return innermost.regions[0].block


def _loops(loop: kernel.ForOp) -> list[Loop]:
    return [op for op in loop.body.block.ops if isinstance(op, Loop)]


def _chain_of(op: Loop) -> Sequence[Loop]:
    if isinstance(op, kernel.ReduceOp):
        return reduction_chain(op)
    return perfect_chain(op) if isinstance(op, kernel.ForOp) else ()


def _run_of(loop: kernel.ForOp, facts: KernelFacts) -> _Run | None:
    """The short runs that a reduction right inside of a loop over neighbours reads; None where there are none."""
    for load, along, rest in _reduced_loads(loop):
        length = facts.sizes.of(along.hi.data)
        bytes_ = length * element_bytes(load.buffer.type)
        short = length > 1 and bytes_ <= LONGEST_RUN * facts.target.line_bytes
        many = prod(facts.sizes.trips(each) for each in rest) >= FEWEST_RUNS
        if short and many and _are_apart(load, loop, along, rest):
            return _Run(loop.axis.data, along.hi.data, bytes_)
    return None


def _reduced_loads(loop: kernel.ForOp) -> Iterator[tuple[kernel.LoadOp, kernel.ReduceOp, Sequence[kernel.ReduceOp]]]:
    """The loads of reductions right inside of a loop, each with one of its loops and the others."""
    for op in loop.body.block.ops:
        chain = reduction_chain(op) if isinstance(op, kernel.ReduceOp) else []
        for load in chain[-1].body.block.ops if len(chain) > 1 else ():
            if isinstance(load, kernel.LoadOp):
                yield from ((load, along, [each for each in chain if each is not along]) for along in chain)


def _are_apart(load: kernel.LoadOp, loop: kernel.ForOp, along: Loop, rest: Iterable[Loop]) -> bool:
    """Whether a load reads runs along one loop that neighbours' follow, and that lie far apart along the others."""
    index, type_ = load.map.data[0], load.buffer.type
    if load.mask is not None or load.dynamic or not isinstance(type_, BufferType) or type_.local:
        return False
    if not is_unit(index.coefficient(along.axis.data)) or index.coefficient(loop.axis.data) != along.hi.data:
        return False
    strides = [index.coefficient(each.axis.data) for each in rest]
    known = [None if stride is None else stride.as_int() for stride in strides]
    length = along.hi.data.as_int()
    return None not in strides and all(k is None or length is None or k > length for k in known)


def _part_of(op: Loop, run: _Run) -> _Part | None:
    """The loops of a part, of which one goes along the runs; None where none does."""
    chain = _chain_of(op)
    found = [each for each in chain if each.hi.data == run.length and _goes_along(chain[-1], each, run)]
    if len(found) != 1 or found[0].lo.data is not ZERO:
        return None
    return _Part(op, found[0], [each for each in chain if each is not found[0]])


def _goes_along(innermost: Loop, along: Loop, run: _Run) -> bool:
    """Whether everything that depends on the neighbour or the place in its run is told by the element of all runs."""
    joined = {along.axis.data: symbol("all") - run.length * symbol(run.axis)}
    places = [e for op in innermost.regions[0].block.ops for e in _places(op)]
    mine = [e for e in places if not e.free_symbols.isdisjoint({run.axis, along.axis.data})]
    return bool(mine) and all(run.axis not in e.subs(joined).free_symbols for e in mine)


def _places(op: Operation) -> tuple[Expr, ...]:
    if isinstance(op, kernel.LoadOp | kernel.StoreOp):
        return op.map.data
    return (op.expr.data,) if isinstance(op, kernel.IndexOp) else ()


def _hoist_loads(loop: kernel.ForOp, run: _Run) -> None:
    """Move what loops load for a whole iteration in front of them."""
    written = written_buffers(loop.body.block)
    for op in _loops(loop):
        inner = {each.axis.data for each in _chain_of(op)}
        for load in [each for each in ops_in(op) if isinstance(each, kernel.LoadOp)]:
            names = load.map.data[0].free_symbols
            alone = run.axis in names and inner.isdisjoint(names) and load.mask is None and not load.dynamic
            if alone and load.buffer not in written:
                load.detach()
                loop.body.block.insert_op_before(load, op)


def _count(chain: Sequence[kernel.ForOp], run: _Run, facts: KernelFacts) -> int | None:
    """How many neighbours are joined: all, or as few as give all cores work; None where those are too few."""
    size = chain[-1].hi.data.as_int()
    if size is None or size < 2 or chain[-1].lo.data is not ZERO:
        return None
    around = prod(facts.sizes.trips(loop) for loop in chain[:-1])
    least = min(size, -(-facts.target.line_bytes // run.bytes))
    most = min(size, max(facts.target.l1_bytes // (LOCALS * run.bytes), least))
    fitting = (d for d in range(most, least - 1, -1) if size % d == 0)
    return next((d for d in fitting if around * (size // d) * GAIN >= facts.target.cores), None)


def _objection(chain: Sequence[kernel.ForOp], loop: kernel.ForOp, parts: Sequence[_Part]) -> str | None:
    """Why a loop over neighbours cannot be distributed; None where it can."""
    inside = _loops(loop)
    if len(parts) != len(inside):
        return "a loop does not go along the runs"
    loops = [*chain, *(op for each in inside for op in ops_in(each) if isinstance(op, Loop))]
    if not named_in_bounds(loops).isdisjoint(each.axis.data for each in loops):
        return "one loop says how far another runs"
    if meeting_stores(loop):
        return "stores meet"
    ops = [op for part in parts for op in part.body.ops]
    if any(map(is_loop, ops)) or not all(map(_is_simple, [*loop.body.block.ops, *ops])):
        return "an operation in it has no order but its own"
    values = [r for op in loop.body.block.ops for r in op.results]
    return None if all(map(_can_be_kept, values)) else "a value cannot be kept in memory"


def _can_be_kept(value: SSAValue) -> bool:
    type_ = value.type
    return isinstance(type_, AnyFloat) or (isinstance(type_, IntegerType) and type_.width.data >= 8)


def _is_simple(op: Operation) -> bool:
    if isinstance(op, kernel.ReduceOp):
        plain = op.mapping.data == "serial" and not op.operands and op.combine is None and op.tile is None
        return plain and all(combiner.data in COMBINERS for combiner in op.combiners)
    if isinstance(op, kernel.StoreOp | kernel.LoadOp):
        return isinstance(op.buffer.type, BufferType) and not op.buffer.type.local
    return isinstance(op, kernel.YieldOp | kernel.ForOp) or (not op.regions and is_pure(op))


@dataclass
class _Distribution:
    """Distributes the loop over neighbours: `count` of them at once, whose runs are one axis.

    kept:    values of an iteration -> the local buffers that have them once for each element of a run
    pending: ops of an iteration, beside its loops, that stand in no new loop yet, and the values that theirs stand for
    """

    loop: kernel.ForOp
    run_: _Run
    count: int
    parts: Sequence[_Part]
    names: set[str]
    kept: dict[SSAValue, SSAValue] = field(default_factory=dict)
    pending: list[tuple[Operation, Sequence[SSAValue]]] = field(default_factory=list)

    def run(self) -> None:
        """Replace the loop's block; the loop is over groups of neighbours then."""
        self.block = self.loop.body.detach_block(0)
        self.new = Block([])
        self.neighbour, self.element = fresh_axis(self.names), fresh_axis(self.names)
        self.shared: dict[SSAValue, SSAValue] = {}
        parts: dict[Operation, _Part] = {part.op: part for part in self.parts}
        for op in self.block.ops:
            if isinstance(op, kernel.YieldOp):
                continue
            if (part := parts.get(op)) is not None:
                self._flush()
                self._reduce(op, part) if isinstance(op, kernel.ReduceOp) else self._each(part)
            elif self._is_shared(op):
                self.new.add_op(op.clone(self.shared))
            else:
                self.pending.append((op, op.results))
        self._flush()
        self.new.add_op(kernel.YieldOp.create())
        self.loop.body.add_block(self.new)
        axis, lo, hi = range_of(self.loop)
        set_range(self.loop, (axis, lo, hi // self.count))
        self.block.erase(safe_erase=False)
        _drop_single(self.loop)

    def _is_shared(self, op: Operation) -> bool:
        """Whether an op only makes values that are the same for all neighbours."""
        own = all(v in self.shared for v in op.operands if _is_of(v, self.block))
        return own and is_pure(op) and not any(self.run_.axis in place.free_symbols for place in _places(op))

    def _reduce(self, op: kernel.ReduceOp, part: _Part) -> None:
        """Reduce each element of all runs into local buffers; its run is reduced with what is pending next."""
        body = self._body(part)
        for loop in reversed(part.rest):
            assert isinstance(loop, kernel.ReduceOp)
            reduce = kernel.ReduceOp.of(*range_of(loop), _combiners(op), Region(body), location=op.location)
            body = Block([reduce, kernel.YieldOp.create(operands=reduce.results)])
        last = body.last_op
        assert last is not None
        values = tuple(last.operands)
        body.erase_op(last)
        locals_ = [self._local(value) for value in values]
        for value, local in zip(values, locals_, strict=True):
            body.add_op(kernel.StoreOp.of(value, local, MapAttr.of(symbol(self.element)), location=op.location))
        body.add_op(kernel.YieldOp.create())
        inner = kernel.ForOp.of(self.element, ZERO, self._elements, Region(body), location=op.location)
        self.new.add_op(inner)
        element = self.run_.length * symbol(self.neighbour) + symbol(part.along.axis.data)
        self.pending.append((_of_runs(op, part, element, locals_), op.results))

    def _each(self, part: _Part) -> None:
        """Run the body of a loop for each element of all runs."""
        body = self._body(part)
        inner = kernel.ForOp.of(self.element, ZERO, self._elements, Region(body), location=part.op.location)
        for loop in reversed(part.rest):
            block = Block([inner, kernel.YieldOp.create()])
            inner = kernel.ForOp.of(*range_of(loop), Region(block), location=loop.location)
        self.new.add_op(inner)

    @property
    def _elements(self) -> Expr:
        return self.run_.length * as_expr(self.count)

    def _body(self, part: _Part) -> Block:
        """A copy of a part's innermost body for an element of all runs."""
        values, body = dict(self.shared), Block([])
        self._load_kept(_outside(part.body.ops, self.block), symbol(self.element), values, body)
        for op in part.body.ops:
            body.add_op(op.clone(values))
        along, run = part.along.axis.data, self.run_
        group = symbol(run.axis) * as_expr(self.count)
        neighbour = symbol(self.neighbour)
        within = symbol(self.element) - run.length * neighbour
        substitute_axes(body, {along: within, run.axis: group + neighbour})
        return body

    def _local(self, value: SSAValue) -> SSAValue:
        local = kernel.LocalOp.of(value.type, SymAttr.of(self._elements))
        self.new.add_op(local)
        return local.buffer

    def _flush(self) -> None:
        """Do what is pending for each neighbour, and keep what later ops need of it."""
        if not self.pending:
            return
        values, body = dict(self.shared), Block([])
        self._load_kept(
            _outside([op for op, _ in self.pending], self.block),
            self.run_.length * symbol(self.neighbour),
            values,
            body,
        )
        for op, results in self.pending:
            copy = op.clone(values)
            body.add_op(copy)
            values.update(zip(results, copy.results, strict=True))
        done = {result.owner for _, results in self.pending for result in results} | {op for op, _ in self.pending}
        needed = [
            r
            for _, results in self.pending
            for r in results
            if any(self._user(use.operation) not in done for use in r.uses)
        ]
        self._keep(needed, values, body)
        body.add_op(kernel.YieldOp.create())
        group = symbol(self.run_.axis) * as_expr(self.count) + symbol(self.neighbour)
        substitute_axes(body, {self.run_.axis: group})
        self.new.add_op(kernel.ForOp.of(self.neighbour, ZERO, as_expr(self.count), Region(body)))
        self.pending = []

    def _user(self, op: Operation) -> Operation:
        """The op of the old block that is around an op, or the op itself."""
        while op.parent is not self.block and (parent := op.parent_op()) is not None:
            op = parent
        return op

    def _load_kept(
        self, wanted: Iterable[SSAValue], place: Expr, values: dict[SSAValue, SSAValue], body: Block
    ) -> None:
        """Load what was kept of earlier results."""
        for value in wanted:
            if value in self.kept:
                load = kernel.LoadOp.of(self.kept[value], MapAttr.of(place))
                body.add_op(load)
                values[value] = load.value

    def _keep(self, needed: Sequence[SSAValue], values: dict[SSAValue, SSAValue], body: Block) -> None:
        if not needed:
            return
        place = fresh_axis(self.names)
        element = MapAttr.of(self.run_.length * symbol(self.neighbour) + symbol(place))
        stores: list[Operation] = []
        for value in needed:
            self.kept[value] = self._local(value)
            stores.append(kernel.StoreOp.of(values[value], self.kept[value], element))
        stores.append(kernel.YieldOp.create())
        body.add_op(kernel.ForOp.of(place, ZERO, self.run_.length, Region(Block(stores))))


def _outside(ops: Iterable[Operation], block: Block) -> list[SSAValue]:
    """The values that ops, or what is nested in them, take from a block around or beside them."""
    inner = [each for op in ops for each in ops_in(op)]
    return list(dict.fromkeys(v for each in inner for v in each.operands if _is_of(v, block)))


def _is_of(value: SSAValue, block: Block) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent is block


def _of_runs(op: kernel.ReduceOp, part: _Part, element: Expr, locals_: Sequence[SSAValue]) -> kernel.ReduceOp:
    """The reduction of a neighbour's run, from the local buffers that have a result for each element of all runs."""
    loads = [kernel.LoadOp.of(local, MapAttr.of(element), location=op.location) for local in locals_]
    body = Block([*loads, kernel.YieldOp.create(operands=[load.value for load in loads])])
    return kernel.ReduceOp.of(*range_of(part.along), _combiners(op), Region(body), location=op.location)


def _combiners(op: kernel.ReduceOp) -> list[str]:
    return [combiner.data for combiner in op.combiners]


def _drop_single(loop: kernel.ForOp) -> None:
    """Put what a loop of one iteration does in its place."""
    parent = loop.parent
    if loop.hi.data.as_int() != 1 or parent is None:
        return
    body = loop.body.block
    substitute_axes(body, {loop.axis.data: ZERO})
    for op in list(body.ops):
        if not isinstance(op, kernel.YieldOp):
            op.detach()
            parent.insert_op_before(op, loop)
    parent.erase_op(loop)
