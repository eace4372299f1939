"""`graph-choose-products`: for each product and attention, the library or a nest of ours with which tile."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.machine import targets_of
from ...dialects.raw import ops_of
from ...dialects.sym import ONE
from ...errors import UserError
from ...machines import GpuTarget, Target
from ...machines.measured_nests import ATTENTION_TILES, PRODUCT_TILES
from ...machines.nests import MARGIN, MeasuredNest, NestShape, nearest
from ...records import dataclass
from ..analysis.functions import functions
from ..analysis.nests import element_bytes
from ..analysis.sizes import Sizes
from ..common.choices import MEASURED, NONE, RECORDED, Candidate, Question, mark, timer
from ..common.implementations import ALIGNMENT, BLAS, LEAST_OF_UNITS, NEST, ONEDNN, alignment
from ..counters import counter
from ..remarks import remark
from ._alternatives import Alternative, alternative_of, is_either, take
from ._joint import forward_results
from ._questions import Group, groups_of, text_of
from ._ways import settle

#: types that nests of products multiply
_FACTORS = (BFloat16Type, Float16Type, Float32Type)
#: elements of a step of the depth: fewer are no better where so many divide it
_STEP = 64
#: how many times as long the busiest processor works as all would, if smaller tiles for the last wave are tried
_IDLE = 1.05
#: rows that one iteration of a nest on a CPU does
_ROWS_OF_CPU = ((4,), (1,))


@dataclass(frozen=True)
class ChooseProducts(ModulePass):
    """Choose who computes each product and attention that was written op by op, by what was measured.

    level:         aten
    precondition:  what joins products is done; in front of `graph-expand-products`, which leaves alone what is marked
    guarantee:     the same values but for the order of sums. What is better as a nest is marked so, with the sizes of
                   its tile, and `lower-aten-to-loop` makes it one; the passes that map nests of products and sums over
                   a softmax take the tile from there. On a CPU the library is marked where it was measured. With
                   `choices` "recorded", as by default, the measurements are those in `machines/measured_nests.py`: a
                   nest is taken where it was faster, by 3 % at least, for the most similar shape, and no size differs
                   much; ATen where nothing similar was measured. "measured" asks whoever runs the passes
                   (`passes/common/choices.py`) to time all candidates, at the sizes that were seen, each question once;
                   without anybody to ask it is as "recorded". "none" leaves every product alone.
                   Of `inductile::either`, an attention under a mask as a library's call and written out, one way
                   stays: what is written out where it is a nest, or `loop_products` makes it one, else the call.

        %p = aten.bmm(%x, %w) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
        %y = aten.relu(%p) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
    becomes
        %p = aten.bmm(%x, %w) {implementation = "nest", tile = array<i64: 64, 64, 64, 4, 6>,
                               chosen_for = "product 192x512x512x64 bf16 with relu", precision = "bf16"} : ...
        %y = aten.relu(%p) : !aten.tensor<192x512x512xbf16, device = "cuda:0">
    """

    name = "graph-choose-products"
    level: ClassVar[str] = "aten"
    optional: ClassVar[bool] = True

    choices: str = RECORDED
    products: str = BLAS
    """Who multiplies float32 matrices on a CPU where nothing else was measured to be faster by 3 % at least."""
    loop_products: bool = False
    """Every product becomes a nest, so that records are not asked."""
    row_products: bool = True
    """Whether nests of few rows may be candidates on a CPU that has an entry for their elements in `row_sums`: where
    units multiply these (AMX), a nest that is timed alone is faster than it is in a model, whose weights are cold."""
    allow_tf32: bool = False
    deterministic: bool = False
    fallback_by_default: bool = False
    """Leave every ATen op to ATen."""
    given_back: tuple[str, ...] = ()
    """Shapes, as remarks name them, that the library computes whatever was measured: as nests they missed the units."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module. UserError for an unknown kind of choice."""
        if self.choices not in (NONE, RECORDED, MEASURED):
            raise UserError(f"unknown choices {self.choices!r}", f"they are {NONE}, {RECORDED} or {MEASURED}")
        settle([block for function, block in functions(op) if forward_results(function) is None])
        targets = targets_of(op)
        asks = self.choices == MEASURED and timer() is not None
        by_records = self.choices != NONE and not self.loop_products
        may_choose = asks or (by_records and isinstance(targets.main, GpuTarget) and bool(targets.main.nests))
        if self.fallback_by_default or not may_choose:
            for _, block in functions(op):
                self._take_all(block)
            return
        asked: list[_Asked] = []
        for function, block in functions(op):
            sizes = Sizes.of_function(function)
            for group, alternative in self._open(block):
                type_ = group.products[-1].results[0].type
                assert isinstance(type_, TensorType)
                target = targets.target(type_.device)
                if str(_shape_of(group, alternative, sizes)) in self.given_back:
                    told = "the library: as a nest it did not end on matrix units"
                    remark("missed", self.name, group.products[-1], told)
                    if alternative is not None:
                        take(alternative.either, second=False)
                elif alternative is not None and (why := _objection(alternative, target, sizes)) is not None:
                    remark("missed", self.name, group.products[-1], f"the library: {why}")
                    take(alternative.either, second=False)
                elif not _may_be_nest(group, target, sizes):
                    continue
                elif asks:
                    asked += self._question(group, alternative, function, target, sizes)
                else:
                    self._by_records(group, alternative, target, sizes)
        self._ask(asked)

    def _take_all(self, block: Block) -> None:
        """Leave nothing open where nobody chooses."""
        for each in [op for op in ops_of(block) if is_either(op)]:
            take(each, second=self.loop_products and not self.fallback_by_default)

    def _open(self, block: Block) -> Iterator[tuple[Group, Alternative | None]]:
        """What is to be decided, the choices of two ways first; one that is not understood is the library's."""
        ops = ops_of(block)
        eithers = [op for op in ops if isinstance(op, CallOp) and is_either(op)]
        groups = groups_of(ops)
        order = {op: k for k, op in enumerate(ops)} if eithers else {}
        done: set[Operation] = set()
        for either in eithers:
            alternative = alternative_of(either, groups, order)
            if alternative is None:
                remark("missed", self.name, either, "the library: what is written out is no attention of one block")
                take(either, second=False)
            else:
                done.update(alternative.written.products)
                yield alternative.written, alternative
        for group in groups:
            if done.isdisjoint(group.products) and all(op.parent is block for op in group.ops):
                yield group, None

    def _by_records(self, group: Group, alternative: Alternative | None, target: Target, sizes: Sizes) -> None:
        """Mark what was faster as a nest when it was measured."""
        measured = target.nests if isinstance(target, GpuTarget) else ()
        chosen = self._recorded(group, measured, _shape_of(group, alternative, sizes))
        if alternative is not None:
            take(alternative.either, second=chosen)

    def _recorded(self, group: Group, measured: Sequence[MeasuredNest], shape: NestShape) -> bool:
        """Whether records say that a group is to be a nest; then it is marked."""
        last = group.products[-1]
        found = nearest(shape, measured)
        if found is None:
            if measured:
                remark("missed", self.name, last, f"the library: nothing like {shape} was measured")
        elif not found.is_ahead:
            told = f"the library, which was faster for {found.shape}"
            remark("missed", self.name, last, told, library=found.library, nest=found.nest)
        elif found.takes_turns and not _may_take_turns(last):
            told = f"the library: a copy engine, as for {found.shape}, wants constant sizes and aligned rows"
            remark("missed", self.name, last, told)
        elif counter(self.name):
            self._mark(group, Candidate(NEST, found.tile), shape)
            told = f"a nest, which was faster for {found.shape}"
            remark("passed", self.name, last, told, library=found.library, nest=found.nest)
            return True
        return False

    def _question(
        self, group: Group, alternative: Alternative | None, function: FuncOp, target: Target, sizes: Sizes
    ) -> list[_Asked]:
        whole = group if alternative is None else alternative.whole
        text = None if whole is None else text_of(whole, function)
        if text is None:
            remark("missed", self.name, group.products[-1], "not measured: it reads numbers, or sizes nobody has seen")
            self._by_records(group, alternative, target, sizes)
            return []
        has_nests = self.row_products or group.shape(sizes).element not in target.row_sums
        candidates = candidates_of(group, target, sizes, self.products, has_nests)
        return [_Asked(group, alternative, Question(text, target.name, candidates, self.allow_tf32), sizes)]

    def _ask(self, asked: Sequence[_Asked]) -> None:
        """Have all questions measured at once, each once, and mark the fastest."""
        who, questions = timer(), list(dict.fromkeys(each.question for each in asked))
        if who is None or not questions:
            return
        answers = dict(zip(questions, who.times(questions), strict=True))
        for each in asked:
            self._take(each, answers[each.question])

    def _take(self, asked: _Asked, times: Mapping[str, float]) -> None:
        group, question = asked.group, asked.question
        default, last = question.candidates[0], group.products[-1]
        ran = [each for each in question.candidates if str(each) in times]
        told = {str(each): f"{times[str(each)]:.1f} us" for each in sorted(ran, key=lambda e: times[str(e)])}
        best = min(ran, key=lambda each: times[str(each)], default=default)
        if str(default) in times and times[str(best)] * MARGIN > times[str(default)]:
            best = default
        if counter(self.name):
            shape = _shape_of(group, asked.alternative, asked.sizes)
            self._mark(group, best, shape)
            kind = "passed" if best is not default else "missed"
            what = f"as measured for {shape}" if ran else "for nothing ran"
            remark(kind, self.name, last, f"{best}, {what}", **told)
        else:
            best = default
        if asked.alternative is not None:
            take(asked.alternative.either, second=best.implementation == NEST)

    def _mark(self, group: Group, candidate: Candidate, shape: NestShape) -> None:
        for product in group.products:
            mark(product, candidate, self.allow_tf32, group.is_attention, str(shape))


