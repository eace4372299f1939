"""Products and attention as nests beside the library: the form of what was measured, and what it says of others.

`measured_nests.py` has the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from ..records import dataclass

#: shapes farther apart than this, the root of the sum of squared logarithms of their sizes' ratios, are not alike
NEAR = 0.35
#: a nest has to take so much less than the library, for times differ by as much from run to run
MARGIN = 1.03

#: what is expected of shapes that nobody measured has to say more than that; in between nothing is said
DOUBT = 1.05
#: how many times as long as what was measured an attention may be, or as short
LONGER = 4

#: rows of all heads of an attention that fill a card several times: 512 programs of 128 rows for 132 processors
MANY_ROWS = 1 << 16

PRODUCT, ATTENTION = "product", "attention"

#: the word of a record for forward with backward
TRAINING = "training"


@dataclass(frozen=True)
class NestShape:
    """What is computed.

    kind:    `PRODUCT` or `ATTENTION`
    element: of the factors, "bf16"
    sizes:   batch, rows, columns and depth; of attention heads of all batches, queries, keys and width
    ops:     what is done with a product behind it, as names of ATen's ops in alphabetical order, without views and
             casts; of attention what is done between its products (`passes/graph/_score_steps.py`), and what the
             library's way is where that is no product (`passes/graph/_alternatives.py`)
    """

    kind: str
    element: str
    sizes: tuple[int, int, int, int]
    ops: tuple[str, ...] = ()

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.sizes))
        return f"{self.kind} {sizes} {self.element}" + (f" with {', '.join(self.ops)}" if self.ops else "")

    def beside(self, library: str) -> NestShape:
        """The same, where the library computes it in a way of its own."""
        return replace(self, ops=tuple(sorted((*self.ops, library))))

    def is_like(self, other: NestShape) -> bool:
        """Whether sizes alone tell them apart. What follows a product weighs little, but whether something does."""
        if (self.kind, self.element) != (other.kind, other.element):
            return False
        return self.ops == other.ops if self.kind == ATTENTION else bool(self.ops) == bool(other.ops)

    def distance(self, other: NestShape) -> float:
        """How far the sizes are apart, as far as they tell who is faster."""
        pairs = zip(self._telling(), other._telling(), strict=True)
        return math.sqrt(sum(math.log(max(own, 1) / max(one, 1)) ** 2 for own, one in pairs))

    def _telling(self) -> tuple[int, ...]:
        """Sizes that decide who is faster. Where programs fill the card several times, more heads add time to both."""
        if self.kind != ATTENTION:
            return self.sizes
        heads, rows, keys, width = self.sizes
        return min(heads * rows, MANY_ROWS), rows, keys, width


#: the place, among the sizes of a product's tile, of the programs of a processor that take tiles in turns
RESIDENT = 6


@dataclass(frozen=True)
class MeasuredNest:
    """One measurement: device microseconds of the library, with the kernels around it, and of the best nest."""

    shape: NestShape
    library: float
    nest: float
    tile: tuple[int, ...] = ()

    @property
    def takes_turns(self) -> bool:
        """Whether programs of the nest take the tiles in turns, for which a copy engine brings them."""
        return self.shape.kind == PRODUCT and len(self.tile) > RESIDENT and self.tile[RESIDENT] > 0

    @property
    def is_ahead(self) -> bool:
        """Whether the nest was faster, by more than noise."""
        return self.nest * MARGIN <= self.library


def any_near(
    element: str, sizes: tuple[int, int, int, int], measured: Sequence[MeasuredNest], is_training: bool = False
) -> bool:
    """Whether attention of about these sizes was measured, or its training, whatever is done with its scores."""
    shape = NestShape(ATTENTION, element, sizes)
    kinds = {m.shape.ops for m in measured if (m.shape.kind, m.shape.element) == (ATTENTION, element)}
    kinds = {ops for ops in kinds if (TRAINING in ops) == is_training}
    return any(nearest(replace(shape, ops=ops), measured) is not None for ops in kinds)


#: products no farther apart are as one, so that they have the same best tile
SAME = 0.05


def recorded_tile(shape: NestShape, measured: Sequence[MeasuredNest]) -> tuple[int, ...]:
    """The best tile of what was measured of the same shape; none where nobody did."""
    alike = [each for each in measured if each.tile and shape.is_like(each.shape)]
    found = min(alike, key=lambda each: shape.distance(each.shape), default=None)
    return found.tile if found is not None and shape.distance(found.shape) <= SAME else ()


def nearest(shape: NestShape, measured: Sequence[MeasuredNest]) -> MeasuredNest | None:
    """What was measured of the most similar shape; None where no similar one was.

    Attention between lengths and widths that were measured, or not far from them, is as the most similar one with the
    outcome that the pace there leads to expect (`_expected`).
    """
    alike = [each for each in measured if shape.is_like(each.shape)]
    found = min(alike, key=lambda each: shape.distance(each.shape), default=None)
    if found is None or shape.distance(found.shape) <= NEAR:
        return found
    expected = _expected(shape, alike) if shape.kind == ATTENTION else None
    if expected is None or 1 / expected.doubt < expected.ratio * MARGIN < expected.doubt:
        return None
    as_expected = [each for each in alike if each.is_ahead == (expected.ratio < 1)]
    return min(as_expected, key=lambda each: shape.distance(each.shape), default=None)


@dataclass(frozen=True)
class _Expected:
    """A nest's time over the library's that nobody measured, and the factor by which it may be something else."""

    ratio: float
    doubt: float

    def less_sure(self, factor: float) -> _Expected:
        """The same, with more doubt."""
        return replace(self, doubt=self.doubt * factor)


def _expected(shape: NestShape, alike: Sequence[MeasuredNest]) -> _Expected | None:
    """The time of a nest over the library's for an attention, from others of about as many queries for each key.

    Logarithms of ratios are interpolated between lengths, and the worst counts of the widths on both sides, and of the
    numbers of rows that keep as little and as much of the card busy. Outside of what was measured the outermost ratio
    goes on, with more doubt the farther away (`_FARTHER`).
    """
    full, *own, width = shape._telling()
    lines: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for each in alike:
        rows, queries, keys, wide = each.shape._telling()
        if abs(math.log(queries / keys)) <= NEAR:
            point = math.log(queries * keys) / 2, math.log(each.nest / each.library)
            lines.setdefault((rows, wide), []).append(point)
    if abs(math.log(own[0] / own[1])) > NEAR:
        return None
    place = math.log(own[0] * own[1]) / 2
    rows, unsure = _around(full, {rows for rows, _ in lines}, NEAR, _FARTHER.rows)
    found: list[_Expected | None] = []
    for near in rows:
        widths, less = _around(width, {wide for one, wide in lines if one == near}, 0, _FARTHER.width)
        along = [_along(sorted(lines[near, wide]), place) for wide in widths] or [None]
        found += [each and each.less_sure(unsure * less) for each in along]
    if not found or None in found:
        return None
    return max((each for each in found if each is not None), key=lambda each: each.ratio * each.doubt)


@dataclass(frozen=True)
class _Reach:
    """How far outside of what was measured a ratio says something: (the largest factor, the exponent of its doubt)."""

    length: tuple[float, float]
    width: tuple[float, float]
    rows: tuple[float, float]


#: doubling the width of heads made ratios up to 1.6 times as large, doubling the length up to 1.1
_FARTHER = _Reach(length=(LONGER, 0.15), width=(2, 0.7), rows=(4, 0.25))


def _around(value: int, known: Collection[int], near: float, reach: tuple[float, float]) -> tuple[list[int], float]:
    """The known numbers on both sides of one, or the nearest one alone, and the factor of doubt outside of all."""
    nearest_one = min(known, key=lambda each: abs(math.log(value / each)), default=None)
    if nearest_one is None or abs(math.log(value / nearest_one)) <= near:
        return ([] if nearest_one is None else [nearest_one]), 1
    below, above = [each for each in known if each < value], [each for each in known if each > value]
    if below and above:
        return [max(below), min(above)], 1
    farthest, exponent = reach
    factor = max(value / nearest_one, nearest_one / value)
    return ([nearest_one] if factor <= farthest else []), factor**exponent


def _along(line: Sequence[tuple[float, float]], place: float) -> _Expected | None:
    """What a line through points says at a place: the trend of two or more goes on to longer ones."""
    (first, low), (last, _) = line[0], line[-1]
    farthest, exponent = _FARTHER.length
    outside = max(first - place, place - last, 0.0)
    if outside > math.log(farthest) + 1e-9:
        return None
    if place <= first or first == last:
        return _Expected(math.exp(low), DOUBT * math.exp(outside * exponent))
    k = max(k for k in range(len(line) - 1) if line[k][0] <= place)
    (left, low), (right, high) = line[k], line[k + 1]
    height = low if right == left else low + (high - low) * (place - left) / (right - left)
    return _Expected(math.exp(height), DOUBT)
