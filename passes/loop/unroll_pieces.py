"""`loop-unroll-pieces`: a reduction over the pieces of a value takes an element of each piece at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.loop import AssertOp, IndexOp, ReduceOp, YieldOp, yielded
from ...dialects.raw import ops_in
from ...dialects.sym import AxesAttr, Expr, Ranges, SymAttr, bounds, const, symbol
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.memory import NESTS
from ..common.choices import chosen_tile
from ..common.numbering import AttributeTokens, NestNumbering
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._bodies import substitute_axes
from .dce import sweep
from .simplify_indices import simplify_nest

#: monoid -> how two floats of it are combined; the maximum of a NaN is one, as in a reduction
_COMBINED: dict[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "sum": arith.AddfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
#: most ops that a body becomes
_MOST_OPS = 256


@dataclass(frozen=True)
class UnrollPieces(LoopPass):
    """Write out a short axis of a reduction that tells pieces apart, so that what the pieces share is read once.

    level:         loop
    precondition:  `loop-inline`, which brings pieces into what reads them; no `loop.fusion` yet
    guarantee:     the same values, sums in another order. A `sum`, `max` or `min` of floats along an axis of which
                   what lies in whole parts of it, as by a cat of equal pieces, or its remainder, as by a stack along
                   the last dimension, is compared with numbers: the axis is split there, what its short half yields is
                   written out and combined, and the comparisons are decided. Weights of 4 bits that are unpacked from
                   bytes are such pieces, of halves or of neighbours: each byte is read once, for two summands.

        %s = loop.reduce sum (r0 in 4096) {
          %x = loop.load %x[r0]  %i = loop.index r0 mod 2  %first = arith.cmpi slt, %i, %one : i64
          %b = loop.load %w[r0 floordiv 2]  %low = arith.andi %b, %mask : i8  %high = arith.shrui %b, %four : i8
          %w = arith.select %first, %low, %high : i8 ... loop.yield %p }
    becomes
        %s = loop.reduce sum (r0 in 2048) {
          %x = loop.load %x[2*r0]  %b = loop.load %w[r0]  %low = arith.andi %b, %mask : i8 ...
          %y = loop.load %x[2*r0 + 1]  %high = arith.shrui %b, %four : i8 ...
          %t = arith.addf %p, %q : f32  loop.yield %t }
    """

    name = "loop-unroll-pieces"

    most: int = 8
    """Most pieces: as many numbers of 4 bits as a word has."""

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        ranges = symbol_ranges(function)
        for nest in block.ops:
            if type(nest) not in NESTS:
                continue
            changed = False
            for reduce in list(_reduces_in(nest)):
                changed |= self.unroll(reduce, nest, ranges)
            if changed:
                simplify_nest(nest, ranges)
                sweep(nest.regions[0].block)
                NestNumbering(AttributeTokens(), "loop-cse").key(nest, [])

    def unroll(self, reduce: ReduceOp, nest: Operation, ranges: Ranges) -> bool:
        """Write out the pieces of a reduction, if it has any; whether it did."""
        if not _is_combined(reduce):
            return False
        most = min(self.most, _MOST_OPS // max(sum(1 for _ in reduce.body.block.ops), 1))
        found = next(_pieces(reduce, most), None)
        if found is None or not counter(self.name):
            return False
        remark("passed", self.name, nest, f"{found.count} pieces at once")
        _write_out(reduce, found, apart=chosen_tile(nest) is not None)
        return True


def _reduces_in(op: Operation) -> Iterator[ReduceOp]:
    for inner in ops_in(op):
        if type(inner) is ReduceOp:
            yield inner


def _is_combined(reduce: ReduceOp) -> bool:
    """Whether elements of a reduction can be combined by one op each, in float32 or wider, and copied."""
    names = [combiner.data for combiner in reduce.combiners]
    if reduce.combine is not None or reduce.on is not None or any(name not in _COMBINED for name in names):
        return False
    if not all(isinstance(value.type, AnyFloat) for value in reduce.results):
        return False
    if any(isinstance(op, AssertOp) or op.regions for op in reduce.body.block.ops):
        return False
    exact = all(name != "sum" for name in names)
    return exact or all(isinstance(value.type, Float32Type | Float64Type) for value in reduce.results)


@dataclass(frozen=True)
class _Pieces:
    """An axis as two, of which the short one says which piece an element is of.

    count:      how many pieces there are
    neighbours: whether they take turns along the axis; else one lies behind the other
    """

    axis: str
    size: int
    count: int
    neighbours: bool

    def place(self, piece: int) -> Expr:
        """The old axis, of an element of a piece."""
        if self.neighbours:
            return self.count * symbol(self.axis) + piece
        return symbol(self.axis) + self.size // self.count * piece


def _pieces(reduce: ReduceOp, most: int) -> Iterator[_Pieces]:
    """Axes of a reduction that its body compares so that pieces are told apart."""
    inside = Ranges.of_axes(reduce.axes.data)
    sizes = {name: size.as_int() for name, size in reduce.axes.data}
    compared: dict[str, list[tuple[int, int]]] = {}
    for difference in _differences(reduce):
        number = difference.subs(dict.fromkeys(difference.free_symbols, 0)).as_int()
        for name in difference.free_symbols & sizes.keys():
            size = sizes[name]
            if size is None or number is None:
                continue
            turns = _turns(difference, name)
            if turns is not None and turns <= most and size % turns == 0:
                yield _Pieces(name, size, turns, neighbours=True)
            scale = _scale(difference - number, name, inside)
            if scale is not None:
                compared.setdefault(name, []).append((-number, scale))
    for name, numbers in compared.items():
        size = sizes[name] or 0
        for count in range(2, most + 1):
            part, rest = divmod(size, count)
            if not rest and all(number % (scale * part) in (0, scale * part - 1) for number, scale in numbers):
                yield _Pieces(name, size, count, neighbours=False)
                break


def _differences(reduce: ReduceOp) -> Iterator[Expr]:
    """What indices that a body compares differ by."""
    for op in reduce.body.block.ops:
        if type(op) is arith.CmpiOp:
            left, right = map(_index, op.operands)
            if left is not None and right is not None:
                yield left - right


def _turns(difference: Expr, axis: str) -> int | None:
    """k where an expression is `axis mod k` and a number."""
    for monomial, _ in difference.terms:
        for atom in monomial:
            if atom.kind == "mod" and atom.args[0] is symbol(axis):
                return atom.args[1].as_int()
    return None


def _scale(expr: Expr, axis: str, ranges: Ranges) -> int | None:
    """k where an expression is `k*axis` and what lies in 0 to k - 1."""
    coefficient = expr.coefficient(axis)
    scale = coefficient.as_int() if coefficient is not None else None
    if scale is None or scale < 1:
        return None
    low, high = bounds(expr - scale * symbol(axis), ranges)
    return scale if low is not None and low >= 0 and high is not None and high < scale else None


def _index(value: SSAValue) -> Expr | None:
    """An index or a constant as an expression."""
    op = value.owner
    if type(op) is IndexOp and not op.operands:
        return cast(SymAttr, op.properties["expr"]).data
    if type(op) is arith.ConstantOp and isinstance(op.value, IntegerAttr):
        return const(op.value.value.data)
    return None


def _write_out(reduce: ReduceOp, pieces: _Pieces, apart: bool) -> None:
    """Replace what a reduction yields by the combination of that of an element of each piece.

    apart: the reduction has results for each piece, which are combined behind it
    """
    block = reduce.body.block
    last = block.last_op
    assert isinstance(last, YieldOp)
    old = [op for op in block.ops if op is not last]
    found: list[list[SSAValue]] = []
    new: list[Operation] = []
    for piece in range(pieces.count):
        values: dict[SSAValue, SSAValue] = {}
        copies = [op.clone(values) for op in old]
        holder = Block(copies)
        substitute_axes(holder, {pieces.axis: pieces.place(piece)})
        for op in copies:
            op.detach()
        new += copies
        found.append([values.get(value, value) for value in yielded(reduce.body)])
    names = [combiner.data for combiner in reduce.combiners]
    combined = found[0] if apart else _combination(found, names, new)
    block.insert_ops_before(new, last)
    last.operands = [value for each in found for value in each] if apart else combined
    for op in reversed(old):
        block.erase_op(op)
    part = const(pieces.size // pieces.count)
    axes = ((name, part if name == pieces.axis else size) for name, size in reduce.axes.data)
    reduce.properties["axes"] = AxesAttr.of(*axes)
    if apart:
        _with_results(reduce, names, pieces.count)


def _combination(found: Sequence[Sequence[SSAValue]], names: Sequence[str], new: list[Operation]) -> list[SSAValue]:
    """Each result of all pieces combined, by ops that are added to `new`."""
    totals = list(found[0])
    for values in found[1:]:
        for k, (total, value) in enumerate(zip(totals, values, strict=True)):
            op = _COMBINED[names[k]](total, value)
            new.append(op)
            totals[k] = op.results[0]
    return totals


def _with_results(reduce: ReduceOp, names: Sequence[str], count: int) -> None:
    """Replace a reduction by one that has the results of each piece, and their combination behind it."""
    block = reduce.parent
    assert block is not None
    wide = ReduceOp.of(reduce.axes, list(names) * count, reduce.detach_region(reduce.body))
    wide.location = reduce.location
    width = len(names)
    parts = [wide.results[k * width : (k + 1) * width] for k in range(count)]
    ops: list[Operation] = []
    totals = _combination(parts, names, ops)
    block.insert_ops_before([wide, *ops], reduce)
    for old, value in zip(reduce.results, totals, strict=True):
        value.name_hint = old.name_hint
        old.replace_all_uses_with(value)
    block.erase_op(reduce)
