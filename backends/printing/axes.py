"""What is known of symbols inside of a loop."""

from __future__ import annotations

from ...dialects.sym import Expr, Ranges, bounds


def inside(ranges: Ranges, name: str, lo: Expr, hi: Expr, runs: bool = True) -> Ranges:
    """What holds inside a loop: its axis has bounds.

    runs: what is inside is done only where the loop runs, so that a symbol as `hi` is above `lo`. Lanes that are masked
        run as well.
    """
    start, end = lo.as_int(), hi.as_int()
    if start == 0:
        return Ranges.of_axes(((name, hi),), _positive(ranges, hi, 1) if runs else ranges)
    if start is not None and start > 0 and runs:
        known = _positive(ranges, hi, start + 1)
        intervals = {**known.intervals, name: (start, None if end is None else end - 1)}
        return Ranges(intervals, known.divisors, {**known.sizes, name: hi}, known.positive)
    (least, _), (_, most) = bounds(lo, ranges), bounds(hi, ranges)
    known = {**ranges.intervals, name: (least, None if most is None else most - 1)}
    return Ranges(known, ranges.divisors, ranges.sizes, ranges.positive)


def _positive(ranges: Ranges, hi: Expr, least: int) -> Ranges:
    atom = hi.as_atom
    if atom is None or atom.kind != "symbol":
        return ranges
    lo, up = ranges[atom.name]
    if lo is not None and lo >= least:
        return ranges
    return Ranges({**ranges.intervals, atom.name: (least, up)}, ranges.divisors, ranges.sizes, ranges.positive)
