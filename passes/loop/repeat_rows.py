"""`loop-repeat-rows`: the vector of a product is normalised where the rows of the matrix are multiplied with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import AssertOp, GenerateOp, LoadOp, ReduceOp
from ...dialects.sym import AxesAttr
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.memory import Mutations
from ..analysis.nests import element_bytes
from ..analysis.sizes import Sizes
from ..common.choices import chosen_tile
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import access_of, loads_in, map_of
from ._bodies import axes_around, outermost
from ._devices import target_of
from ._splice import Site, Splicer
from .dce import sweep
from .inline import is_stored
from .simplify_indices import simplify_nest

#: elements of a vector that a program keeps in registers
LONGEST = 8192
#: rows that read a vector at least: of fewer, nothing hides what is computed again
FEWEST_ROWS = 512
#: bytes of a matrix that one program multiplies with the vector, about: each program computes the vector again
PROGRAM_BYTES = 8192
#: elements that are computed again at most. An H200 normalises 2048 numbers in 1.7 us by themselves; in front of 11264
#: rows of 16 bits, 11.5 M of them, that takes 0.6 us more, of 32000 rows, 33 M, 3.5
MOST_AGAIN = 12 << 20


@dataclass(frozen=True)
class RepeatRows(LoopPass):
    """Compute a vector that a reduction of itself scales again for each row of a matrix that is multiplied with it.

    level:         loop
    precondition:  `loop-inline`; no `loop.fusion` yet. Only what a GPU computes.
    guarantee:     the same values. A pointwise nest of a vector, which reads a number that a nest reduces an equally
                   long vector to, as a norm does, is computed in the sum over products with a matrix that alone reads
                   it, and the number in front of that sum: one launch less. Only where the sum reads each element of
                   the matrix once, what both nests read is in memory anyway, and programs that read the matrix are so
                   few that memory takes longer than what they compute again (`PROGRAM_BYTES`, `MOST_AGAIN`).

        %n = loop.generate (i0 in 1) { %s = loop.reduce sum (r0 in 2048) { ... %x[r0] ... } ... math.rsqrt ... } : U
        %v = loop.generate (i0 in 2048) { ... %x[i0] * %n[0] ... } : T
        %y = loop.generate (i0 in 4096) { %s = loop.reduce sum (r0 in 2048) { ... %v[r0] * %w[i0, r0] ... } ... } : V
    becomes
        %y = loop.generate (i0 in 4096) {
          %s = loop.reduce sum (r1 in 2048) { ... %x[r1] ... }  %n = ... math.rsqrt ...
          %p = loop.reduce sum (r0 in 2048) { ... (%x[r0] * %n) * %w[i0, r0] ... } ... } : V
    """

    name = "loop-repeat-rows"
    repeat_rows: bool = True

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        if not self.repeat_rows:
            return
        sizes = Sizes.of_function(function)
        for nest in [each for each in block.ops if type(each) is GenerateOp]:
            if not isinstance(target_of(nest), GpuTarget) or chosen_tile(nest) is not None:
                continue
            for found in list(dict.fromkeys(_vectors(nest))):
                if _Repeated(nest, found, block, sizes).run():
                    simplify_nest(nest, symbol_ranges(function))
                    sweep(block)


def _vectors(nest: GenerateOp) -> Iterator[GenerateOp]:
    """The pointwise nests whose elements sums at the top of a nest read."""
    for op in nest.body.block.ops:
        if type(op) is ReduceOp and [each.data for each in op.combiners] == ["sum"]:
            for load in op.body.block.ops:
                producer = load.operands[0].owner if type(load) is LoadOp else None
                if isinstance(producer, GenerateOp) and not _has(producer, ReduceOp, AssertOp):
                    yield producer


class _Repeated:
    """One vector, which one nest multiplies with the rows of a matrix."""

    def __init__(self, nest: GenerateOp, vector: GenerateOp, block: Block, sizes: Sizes) -> None:
        self.nest, self.vector, self.block, self.sizes = nest, vector, block, sizes
        self.loads = [cast(LoadOp, use.operation) for use in vector.results[0].uses]
        self.numbers = [load for load in loads_in(vector) if _reduces_to_one(load.operands[0], sizes)]

    def run(self) -> bool:
        """Rewrite; whether it did."""
        if not self.may() or not self.pays() or not counter(RepeatRows.name):
            return False
        remark("passed", RepeatRows.name, self.vector, "computed again for each row of a matrix")
        numbers = {load.operands[0] for load in self.numbers}
        for load in self.loads:
            self._splice(self.vector, load)
        first = next(op for op in self.nest.body.block.ops if type(op) is ReduceOp)
        for number in numbers:
            inner = [load for load in loads_in(self.nest) if load.operands[0] is number]
            outer = inner[0].clone()
            self.nest.body.block.insert_op_before(outer, first)
            for load in inner:
                load.results[0].replace_all_uses_with(outer.results[0])
                cast(Block, load.parent).erase_op(load)
            self._splice(cast(GenerateOp, number.owner), outer)
        return True

    def may(self) -> bool:
        """Whether the vector is nobody else's, is made of one number that is nobody else's, and moves past no write."""
        if len(self.vector.results) != 1 or not self.numbers:
            return False
        length = self.sizes.product(self.vector.axes.sizes)
        makers = {cast(GenerateOp, load.operands[0].owner) for load in self.numbers}
        used = [(each, self.nest) for each in self.loads]
        for maker in makers:
            used += [(use.operation, self.vector) for use in maker.results[0].uses]
            lengths = [self.sizes.product(op.axes.sizes) for op in maker.walk() if type(op) is ReduceOp]
            if len(maker.results) != 1 or lengths != [length] or _has(maker, AssertOp):
                return False
        if any(type(op) is not LoadOp or outermost(op, self.block) is not reader for op, reader in used):
            return False
        if not 1 < length <= LONGEST or not all(map(self._is_along, self.loads)):
            return False
        mutations = Mutations(self.block)
        for maker in (*makers, self.vector):
            sources = [load.operands[0] for load in loads_in(maker) if load.operands[0].owner not in makers]
            if not all(map(_is_in_memory, sources)) or mutations.moves_past_write(sources, maker, self.nest):
                return False
        return True

    def _is_along(self, load: LoadOp) -> bool:
        """Whether a load in a sum at the top of the nest reads the vector along all axes of the sum, unmasked.

        A sum with several loads, as of both numbers of a byte, reads an equal part of the vector with each.
        """
        outer = load.parent_op()
        if not isinstance(outer, ReduceOp) or outer.parent_op() is not self.nest or access_of(load).mask is not None:
            return False
        symbols = frozenset[str]().union(*(each.free_symbols for each in map_of(load).data))
        places = {map_of(each) for each in self.loads if each.parent_op() is outer}
        points = len(places) * self.sizes.product(outer.axes.sizes)
        return symbols == set(outer.axes.names) and points == self.sizes.product(self.vector.axes.sizes)

    def pays(self) -> bool:
        """Whether memory takes longer than what is computed again."""
        rows = self.sizes.product(self.nest.axes.sizes)
        sums = [op for op in self.nest.body.block.ops if type(op) is ReduceOp]
        points = sum(rows * self.sizes.product(op.axes.sizes) for op in sums)
        sources = {load.operands[0] for load in loads_in(self.nest)} - {self.vector.results[0]}
        bytes_ = [self._bytes(source) for source in sources]
        most, _, element = max(bytes_, default=(0, 0, 1))
        is_once = bool(sources) and most // element <= points <= 2 * max(count for _, count, _ in bytes_)
        again = most // PROGRAM_BYTES * self.sizes.product(self.vector.axes.sizes)
        return rows >= FEWEST_ROWS and is_once and again <= MOST_AGAIN

    def _bytes(self, source: SSAValue) -> tuple[int, int, int]:
        """Bytes of a tensor, its elements, and bytes of each."""
        type_ = cast(TensorType, source.type)
        count, size = self.sizes.product(type_.shape), element_bytes(type_.element)
        return count * size, count, size

    def _splice(self, producer: GenerateOp, load: LoadOp) -> None:
        block = cast(Block, load.parent)
        scope = frozenset(name for name, _ in axes_around(block))
        inner = {name for op in self.nest.walk() if type(op) is ReduceOp for name in op.axes.names}
        site = Site(block, access_of(load), map_of(load).data, [load])
        Splicer(producer, site, scope | inner, move=False).run()


def _has(nest: GenerateOp, *kinds: type[Operation]) -> bool:
    return any(type(each) in kinds for each in nest.walk())


def _reduces_to_one(value: SSAValue, sizes: Sizes) -> bool:
    """Whether a nest makes a value of one element by one reduction."""
    maker = value.owner
    if not isinstance(maker, GenerateOp) or sizes.product(cast(AxesAttr, maker.properties["axes"]).sizes) != 1:
        return False
    return any(type(op) is ReduceOp for op in maker.body.block.ops)


def _is_in_memory(value: SSAValue, depth: int = 4) -> bool:
    """Whether a value is in memory whatever is fused, or made there of what a nest of long sums makes, as its copy."""
    maker: Operation | Block = value.owner
    if is_stored(value):
        return True
    if not isinstance(maker, GenerateOp) or not depth:
        return False
    if any(type(op) is ReduceOp for op in maker.body.block.ops):
        return True
    return all(_is_in_memory(load.operands[0], depth - 1) for load in loads_in(maker))
