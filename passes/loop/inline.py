"""`loop-inline`: producers move into the nests that read them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, ReduceOp, ScatterOp, ViewOp, YieldOp
from ...dialects.sym import ONE, ZERO, AxesAttr, Expr, Ranges, prove_le, symbol
from ...records import dataclass
from ..analysis.functions import elsewhere, is_handed_in, is_handing_over, symbol_ranges
from ..analysis.memory import NESTS, Mutations
from ..analysis.nests import element_bytes
from ..analysis.recomputing import reads_less_again
from ..analysis.sizes import Sizes
from ..common.choices import chosen_tile, is_turned
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import access_of, loads_in, map_of
from ._bodies import axes_around, nest_of
from ._cost import BodyCost, body_cost
from ._devices import objection_across_devices
from ._live_bytes import inlining_crowds_memory
from ._reduced_sources import is_last_step_of_rows
from ._splice import Site, Splicer, zero
from .dce import sweep
from .simplify_indices import simplify_nest


@dataclass(frozen=True)
class Inline(LoopPass):
    """Compute elements of a producer where they are read, under a model of the cost of computing them again.

    level:         loop
    precondition:  `loop-eliminate-views`; no `loop.fusion` yet. `loop-cse` before makes loads of one element one.
    guarantee:     a `loop.generate` is inlined into all loads of it, or into none. It is inlined when one holds:

      - it is read at one site that evaluates no element twice: its region moves, whatever it costs. A body with a
        reduction moves only to the top of the body of a generate or scatter. The last step of rows, made of results
        of reductions that take no less memory than its own, does not move into a reduction (`_reduced_sources.py`);
      - it is cheap (at most `cheap` weighted operations, no reduction, `_cost.py`), nothing but loads uses it, what it
        reads is in memory anyway or small (else the readers' kernels would make its sources live in memory: a number
        for each row may live there, and does not where the readers are fused with what makes it), and recomputing
        moves less: with n sites and r elements read for one, n*r < r + 1 + n, which is what computing, writing and
        reading it n times costs. A site that evaluates elements repeatedly (broadcast, gather, inside a reduction
        that it does not depend on, overlapping windows) allows r <= 1 and, if anything is read, half of the operations.
        Lanes without an element (a piece beside others) read nothing, and compute in vain what is cheap. A tile for
        matrix units that was chosen for the reader makes an element once for all of its rows, and what is made of less
        memory, as a dequantised weight, is made again for a few such tiles;
      - its sites together evaluate no more points than it has elements (pieces of it), and what it reads is in memory
        anyway: then nothing is computed again. With a reduction only at the top of bodies of generates and scatters,
        and where something as large as all that it reduces is read once, as the matrix of a product with a vector;
      - it reads nothing (constants, index arithmetic) and is cheap: then also when it is needed in memory anyway.

    A view that a function returns is such a site, with the strides of the view, where it alone keeps the producer in
    memory: the elements that nobody sees are not computed, and readers of others need not wait for them.

    Never past an `aten.copy_` that writes what the body reads, nor, with a `loop.assert`, past any; the assert must be
    evaluated for the same elements at the one site. A masked load pushes its mask into the loads of the body, which
    must have no assert, reduction or integer division. Nor onto another device what reads more than numbers, or what
    decides by a value that devices round differently (`_devices.py`). Nor into a nest with large results beside which
    inputs that die would stay in memory, instead of a small value. A body grows to at most `max_ops` ops and
    `max_loads` loads.
    Bodies that something moved into are simplified as by `loop-simplify-indices` and hold nothing dead. An inserted
    cast to a narrower type and back goes (`widen(narrow(x)) == x`) unless `emulate_precision_casts`.

        %e = loop.generate (i0 in 4) { %v = loop.load %x[i0]  %w = math.exp %v : f32  loop.yield %w } : T
        %y = loop.generate (i0 in 2) { %v = loop.load %e[2*i0]  loop.yield %v } : T
    becomes
        %y = loop.generate (i0 in 2) { %v = loop.load %x[2*i0]  %w = math.exp %v : f32  loop.yield %w } : T
    """

    name = "loop-inline"

    cheap: int = 12
    max_ops: int = 600
    max_loads: int = 48
    emulate_precision_casts: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        _Inliner(self, block, symbol_ranges(function), Sizes.of_function(function)).run()


#: elements of a producer for each of a source that may go to memory for its sake
SMALL = 16
#: numbers of the tile of a product at least, of which the first are its rows
LEAST_OF_TILE = 5
#: for how many tiles of rows a factor is made again that is made of less memory: whoever chose the tile counted that
MOST_TILES = 16
#: what is read then is at most so much of what is made
LESS = 0.75
#: how often a reduction whose pieces are computed where they are read takes each element of its largest source
REREAD = 2


@dataclass
class _Uses:
    """How a producer is used: the sites that load from it, and whether anything else needs it in memory."""

    sites: list[Site]
    escapes: bool


class _Inliner:
    """One sweep over a function: each producer is pushed into its readers, which come behind it."""

    def __init__(self, options: Inline, block: Block, ranges: Ranges, estimates: Sizes) -> None:
        self.options = options
        self.block = block
        self.ranges = ranges
        self.estimates = estimates
        self.mutations = Mutations(block)
        self.sizes: dict[Operation, tuple[int, int]] = {}
        self.grown: set[Operation] = set()

    def run(self) -> None:
        op = self.block.first_op
        while op is not None:
            previous = op.prev_op
            if op in self.grown:
                # indices that met may fold, and asserts on them, which decides what can be inlined further
                simplify_nest(op, self.ranges)
                sweep(op.regions[0].block)
            if type(op) is GenerateOp:
                self.visit(op)
            if op.parent is None:  # inlined; what follows may be new
                op = self.block.first_op if previous is None else previous.next_op
            else:
                op = op.next_op

    def size(self, nest: Operation) -> tuple[int, int]:
        """Ops and loads of a nest, counted once and then kept up to date."""
        found = self.sizes.get(nest)
        if found is None:
            cost = body_cost(nest)
            found = self.sizes[nest] = cost.ops, cost.loads
        return found

    def visit(self, producer: GenerateOp) -> None:
        uses = uses_of(producer)
        if not uses.sites:
            return
        if uses.escapes and (view := only_view(producer)) is not None:
            uses = self.with_view(producer, uses, view)
        cost = body_cost(producer)
        reason = self.objection(producer, cost, uses)
        if reason is not None:
            remark("missed", "loop-inline", producer, reason, sites=len(uses.sites))
        elif counter("loop-inline"):
            remark("passed", "loop-inline", producer, "inlined", sites=len(uses.sites))
            self.inline(producer, cost, uses)

    def with_view(self, producer: GenerateOp, uses: _Uses, view: ViewOp) -> _Uses:
        """The uses with a returned view as one nest more, if the producer can then be inlined into all."""
        cost = body_cost(producer)
        points = sum(self.points(axes_around(site.block)) for site in uses.sites) + self.points(view.axes.data)
        objections = (
            self.illegal(producer, site, cost) or self.too_large(site, cost) or self.crowding(producer, site)
            for site in uses.sites
        )
        if self.mutations or cost.has_assert or any(objections) or not self.is_pieces(producer, cost, points):
            return uses
        if not counter("loop-inline"):
            return uses
        remark("passed", "loop-inline", view, "computed by itself", sites=len(uses.sites))
        nest_of_view(view)
        return uses_of(producer)

    def is_pieces(self, producer: GenerateOp, cost: BodyCost, points: int) -> bool:
        """Whether computing a producer at so many points repeats nothing and leaves nothing else in memory."""
        elements = self.estimates.product(cast(AxesAttr, producer.properties["axes"]).sizes)
        if points > elements:
            return False
        return self.streams(producer) if cost.has_reduce else all(is_stored(o.operands[0]) for o in loads_in(producer))

    def streams(self, producer: GenerateOp) -> bool:
        """Whether a producer reduces about as many points as its largest source has elements, which is in memory; all
        others are small."""
        around = (axes_around(op.body.block) for op in producer.walk() if type(op) is ReduceOp)
        points = max(map(self.points, around))
        sources = {load.operands[0] for load in loads_in(producer)}
        elements = {source: self.estimates.product(cast(TensorType, source.type).shape) for source in sources}
        largest = max(elements.values())
        return points <= REREAD * largest and all(
            is_stored(source) or count * SMALL <= points for source, count in elements.items()
        )

    def may_be_stored(self, source: SSAValue, producer: GenerateOp) -> bool:
        """Whether a source is in memory anyway, or costs next to nothing there, as a number for each row does."""
        if is_stored(source):
            return True
        elements = self.estimates.product(cast(AxesAttr, producer.properties["axes"]).sizes)
        return self.estimates.product(cast(TensorType, source.type).shape) * SMALL <= elements

    def points(self, axes: Iterable[tuple[str, Expr]]) -> int:
        """Estimated points of a domain."""
        return self.estimates.product(size for _, size in axes)

    def objection(self, producer: GenerateOp, cost: BodyCost, uses: _Uses) -> str | None:
        """Why a producer is not inlined; None when it is."""
        for site in uses.sites:
            reason = self.illegal(producer, site, cost) or self.too_large(site, cost) or self.crowding(producer, site)
            if reason is None and cost.loads > 1 and _is_brought_whole(site):
                reason = "a copy engine brings the rows of a turned product as they lie"
            if reason is not None:
                return reason
        if cost.has_assert and (uses.escapes or len(uses.sites) > 1 or not covers(producer, uses.sites[0])):
            return "its assert would be evaluated for other elements"
        # under a mask the loads are masked too, so that nothing stays put along an axis of the reader
        masked = any(site.access.mask is not None for site in uses.sites)
        arithmetic = cost.arithmetic + (cost.still if masked else 0)
        cheap = arithmetic <= self.options.cheap and not cost.has_reduce
        if uses.escapes:
            return None if cheap and cost.loads == 0 else "it is needed in memory"
        repeated = any(self.repeats(producer, site) for site in uses.sites)
        if len(uses.sites) == 1 and not repeated and (cheap or not self.idles(producer, uses.sites[0])):
            return self.misplaced(producer, uses.sites[0], cost)
        if self.is_pieces(producer, cost, sum(self.points(axes_around(site.block)) for site in uses.sites)):
            if not cost.has_reduce:
                return None
            if all(self.misplaced(producer, site, cost) is None and site.access.mask is None for site in uses.sites):
                return None
        if not cheap or (repeated and cost.loads and arithmetic * 2 > self.options.cheap):
            return "too expensive to compute more than once"
        if not all(self.may_be_stored(load.operands[0], producer) for load in loads_in(producer)):
            return "its sources would have to be in memory"
        reads_less = reads_less_again(len(uses.sites), cost.reads) and (cost.reads <= 1 or not repeated)
        return None if reads_less else "recomputing would read more memory"

    def illegal(self, producer: GenerateOp, site: Site, cost: BodyCost) -> str | None:
        if (across := objection_across_devices(producer, site)) is not None:
            return across
        if site.access.mask is not None:
            if cost.has_assert or cost.has_reduce or cost.divides:
                return "its body cannot be evaluated under a mask"
            if cost.loads and any(zero(load.results[0].type) is None for load in loads_in(producer)):
                return "no constant of a loaded type for a masked load"
        if self.mutations:
            reader = nest_of(site.block)
            sources: list[SSAValue] = [load.operands[0] for load in loads_in(producer)]
            if self.mutations.moves_past_write(sources, producer, reader):
                return "what it reads is written before the reader"
            if cost.has_assert and self.mutations.crosses_any(producer, reader):
                return "its assert would move behind a write"
        return None

    def too_large(self, site: Site, cost: BodyCost) -> str | None:
        ops, loads = self.size(nest_of(site.block))
        if ops + cost.ops > self.options.max_ops or loads + cost.loads > self.options.max_loads:
            return "the reader's body would grow too large"
        return None

    def crowding(self, producer: GenerateOp, site: Site) -> str | None:
        return inlining_crowds_memory(producer, nest_of(site.block), self.estimates)

    def misplaced(self, producer: GenerateOp, site: Site, cost: BodyCost) -> str | None:
        if cost.has_reduce and type(site.block.parent_op()) not in (GenerateOp, ScatterOp):
            return "a reduction would move into another or into a scan"
        if cost.has_reduce and all(is_turned(chosen_tile(op)) for op in (producer, nest_of(site.block))):
            return "registers hold the sums of one such product"
        if is_last_step_of_rows(producer, site, self.estimates):
            return "it is the last step of rows, whose other results would have to be in memory"
        return None

    def repeats(self, producer: GenerateOp, site: Site) -> bool:
        """Whether a site evaluates more points than the producer has elements."""
        around = axes_around(site.block)
        if site.access.mask is None:
            apart = _computed_apart(around, site, MOST_TILES if self.makes_more(producer) else 1)
            return not _is_within(apart, producer, self.ranges)
        # A padded border may hold no elements; an axis that the index ignores repeats them for sure.
        seen = frozenset().union(*(e.free_symbols for e in site.index))
        if any(name not in seen and size is not ONE for name, size in around):
            return True
        return self.is_beyond(producer, site) and not _is_shifted(site)

    def makes_more(self, producer: GenerateOp) -> bool:
        """Whether a producer makes more bytes than it reads, as one that dequantises does."""
        sources = {load.operands[0] for load in loads_in(producer)}
        read, made = (sum(map(self.bytes, values)) for values in (sources, producer.results))
        return read <= LESS * made

    def bytes(self, value: SSAValue) -> float:
        """Estimated bytes of a tensor."""
        type_ = cast(TensorType, value.type)
        return self.estimates.product(type_.shape) * element_bytes(type_.element)

    def idles(self, producer: GenerateOp, site: Site) -> bool:
        """Whether a site computes an element at one point at most, but at many points none: lanes are masked there."""
        return site.access.mask is not None and self.is_beyond(producer, site)

    def is_beyond(self, producer: GenerateOp, site: Site) -> bool:
        """Whether a site has many more points than the producer has elements."""
        elements = self.estimates.product(cast(AxesAttr, producer.properties["axes"]).sizes)
        return self.points(axes_around(site.block)) * 4 > elements * 5

    def inline(self, producer: GenerateOp, cost: BodyCost, uses: _Uses) -> None:
        last = len(uses.sites) - 1
        for position, site in enumerate(uses.sites):
            reader = nest_of(site.block)
            ops, loads = self.size(reader)
            self.sizes[reader] = ops + cost.ops, loads + cost.loads
            self.grown.add(reader)
            scope = frozenset(name for name, _ in axes_around(site.block))
            move = position == last and not uses.escapes
            Splicer(producer, site, scope, move, self.options.emulate_precision_casts).run()
        if not uses.escapes:
            self.block.erase_op(producer)


def only_view(producer: GenerateOp) -> ViewOp | None:
    """The view that alone keeps the results of a producer in memory, if all that it is for is to be returned once.

    It must have its own element for each point, so that it can be a tensor of its strides.
    """
    others = [use.operation for result in producer.results for use in result.uses if type(use.operation) is not LoadOp]
    view = others[0] if len(others) == 1 else None
    if not isinstance(view, ViewOp):
        return None
    strides = cast(TensorType, view.out.type).strides or ()
    readers = list(view.out.uses)
    returned = len(readers) == 1 and type(readers[0].operation) is ReturnOp
    return view if returned and ZERO not in strides else None


def nest_of_view(view: ViewOp) -> None:
    """Replace a view by a nest that computes its elements, in a tensor of the same strides."""
    load = LoadOp.of(view.source, view.map, location=view.location)
    body = Region(Block((load, YieldOp.create(operands=load.results))))
    nest = GenerateOp.of(view.axes, body, view.result_types, location=view.location)
    nest.results[0].name_hint = view.out.name_hint
    Rewriter.replace_op(view, nest)


def uses_of(producer: GenerateOp) -> _Uses:
    """The sites that load from a producer, equal accesses in one block as one."""
    sites: dict[tuple, Site] = {}
    escapes = False
    for result in producer.results:
        for use in result.uses:
            load = use.operation
            if type(load) is not LoadOp or use.index != 0:
                escapes = True
                continue
            block = load.parent
            assert block is not None
            access, index = access_of(load), map_of(load).data
            key = (block, access.dynamic, access.mask, index)
            site = sites.get(key)
            if site is None:
                site = sites[key] = Site(block, access, index)
            site.loads.append(load)
    return _Uses(list(sites.values()), escapes)


def is_stored(value: SSAValue) -> bool:
    """Whether a value is in memory whatever is fused: an input, a result of ATen, or used by other ops than nests.

    A call hands a value over: what makes and reads it on the other side counts, so that a layer compiles as it would
    in one function with the others.
    """
    seen: set[SSAValue] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        handed = is_handed_in(value)
        if type(value.owner) not in NESTS and not handed:
            return True
        handing = [op for use in value.uses if type(op := use.operation) is not LoadOp]
        if not all(map(is_handing_over, handing)):
            return True
        if handed or handing:
            waiting += elsewhere(value)
    return False


def covers(producer: GenerateOp, site: Site) -> bool:
    """Whether a site evaluates exactly the elements of a producer, each once."""
    sizes = dict(axes_around(site.block))
    index = [e.as_atom for e in site.index]
    names = [a.name if a is not None and a.kind == "symbol" else "" for a in index]
    own = cast(AxesAttr, producer.properties["axes"]).sizes
    return (
        site.access.mask is None
        and len(set(names)) == len(names) == len(sizes)
        and all(sizes.get(name) is size for name, size in zip(names, own, strict=True))
    )


def _is_shifted(site: Site) -> bool:
    """Whether each index of a site is a number, or one axis plus a number, and no axis is in two of them.

    Then no two points of those axes read the same element.
    """
    names: list[str] = []
    for expr in site.index:
        symbols = expr.free_symbols
        if symbols:
            name = next(iter(symbols))
            if len(symbols) > 1 or (expr - symbol(name)).as_int() is None:
                return False
            names.append(name)
    return len(set(names)) == len(names)


def _is_brought_whole(site: Site) -> bool:
    """Whether a site reads the factor of the rows of a turned product: its index ignores the axis of the columns."""
    nest = nest_of(site.block)
    if site.block.parent_op() is nest or not is_turned(chosen_tile(nest)):
        return False
    seen = frozenset[str]().union(*(e.free_symbols for e in site.index))
    return cast(AxesAttr, nest.properties["axes"]).names[-1] not in seen


def _computed_apart(around: list[tuple[str, Expr]], site: Site, most: int) -> list[tuple[str, Expr]]:
    """The axes around a site without those that the index ignores and so many tiles for matrix units cover at most."""
    tile = chosen_tile(nest_of(site.block))
    if tile is None or len(tile) < LEAST_OF_TILE:
        return around
    seen = frozenset[str]().union(*(e.free_symbols for e in site.index))
    covered = most * tile[0]
    return [(name, size) for name, size in around if name in seen or (size.as_int() or covered + 1) > covered]


def _is_within(around: list[tuple[str, Expr]], producer: GenerateOp, ranges: Ranges) -> bool:
    """Whether a domain has at most as many points as a producer has elements."""
    points, elements = ONE, ONE
    for _, size in around:
        points = points * size
    for size in cast(AxesAttr, producer.properties["axes"]).sizes:
        elements = elements * size
    return points is elements or prove_le(points, elements, ranges)
