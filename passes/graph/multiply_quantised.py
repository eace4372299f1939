"""`graph-multiply-quantised`: who multiplies integers, and weights that are dequantised on the way."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import ClassVar

from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.raw import ops_of
from ...dialects.raw import type_of as type_of_value
from ...dialects.sym import ONE, Ranges, bounds
from ...machines import CpuTarget, GpuTarget, Target
from ...machines.products import LAUNCH, FewRows, filling, fills
from ...records import dataclass
from ..analysis.nests import element_bytes
from ..analysis.product_times import product_nanoseconds
from ..analysis.sizes import Sizes
from ..common.choices import Candidate, mark
from ..common.implementations import AUTO, FASTER, FLOATS, LIBRARY, NEST, NEVER
from ..remarks import remark
from ._binding_times import size_text
from ._dequantised import Dequantised, dequantised
from ._product_pass import ProductPass, at_most
from ._replacement import type_of
from .match_patterns import apply_patterns
from .patterns.quantised import quantised_patterns
from .patterns.quantised_pools import QUANTISED_MAXIMUM
from .patterns.requantised import requantised_patterns

_FLOATS = frozenset({"aten.mm", "aten.addmm"})
_INTEGERS = "aten._int_mm"
_BYTE = 8
_LEAST_ROWS, _MULTIPLE = 17, 8
"""`aten._int_mm` of a GPU takes no fewer rows, and depths and columns that are multiples."""


@dataclass(frozen=True)
class MultiplyQuantised(ProductPass):
    """Let products read each quantised number once, as it is, and on a CPU multiply integers exactly and fast.

    level:         aten
    precondition:  behind the passes that change products, in front of `graph-hoist-weights`
    guarantee:     the same values but for the order and rounding of sums of floats; integers are added exactly. What
                   matches a pattern of `patterns/quantised.py` becomes one op: products of quantised numbers oneDNN's,
                   if its sums are exact, which takes `integer_products` "library" or numbers of 7 bits. Where their
                   result is quantised again, behind an activation or a residual, the same op does that. A product of
                   a few rows (`CpuTarget.dequantised_rows`) and a matrix that casts and arithmetic make of less
                   memory, as they do a weight of 8 bits, and whose elements lie side by side along the depth, is marked
                   as a nest: `lower-aten-to-loop` makes sums over rows, and `loop-inline` puts the arithmetic there, so
                   that the dequantised matrix is never in memory. On a GPU so is one of more rows, with a tile for
                   matrix units, up to as many as its description says where a cast, and one scale a row at most, make
                   the matrix, and where numbers are packed or scaled in groups (`GpuTarget.dequantised`); of those one
                   of one row is sums. So is an `aten._int_mm` of few rows, and on a GPU one that the library refuses,
                   of up to 16 rows or of odd sizes, and others where that was measured to be faster
                   (`GpuTarget.integer_nests`). On a CPU one of more is marked "floats" where `integer_products` says
                   so: exact products of float32 in blocks of the depth,
                   which take 84 ms for 128x768x3072 where ATen's loops take 1200, on two cores of an EPYC with AVX2.
                   With "library" ATen's own computes it, which is fast with instructions for integers (VNNI, AMX).

        %0 = aten._to_copy(%w, dtype = torch.float32) : !aten.tensor<2048x5632xf32, strides = [1, 2048]>
        %1 = aten.mm(%x, %0) : !aten.tensor<1x5632xf32>
    becomes, where %w is of 8 bits,
        %0 = aten._to_copy(%w, dtype = torch.float32) : !aten.tensor<2048x5632xf32, strides = [1, 2048]>
        %1 = aten.mm(%x, %0) {implementation = "nest"} : !aten.tensor<1x5632xf32>
    """

    name = "graph-multiply-quantised"
    PRODUCTS: ClassVar[frozenset[str]] = _FLOATS | {_INTEGERS}

    integer_products: str = LIBRARY
    packed_products: bool = True
    """Let oneDNN multiply quantised numbers with weights that it packs."""
    dequantised_copies: str = AUTO
    """When a product of many rows on a GPU dequantises its weight into memory, for the library."""

    def prepare(self, block: Block) -> None:
        """Let one op stand for what matches a pattern."""
        if not self.packed_products or not _has_bytes(block):
            return
        has_integers = self.integer_products == LIBRARY
        patterns = [*requantised_patterns(has_integers), *quantised_patterns(has_integers), QUANTISED_MAXIMUM]
        if apply_patterns(block, patterns):
            _join_copies(block)

    def on_product(self, op: AtenOp, target: Target, ranges: Ranges) -> None:
        """Mark a product that is better a nest."""
        if isinstance(target, CpuTarget):
            (self._integers if op.target == _INTEGERS else self._floats)(op, target, ranges)
        elif isinstance(target, GpuTarget):
            (self._integer_nests if op.target == _INTEGERS else self._few_rows)(op, target, ranges)

    def _integer_nests(self, op: AtenOp, target: GpuTarget, ranges: Ranges) -> None:
        """On a GPU, integers that the library refuses, or multiplies more slowly."""
        left, right = map(type_of, op.operands)
        rows, depth, columns = left.shape[0], left.shape[1].as_int() or 0, right.shape[1].as_int() or 0
        low, _ = bounds(rows, ranges)
        is_taken = low is not None and low >= _LEAST_ROWS and columns and not (depth % _MULTIPLE or columns % _MULTIPLE)
        if is_taken and not target.integer_nests:
            return
        if left.strides[1] is not ONE or right.strides[0] is not ONE:
            remark("missed", self.name, op, "not a nest: a factor does not lie along the depth")
        elif self.mark(op, NEST, f"a nest: the library {'is slower' if is_taken else 'may refuse its sizes'}"):
            known = target.dequantised.get(16)
            if "i8" in target.matrix_units and not at_most(rows, 1, ranges):
                is_few = known is not None and at_most(rows, known.units, ranges)
                mark(op, Candidate(NEST, filling(known.tiles, columns, target.processors) if known and is_few else ()))

    def _few_rows(self, op: AtenOp, target: GpuTarget, ranges: Ranges) -> None:
        """On a GPU, by matrix units where a tile of the matrix is made at once, else by sums over its rows."""
        left, right = map(type_of, op.operands[-2:])
        result = type_of(op.results[0])
        known, how = target.dequantised.get(8 * element_bytes(result.element)), dequantised(op.operands[-1])
        if how is None or left.element != result.element or right.element != result.element:
            return
        columns, what = result.shape[1].as_int() or 0, f"{size_text(how.read)} in each call"
        if known is None:
            found: tuple[int, ...] | str = "nobody has measured that on this GPU"
        elif right.strides[0] is not ONE:
            found = "the rows of its weight do not lie along the depth"
        elif _is_in_parts(how, columns) and at_most(result.shape[0], known.sums, ranges):
            self.mark(op, NEST, f"sums over rows of a matrix that is made where it is read: {what}")
            return
        else:
            found = self._tile(op, known, how, target, ranges)
        if isinstance(found, str):
            if self.dequantised_copies != "never" or str(result.element) not in target.matrix_units:
                made = size_text(how.made)
                remark("missed", self.name, op, f"its weight is dequantised into memory, {made}: {found}")
                return
            whole = [tile for _, tile in known.packed if len(tile) == _WHOLE] if known is not None else []
            found = whole[-1] if whole and how.is_packed else ()
        if self.mark(op, NEST, f"a nest on matrix units that makes its matrix where it reads: {what}"):
            mark(op, Candidate(NEST, found))

    def _tile(
        self, op: AtenOp, known: FewRows, how: Dequantised, target: GpuTarget, ranges: Ranges
    ) -> tuple[int, ...] | str:
        """The tile for matrix units of a product whose weight lies along the depth, or why it has none."""
        rows, columns = type_of(op.results[0]).shape
        in_parts = _is_in_parts(how, count := columns.as_int() or 0)
        counted = known.packed if in_parts else known.casts
        most = next((most for most, _ in counted if at_most(rows, most, ranges)), None)
        tiles = [tile for each, tile in counted if each == most]
        if not tiles:
            return self._of_many_rows(op, known, how, target)
        if in_parts and how.has_small_groups and not fills(tiles[0], count, target.processors):
            return "its groups are small, and so is the weight"
        return filling(tiles, count, target.processors)

    def _of_many_rows(self, op: AtenOp, known: FewRows, how: Dequantised, target: GpuTarget) -> tuple[int, ...] | str:
        """The tile of a product of any number of rows, whose units read the weight from registers, or why not."""
        cost = _COSTS[self.dequantised_copies]
        if _is_in_parts(how, type_of(op.results[0]).shape[1].as_int() or 0):
            is_asked = cost == inf and known.many and not how.is_packed
            most = max((most for most, _ in known.packed), default=0)
            return _GROUPED if is_asked else f"it has more than {most} rows, and scales of groups or packed numbers"
        if not known.many:
            return f"it has more than {max((most for most, _ in known.casts), default=0)} rows"
        times = _times(op, known, how, target)
        if times is None:
            return "nobody has measured the library with its element type"
        nest, copy, tile = times
        return tile if nest <= cost * copy else f"{copy / 1e3:.1f} us by estimates, {nest / 1e3:.1f} without"

    def _integers(self, op: AtenOp, target: CpuTarget, ranges: Ranges) -> None:
        rows, matrix = type_of(op.operands[0]).shape[0], type_of(op.operands[1])
        if at_most(rows, target.dequantised_rows.get(8, (0, 0))[0], ranges) and matrix.strides[0] is ONE:
            self.mark(op, NEST, "a nest: sums over rows of a matrix of integers, for few vectors")
        elif self.integer_products == FLOATS:
            self.mark(op, FLOATS, "exact products of float32 in blocks: this processor has no fast ones of integers")

    def _floats(self, op: AtenOp, target: CpuTarget, ranges: Ranges) -> None:
        left, right = op.operands[-2:]
        result, matrix = type_of(op.results[0]), type_of(right)
        limits = target.dequantised_rows.get(8 * element_bytes(result.element))
        how = dequantised(right)
        if how is None:
            return
        what = f"{size_text(how.made)} made of {size_text(how.read)} in each call"
        if limits is None or type_of(left).element != result.element or matrix.element != result.element:
            objection = "nobody has measured that for its types"
        elif not at_most(type_of(left).shape[0], most := limits[0 if how.is_cast else 1], ranges):
            objection = f"it has more than {most} rows{'' if how.is_cast else ', and its weight is more than a cast'}"
        elif matrix.strides[0] is not ONE:
            objection = "the rows of its weight do not lie along the depth"
        else:
            self.mark(op, NEST, f"a nest that dequantises where it reads: {size_text(how.read)} in each call")
            return
        remark("missed", self.name, op, f"its weight is dequantised into memory, {what}: {objection}")


_COSTS: Mapping[str, float] = MappingProxyType({AUTO: 1.3, FASTER: 1.0, NEVER: inf})
"""How many times as long a product may take without a copy in memory, by estimates.