@dataclass(frozen=True)
class _Asked:
    group: Group
    alternative: Alternative | None
    question: Question
    sizes: Sizes


def _shape_of(group: Group, alternative: Alternative | None, sizes: Sizes) -> NestShape:
    shape = group.shape(sizes)
    return shape if alternative is None else shape.beside(alternative.library)


def _objection(alternative: Alternative, target: Target, sizes: Sizes) -> str | None:
    """Why a library's attention needs no measurement to stay one."""
    if alternative.either.operands[1].type != alternative.either.results[0].type:
        return "what is written out lies otherwise in memory"
    if not alternative.library:
        return "its mask is proved, and is not read"
    if not _may_be_nest(alternative.written, target, sizes):
        return "what is written out is no nest for matrix units"
    elements = {value.type.element for op in alternative.written.products for value in op.results}  # pyright: ignore
    return None if len(elements) == 1 else "its scores are of another type"


def _may_take_turns(product: AtenOp) -> bool:
    """Whether a copy engine can bring tiles of the factors: constant sizes, rows that begin at aligned addresses."""
    for value in product.operands[-2:]:
        type_ = value.type
        assert isinstance(type_, TensorType)
        steps = [step for step in type_.strides if step is not ONE]
        if any(size.as_int() is None for size in type_.shape) or any(step.as_int() is None for step in steps):
            return False
        if any(alignment(step, element_bytes(type_.element)) < ALIGNMENT for step in steps):
            return False
    return True


