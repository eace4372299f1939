"""Loops of the kernel level: for, reduce, scan; each runs one axis and says how the axis is mapped."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import ClassVar

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ..access import parse_ssa, print_ssa_list, segments, string_attr
from ..assembly import FLOAT, NAME, NUMBER, AssemblyOp, Part, Read, clause, flag, region
from ..fields import op_definition
from ..loop.body import COMBINERS, combiner_attr, verify_combiners, yielded
from ..loop.monoids import MONOIDS
from ..scalar import number_of
from ..shared_ops import YieldBase
from ..sym import Expr, SymAttr, parse_expr

#: How an axis runs. grid: one program or thread block a tile. parallel: CPU threads. vector: SIMD lanes or the
#: lanes of a tile. serial: one after the other. unroll: serial, written out. matrix: the depth of a product, in steps
#: of matrix units.
MAPPINGS = ("grid", "parallel", "vector", "serial", "unroll", "matrix")


#: What targets do with some loops as a whole. transpose: copy a block with its two axes swapped.
INTRINSICS = ("transpose", "dot_digits", "dot_bytes")


def _range_properties(axis: str, lo: Expr, hi: Expr, mapping: str, tile: int | None) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {
        "axis": string_attr(axis),
        "lo": SymAttr.of(lo),
        "hi": SymAttr.of(hi),
        "mapping": string_attr(mapping),
    }
    if tile is not None:
        properties["tile"] = IntegerAttr(tile, i64)
    return properties


def _read_range(parser: Parser, read: Read) -> None:
    axis = parser.parse_identifier()
    parser.parse_keyword("in")
    lo = parse_expr(parser)
    parser.parse_keyword("to")
    hi = parse_expr(parser)
    mapping, tile = "serial", None
    if is_mapped := parser.parse_optional_keyword("map") is not None:
        mapping = parser.parse_identifier()
        if parser.parse_optional_keyword("tile") is not None:
            tile = parser.parse_integer(allow_negative=False)
    read.properties |= _range_properties(axis, lo, hi, mapping, tile)
    if is_mapped:
        _UNROLL.read(parser, read)


def _print_range(printer: Printer, op: LoopBase) -> None:
    printer.print_string(f" {op.axis.data} in {op.lo.data} to {op.hi.data}")
    if op.mapping.data != "serial" or op.tile is not None or op.unroll is not None:
        printer.print_string(f" map {op.mapping.data}")
        for part in (_TILE, _UNROLL):
            part.print(printer, op)


_TILE, _UNROLL = clause("tile", NUMBER), clause("unroll", NUMBER)
_RANGE = Part(_read_range, _print_range), flag("pinned")


def _read_within(parser: Parser, read: Read) -> None:
    if parser.parse_optional_keyword("within") is not None:
        first = parse_ssa(parser)
        parser.parse_punctuation(",")
        read.operands["within"] = [first, parse_ssa(parser)]


def _print_within(printer: Printer, op: ReduceOp) -> None:
    if op.within:
        printer.print_string(" within ")
        print_ssa_list(printer, op.within)


_WITHIN = Part(_read_within, _print_within)


def _verify_range(op: LoopBase) -> None:
    if op.mapping.data not in MAPPINGS:
        raise VerifyException(f"maps axis {op.axis.data} by {op.mapping.data}; known: {', '.join(MAPPINGS)}")
    if op.tile is not None and op.tile.value.data < 1:
        raise VerifyException(f"tile of axis {op.axis.data} must be positive")
    if op.mapping.data == "matrix" and not isinstance(op, ReduceOp):
        raise VerifyException(f"maps axis {op.axis.data} by matrix, which only a reduction's axis can be")
    if op.unroll is not None and (op.unroll.value.data < 2 or op.mapping.data not in ("vector", "serial")):
        raise VerifyException(f"axis {op.axis.data} is unrolled: 2 iterations or more of a vector or serial loop")
    if op.pinned is not None and isinstance(op.parent_op(), ForOp | ReduceOp | ScanOp):
        raise VerifyException(f"axis {op.axis.data} is pinned inside of another loop: the outermost loop pins a nest")


class LoopBase(AssemblyOp):
    """What all loops have: an axis, its range and its mapping."""

    axis = prop_def(StringAttr)
    lo = prop_def(SymAttr)
    hi = prop_def(SymAttr)
    mapping = prop_def(StringAttr)
    tile = opt_prop_def(IntegerAttr)
    unroll = opt_prop_def(IntegerAttr)
    pinned = opt_prop_def(UnitAttr)
    traits = traits_def(RecursiveMemoryEffect())


@op_definition
class ForOp(LoopBase):
    """Run a body for each value of an axis: `kernel.for i0 in 0 to s0 map grid tile 4 { ... }`.

    Iterations are independent unless the mapping is serial or unroll. With `tile`, the axis advances by blocks of
    that many values, and a scalar in the body stands for the block's values: lanes of a SIMD loop on the CPU, a block
    tensor in Triton; the last block is masked.
    With `parallel` the tile is the grain instead: the smallest number of
    iterations that a thread is given, one after the other.

    `map grid tile 128 swizzle 8`: programs take 8 tiles of this axis for each tile of the grid axis inside of it, so
    that those that run at once read fewer rows and columns of memory (thread block swizzling). It means the same.

    `map grid tile 128 descending`: the first programs take the last tiles, which have most to do. It means the same.

    `map vector tile 1024 unroll 4` tells the compiler to write out so many steps of a vector or serial loop, so that
    their loads are on their way together; it means the same. So does `intrinsic transpose`, which says that the loop
    with all inside is what an intrinsic of the target does as a whole.

    `pinned` behind the mapping of the outermost loop of a nest, of any kind: somebody chose its loops, their order,
    mappings and tiles, and no pass that chooses changes them.
    """

    name = "kernel.for"
    intrinsic = opt_prop_def(StringAttr)
    swizzle = opt_prop_def(IntegerAttr)
    descending = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    SYNTAX: ClassVar = (
        *_RANGE, clause("swizzle", NUMBER), flag("descending"), clause("intrinsic", NAME), region()
    )  # fmt: skip

    @staticmethod
    def of(
        axis: str,
        lo: Expr,
        hi: Expr,
        body: Region,
        mapping: str = "serial",
        tile: int | None = None,
        location: LocationAttr | None = None,
    ) -> ForOp:
        """Build; the body ends in `kernel.yield` without operands."""
        return ForOp.create(
            properties=_range_properties(axis, lo, hi, mapping, tile), regions=(body,), location=location
        )

    def verify_(self) -> None:
        """Check mapping and terminator."""
        _verify_range(self)
        if yielded(self.body):
            raise VerifyException("kernel.for yields nothing")
        if self.intrinsic is not None and self.intrinsic.data not in INTRINSICS:
            raise VerifyException(f"has the intrinsic {self.intrinsic.data}; known: {', '.join(INTRINSICS)}")
        if self.swizzle is not None and (self.swizzle.value.data < 2 or self.mapping.data != "grid"):
            raise VerifyException(f"axis {self.axis.data} is swizzled: by 2 tiles or more of a grid axis")
        if self.descending is not None and self.mapping.data != "grid":
            raise VerifyException(f"axis {self.axis.data} is descending, and on no grid")


@op_definition
class ReduceOp(LoopBase):
    """Run a body for each value of an axis and combine what it yields; the body may also store.

        %m = kernel.reduce max r0 in 0 to 4096 map vector tile 4096 { ... kernel.yield %v }
        %s, %q = kernel.reduce [sum, sum] r0 in 0 to n { ... kernel.yield %a, %b }

    Monoids, `custom`, `init` and the combine region are those of `loop.reduce`. A tile at least as long as the axis
    is a persistent reduction; a shorter one carries an accumulator of that many lanes.

    `sum init(%a)` with a named monoid, on matrix units alone: what the reduction goes on from, as another one left it.

    `block 2048` behind the mapping: sums of floats begin anew after so many elements, and those of the blocks are added
    in float64. It only says how a sum is rounded; the interpreter adds in float64 throughout.

    `group 4` behind the mapping: so many neighbours of a tile are combined by themselves, before the accumulators take
    what they make. The elements are single ones; only `logsumexp` gains by it. The order is free, so it means the same.

    `within %first, %last` behind the mapping: the iterations before the first place, and those from the last one on,
    yield what changes nothing, and are left out. The places are the same for all lanes of a program.

    `factor 0.125` behind the mapping of a `softmax_sum` on matrix units: it sums over exp(0.125*(x - m)), with the
    maximum m of x, so that nobody multiplies each x.

    `intrinsic dot_digits` or `dot_bytes` says, as that of a loop, that an intrinsic of the target does the whole.

    `map matrix tile 64`: matrix units multiply and add, 64 elements of the axis a step. The reduction sums products,
    each of two factors: one varies along a tiled axis around it, the rows of the result, the other along another one,
    the columns, and both along the reduction's axis (`contraction.py`). A `softmax_sum` of (x, 1, v) is one as well:
    its factors are exp(x - m), computed tile by tile, and v.
    """

    name = "kernel.reduce"
    init = var_operand_def()
    within = var_operand_def(i64)
    combiners = prop_def(ArrayAttr[StringAttr])
    block = opt_prop_def(IntegerAttr)
    group = opt_prop_def(IntegerAttr)
    factor = opt_prop_def(FloatAttr)
    intrinsic = opt_prop_def(StringAttr)
    body = region_def("single_block")
    combine = opt_region_def("single_block")
    outs = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    SYNTAX: ClassVar = (
        COMBINERS, *_RANGE, clause("block", NUMBER), clause("group", NUMBER), clause("factor", FLOAT), _WITHIN,
        clause("intrinsic", NAME), region(), region(1, "combine", optional=True),
    )  # fmt: skip

    @classmethod
    def result_types_of(cls, read: Read) -> tuple[Attribute, ...]:
        """Those of the yielded values."""
        return tuple(value.type for value in yielded(read.regions[0]))

    @staticmethod
    def of(
        axis: str,
        lo: Expr,
        hi: Expr,
        combiners: Sequence[str],
        body: Region,
        mapping: str = "serial",
        tile: int | None = None,
        init: Sequence[SSAValue] = (),
        combine: Region | None = None,
        location: LocationAttr | None = None,
    ) -> ReduceOp:
        """Build; result types are those of the yielded values."""
        properties = _range_properties(axis, lo, hi, mapping, tile)
        properties["combiners"] = combiner_attr(*combiners)
        properties["operandSegmentSizes"] = segments(len(init), 0)
        return ReduceOp.create(
            operands=init,
            result_types=tuple(v.type for v in yielded(body)),
            properties=properties,
            regions=(body,) if combine is None else (body, combine),
            location=location,
        )

    def keep_within(self, first: SSAValue, last: SSAValue) -> None:
        """Leave out iterations before one place and from another one on."""
        self.operands = [*self.init, first, last]
        self.properties["operandSegmentSizes"] = segments(len(self.init), 2)

    def go_on_from(self, values: Sequence[SSAValue]) -> None:
        """Let a reduction by named monoids add to what another one left."""
        self.operands = [*values, *self.within]
        self.properties["operandSegmentSizes"] = segments(len(values), len(self.within))

    @property
    def goes_on(self) -> bool:
        """Whether a reduction by named monoids adds to what another one left."""
        return bool(self.init) and [c.data for c in self.combiners] != ["custom"]

    def verify_(self) -> None:
        """Check mapping, combiners and the types of the results."""
        _verify_range(self)
        is_matrix = self.mapping.data == "matrix"
        verify_combiners(self, self.combiners, yielded(self.body), self.combine, self.init, goes_on=is_matrix)
        if tuple(v.type for v in yielded(self.body)) != self.result_types:
            raise VerifyException("results must have the types that the body yields")
        if self.block is not None:
            _verify_block(self, self.block.value.data)
        if self.group is not None:
            _verify_group(self, self.group.value.data)
        if self.factor is not None and (not is_matrix or {c.data for c in self.combiners} != {"softmax_sum"}):
            raise VerifyException(f"axis {self.axis.data} has a factor, and is no softmax_sum on matrix units")
        if self.factor is not None and not 0 < self.factor.value.data < inf:
            raise VerifyException(f"axis {self.axis.data} has the factor {self.factor.value.data}: it is above 0")
        if self.within and (len(self.within) != 2 or self.mapping.data not in ("matrix", "vector")):
            raise VerifyException(f"axis {self.axis.data} is within two places, and mapped by matrix or vector")
        if self.mapping.data == "matrix":
            _verify_contraction(self)


@op_definition
class ScanOp(LoopBase):
    """Inclusive scan along an axis. The body yields the elements; `then` gets the running value for each of them, as
    block arguments, and stores it.

        kernel.scan sum r0 in 0 to 10 { ... kernel.yield %v } then { ^bb0(%c: f32): kernel.store ... kernel.yield }

    `map vector tile 1024 turned` lets the lanes of its one tile lie the other way round, the first element in the last
    lane: neighbours in memory are neighbours in the tile where a scan runs backwards. It means the same.
    """

    name = "kernel.scan"
    turned = opt_prop_def(UnitAttr)
    init = var_operand_def()
    combiners = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    then = region_def("single_block")
    combine = opt_region_def("single_block")
    SYNTAX: ClassVar = (
        COMBINERS, *_RANGE, flag("turned"), region(), region(1, "then"), region(2, "combine", optional=True),
    )  # fmt: skip

    @staticmethod
    def of(
        axis: str,
        lo: Expr,
        hi: Expr,
        combiners: Sequence[str],
        body: Region,
        then: Region,
        mapping: str = "serial",
        tile: int | None = None,
        init: Sequence[SSAValue] = (),
        combine: Region | None = None,
        location: LocationAttr | None = None,
    ) -> ScanOp:
        """Build from the element body and the region that stores running values."""
        properties = _range_properties(axis, lo, hi, mapping, tile)
        properties["combiners"] = combiner_attr(*combiners)
        return ScanOp.create(
            operands=init,
            properties=properties,
            regions=(body, then) if combine is None else (body, then, combine),
            location=location,
        )

    def verify_(self) -> None:
        """Check mapping, combiners and the arguments of `then`."""
        _verify_range(self)
        verify_combiners(self, self.combiners, yielded(self.body), self.combine, self.init)
        if [a.type for a in self.then.block.args] != [v.type for v in yielded(self.body)]:
            raise VerifyException("`then` takes the yielded values")
        if self.turned is not None and self.tile is None:
            raise VerifyException("is turned, and has no lanes")


def float_sums(op: ReduceOp | ScanOp, monoids: Collection[str] = ("sum",)) -> frozenset[int]:
    """Positions of the yielded values that one of the monoids combines as floats narrower than float64."""
    found: set[int] = set()
    position = 0
    for combiner in op.combiners if op.combine is None else ():
        kind = yielded(op.body)[position].type
        if combiner.data in monoids and isinstance(kind, AnyFloat) and not isinstance(kind, Float64Type):
            found.add(position)
        position += MONOIDS[combiner.data].arity
    return frozenset(found)


def _verify_block(op: ReduceOp, block: int) -> None:
    if not float_sums(op):
        raise VerifyException("has blocks, but sums no floats that are narrower than float64")
    step = op.tile.value.data if op.tile is not None and op.mapping.data == "vector" else 1
    if block < 1 or block % step:
        raise VerifyException(f"has blocks of {block} elements, which is no multiple of {step}")


def groupable(op: ReduceOp) -> bool:
    """Whether a reduction has a `logsumexp` each of whose elements is a single one: (x, 1)."""
    position = 0
    for combiner in op.combiners if op.combine is None else ():
        if combiner.data == "logsumexp" and number_of(yielded(op.body)[position + 1]) == 1:
            return True
        position += MONOIDS[combiner.data].arity
    return False


def _verify_group(op: ReduceOp, group: int) -> None:
    if not groupable(op):
        raise VerifyException("has groups, but no logsumexp of single elements")
    tile = 1 if op.tile is None else op.tile.value.data
    if group < 2 or group & (group - 1) or tile % group or tile == group:
        raise VerifyException(f"has groups of {group} elements: a power of two that divides the tile of {tile}")


def _verify_contraction(op: ReduceOp) -> None:
    from .boxes import box_of  # they are about reductions
    from .contraction import contraction_of, weighted_sums_of
    from .memory import LoadOp

    tile = 1 if op.tile is None else op.tile.value.data
    if tile < 16 or tile & (tile - 1):
        raise VerifyException(f"maps axis {op.axis.data} by matrix tile {tile}: a power of two, at least 16")
    known = weighted_sums_of if "softmax_sum" in (c.data for c in op.combiners) else contraction_of
    objection = known(op) if op.parent is not None else ""
    if isinstance(objection, str) and objection:
        raise VerifyException(f"maps axis {op.axis.data} by matrix, but {objection}")
    for load in op.body.block.ops if op.parent is not None else ():
        if isinstance(load, LoadOp) and load.box is not None:
            found = box_of(load, load.box.value.data)
            if isinstance(found, str):
                raise VerifyException(f"loads a box for axis {op.axis.data}, but {found}")


@op_definition
class YieldOp(YieldBase):
    """End a loop body, with the values that a reduce or scan combines."""

    name = "kernel.yield"


def loops_around(op: Operation | None) -> Iterator[ForOp | ReduceOp | ScanOp]:
    """An op and those around it that are loops, innermost first."""
    while op is not None:
        if isinstance(op, ForOp | ReduceOp | ScanOp):
            yield op
        op = op.parent_op()