Of 2048 x 2048 numbers it takes 1.16 times as long at 129 and 512 rows, by measurement; other products of a layer are as
fast, so that the layer takes 1.07 times as long at most.
"""
_LEAST_TIME, _STEP, _OVERLAP = 4500.0, 1.4, 6
"""Nanoseconds that the library takes at least, and for a step of the depth; which part of a copy hides a launch."""
_WITHOUT_ENGINE = 1.1
"""How much longer a nest takes whose number of rows is dynamic, for which no copy engine brings tiles."""
_WITHOUT_TILE = 1.2
"""How much longer a nest takes than a copy whose depth no tile divides: 2056 x 2040, 129 to 512 rows 1.35 to 1.12."""
_WHOLE = 5
"""Numbers of a tile whose programs sum the whole depth."""
_GROUPED = (128, 64, 64, 4, 3, 0, 0, 0, 0, 0, 1)
"""The fastest measured tile of many rows by a weight with scales of groups; 1.3 to 1.5 times a copy's time."""


def _is_in_parts(how: Dequantised, columns: int) -> bool:
    """Whether numbers are packed, or have scales of groups."""
    return how.is_packed or how.scales > columns


def _times(
    op: AtenOp, known: FewRows, how: Dequantised, target: GpuTarget
) -> tuple[float, float, tuple[int, ...]] | None:
    """Nanoseconds of a product of many rows as a nest, by the library behind a copy in memory, and the nest's tile.

    Where no measured tile fits, that is chosen later; None where the library's pace is not known.
    """
    result, function = type_of(op.results[0]), op.parent_op()
    assert isinstance(function, FuncOp)
    estimates, bits = Sizes.of_function(function), 8 * element_bytes(result.element)
    rows, columns = (estimates.of(size) for size in result.shape)
    depth = type_of(op.operands[-1]).shape[0].as_int() or 0
    library = product_nanoseconds(target, bits, target.vector_bytes, (1, rows, depth, columns))
    if library is None:
        return None
    copied = (how.read + how.made) / target.copied
    overlap = min(LAUNCH / 2, copied / _OVERLAP)  # of two launches
    in_memory = copied + max(library - overlap, _LEAST_TIME + _STEP * depth)
    found = known.fastest((rows, depth, columns), target.processors, target.copied) if depth and columns else None
    if found is None:
        return _WITHOUT_TILE * in_memory, in_memory, ()
    slower = 1.0 if result.shape[0].as_int() is not None else _WITHOUT_ENGINE
    return 1e3 * slower * found[0], in_memory, found[1]


def _has_bytes(block: Block) -> bool:
    """Whether a value holds integers of 8 bits, as each match of the patterns does: most graphs need none of them."""
    values = [*block.args, *[result for op in ops_of(block) for result in op.results]]
    distinct = {id(each): each for each in map(type_of_value, values)}  # a hash of a type is a call of Python
    elements = [each.element for each in distinct.values() if type(each) is TensorType]
    return any(type(each) is IntegerType and each.width.data == _BYTE for each in elements)


def _join_copies(block: Block) -> None:
    """Let the library's calls read one another's results where copies between them cancel out."""
    for call in [op for op in block.ops if isinstance(op, CallOp)]:
        for place, value in enumerate(call.operands):
            outer = value.owner
            if not isinstance(outer, AtenOp) or outer.packet != "clone":
                continue
            inner = outer.operands[0].owner
            if isinstance(inner, AtenOp) and inner.packet == "clone" and inner.operands[0].type == value.type:
                call.operands[place] = inner.operands[0]
                _erase_unread(block, outer, inner)


def _erase_unread(block: Block, *ops: Operation) -> None:
    for op in ops:
        if all(result.first_use is None for result in op.results):
            block.erase_op(op)
