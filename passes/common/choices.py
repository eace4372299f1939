"""Choices among implementations of products and attention: what is asked, who answers, and how an answer is marked.

A question is a function at the aten level: the products, with what a nest of ours would fuse with them. Passes ask, and
measure nothing themselves: whoever runs them may hand over a timer with `timed_by`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from xdsl.dialects.builtin import DenseArrayBase, Float32Type, IntegerType, StringAttr, UnitAttr, i64
from xdsl.ir import Operation

from ...dialects.aten import AtenOp, TensorType
from ...dialects.kernel import PRECISION
from ...dialects.raw import ops_in
from ...records import dataclass
from .implementations import IMPLEMENTATION, NEST

NONE, RECORDED, MEASURED = "none", "recorded", "measured"
"""Who answers: nobody, what was measured once, or whoever runs the passes."""

PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm"})
"""Packets of the ops that are asked about."""

EITHER = "inductile::either"
"""The operator whose operands are two ways to compute the same: by a library, and written out.

What asks about the products of the second one decides which of both stays.
"""

EITHER_WAY, OF_WAY = "inductile::either_way", "inductile::of_way"
"""The same in a joint graph of forward and backward, with the number of the choice, and what one of the ways, the first
or the second (0, 1), adds to the gradient of what it reads: (gradient, number of the choice, way).
"""

TILE = "tile"
"""The attribute of a product, and of the multiplication of its nest, with the sizes that were chosen for its kernel.

On a GPU rows, columns, depth, warps, stages, parts of the depth (`loop-split-products`), programs of a processor that
take tiles in turns, and rows, columns and depth of the tiles behind whole waves (`kernel-split-last-wave`); of
attention rows, step, warps and stages; on a CPU rows. What is 0 or is not there, the pass decides that maps the kernel.
"""


STREAMED = "streamed"
"""The attribute, beside `TILE`, of a product of an attention that was chosen to be one nest."""

CHOSEN_FOR = "chosen_for"
"""The attribute, beside `TILE`, of a product that was chosen to be a nest: the shape that was asked about, as text."""

KEPT_BY_NESTS = (PRECISION, TILE, STREAMED, CHOSEN_FOR)
"""The attributes of a product that the multiplication of its nest has too."""


@dataclass(frozen=True)
class Candidate:
    """One way to compute a question.

    implementation: what the products are marked with; empty for what happens without a mark
    tile:           sizes for a nest, as `TILE` has them
    """

    implementation: str
    tile: tuple[int, ...] = ()

    def __str__(self) -> str:
        """As remarks and files of results name it: `nest 128x256x64x8x3`."""
        return " ".join(filter(None, (self.implementation or "library", "x".join(map(str, self.tile)))))


@dataclass(frozen=True)
class Question:
    """A function whose products some candidate is to compute.

    text:       the function, with the hints of its symbols for them, so that equal questions have equal texts
    target:     what it is for
    candidates: the first one is what happens when nobody answers
    allow_tf32: whether products of float32 may read less
    """

    text: str
    target: str
    candidates: tuple[Candidate, ...]
    allow_tf32: bool = False


class Timer(Protocol):
    """Measures."""

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        """For each question microseconds by the names of the candidates that ran; never an error."""
        ...


_timer: ContextVar[Timer | None] = ContextVar("inductile_timer", default=None)


@contextmanager
def timed_by(timer: Timer | None) -> Iterator[None]:
    """Let a timer answer what passes ask inside."""
    token = _timer.set(timer)
    try:
        yield
    finally:
        _timer.reset(token)


def timer() -> Timer | None:
    """Who measures now, if anybody does."""
    return _timer.get()


def mark(
    op: AtenOp, candidate: Candidate, allow_tf32: bool = False, streamed: bool = False, chosen_for: str = ""
) -> None:
    """Write a candidate onto a product, which may be one of an attention, and the shape that was asked about."""
    if not candidate.implementation:
        return
    op.attributes[IMPLEMENTATION] = StringAttr(candidate.implementation)
    if candidate.implementation == NEST:
        op.attributes[TILE] = DenseArrayBase.from_list(i64, candidate.tile)
        op.attributes.update({STREAMED: UnitAttr()} if streamed else {})
        op.attributes.update({CHOSEN_FOR: StringAttr(chosen_for)} if chosen_for else {})
        mark_precision(op, allow_tf32)


def mark_precision(op: AtenOp, allow_tf32: bool) -> None:
    """Say of a product that becomes a nest how exact its factors are read: as the library reads them."""
    type_ = op.results[0].type
    assert isinstance(type_, TensorType)
    if isinstance(type_.element, IntegerType):
        return
    if allow_tf32 or not isinstance(type_.element, Float32Type):
        op.attributes[PRECISION] = StringAttr("tf32" if isinstance(type_.element, Float32Type) else type_.element.name)


def is_open(op: Operation) -> bool:
    """Whether an op is a product that nobody has decided about."""
    return isinstance(op, AtenOp) and op.packet in PRODUCTS and IMPLEMENTATION not in op.attributes


def open_products(module: Operation) -> list[AtenOp]:
    """The products inside of an op that nobody has decided about."""
    return [op for op in ops_in(module) if isinstance(op, AtenOp) and is_open(op)]


def chosen_tile(op: Operation) -> tuple[int, ...] | None:
    """The sizes that the first multiplication inside of an op carries; None where none was chosen."""
    for inner in ops_in(op):
        found = inner.attributes.get(TILE)
        if found is not None and isinstance(found, DenseArrayBase):
            return tuple(int(each) for each in found.get_values())
    return None


_TURNED = 10
"""The place of that number in a tile."""


def is_turned(tile: tuple[int, ...] | None) -> bool:
    """Whether a tile of a product says that the factor of its columns is the first one."""
    return tile is not None and len(tile) > _TURNED and tile[_TURNED] == 1