def _may_be_nest(group: Group, target: Target, sizes: Sizes) -> bool:
    """Whether there is more than one way: matrices of one type, of more than few rows and columns on a GPU."""
    shape = group.shape(sizes)
    if group.is_attention:
        if not isinstance(target, GpuTarget) or not target.matrix_units:
            return False
        return all(_has_one_type(each) for each in group.products) and min(shape.sizes[1:]) >= LEAST_OF_UNITS
    if not _has_one_type(group.products[0]) or min(shape.sizes) < 1:
        return False
    return not isinstance(target, GpuTarget) or min(shape.sizes[1:3]) >= LEAST_OF_UNITS


def _has_one_type(op: AtenOp) -> bool:
    types = {value.type.element for value in (*op.operands, op.results[0]) if isinstance(value.type, TensorType)}
    return len(types) == 1 and isinstance(types.pop(), _FACTORS)


def candidates_of(
    group: Group, target: Target, sizes: Sizes, products: str = BLAS, has_nests: bool = True
) -> tuple[Candidate, ...]:
    """The library first, that for `products` in front, and nests with tiles that are not much larger."""
    if not isinstance(target, GpuTarget):
        nests = (Candidate(NEST, rows) for rows in _ROWS_OF_CPU) if has_nests else ()
        return (*_libraries(group.products[0], target, products), *nests)
    shape = group.shape(sizes)
    if group.is_attention:
        tiles = [tile for tile in ATTENTION_TILES if tile[0] < 2 * shape.sizes[1]]
        return Candidate(""), Candidate(NEST), *(Candidate(NEST, tile) for tile in tiles)
    tiles = [tile for tile in PRODUCT_TILES if _fits(tile, shape, target)]
    return Candidate(""), Candidate(NEST), *(Candidate(NEST, tile) for tile in tiles)


def _libraries(op: AtenOp, target: Target, products: str) -> list[Candidate]:
    type_ = op.results[0].type
    assert isinstance(type_, TensorType)
    has_both = target.family.library.has_onednn and isinstance(type_.element, Float32Type)
    if not has_both or op.packet not in ("mm", "addmm"):
        return [Candidate("")]
    return [Candidate(each) for each in ((ONEDNN, BLAS) if products == ONEDNN else (BLAS, ONEDNN))]


def _leaves_over(tiles: int, processors: int) -> bool:
    """Whether a part of a wave behind few whole ones keeps some processors idle for a good part of the time."""
    waves = tiles / processors
    return waves > 1 and math.ceil(waves) > _IDLE * waves


def _fits(tile: tuple[int, ...], shape: NestShape, target: GpuTarget) -> bool:
    """Whether a tile is at most twice as large as the product, and its stages fit a processor's memory."""
    (rows, columns, depth, _, stages, *more), (count, high, wide, deep) = tile, shape.sizes
    parts, resident, last = (*more, 0, 0, 0)[:3]
    tiles = count * -(-high // rows) * -(-wide // columns)
    if (parts and tiles > target.processors) or (resident and tiles <= resident * target.processors):
        return False  # parts are for few tiles, and turns for many
    if last and (count > 1 or not _leaves_over(tiles, target.processors)):
        return False
    if depth < _STEP and not deep % _STEP:
        return False
    size = 4 if shape.element == "f32" else 2
    small = rows < 2 * max(high, 16) and columns < 2 * max(wide, 16) and depth < 2 * max(deep, 32)
    return small and (rows + columns) * depth * size * stages <= target.shared_bytes
