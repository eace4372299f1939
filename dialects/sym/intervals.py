"""Arithmetic of integer intervals with open ends: (lo, hi), inclusive, None for unbounded."""

from __future__ import annotations

from typing import TypeAlias

Interval: TypeAlias = tuple[int | None, int | None]
UNBOUNDED: Interval = (None, None)


def add(left: Interval, right: Interval) -> Interval:
    """Interval of x + y."""
    lo = None if left[0] is None or right[0] is None else left[0] + right[0]
    hi = None if left[1] is None or right[1] is None else left[1] + right[1]
    return lo, hi


def scale(interval: Interval, factor: int) -> Interval:
    """Interval of factor * x."""
    if factor == 0:
        return 0, 0
    lo = None if interval[0] is None else interval[0] * factor
    hi = None if interval[1] is None else interval[1] * factor
    return (lo, hi) if factor > 0 else (hi, lo)


def multiply(left: Interval, right: Interval) -> Interval:
    """Interval of x * y."""
    if left == (0, 0) or right == (0, 0):
        return 0, 0
    corners = [_corner(a, b) for a in _ends(left) for b in _ends(right)]
    signs = [sign for sign, _ in corners]
    lo = None if -1 in signs else min(value for sign, value in corners if sign == 0) if 0 in signs else None
    hi = None if 1 in signs else max(value for sign, value in corners if sign == 0) if 0 in signs else None
    return lo, hi


def _ends(interval: Interval) -> tuple[tuple[int, int], tuple[int, int]]:
    """Both ends as (sign of infinity or 0, finite value)."""
    lo, hi = interval
    return (-1, 0) if lo is None else (0, lo), (1, 0) if hi is None else (0, hi)


def _corner(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """Product of two ends; zero times infinity is zero, because the infinite end is never attained."""
    if left[0] == 0 and right[0] == 0:
        return 0, left[1] * right[1]
    left_sign = left[0] or (left[1] > 0) - (left[1] < 0)
    right_sign = right[0] or (right[1] > 0) - (right[1] < 0)
    return left_sign * right_sign, 0


def floordiv(dividend: Interval, divisor: Interval) -> Interval:
    """Interval of x floordiv y; unbounded unless y is known to be positive."""
    lo, hi = dividend
    least, most = divisor
    if least is None or least < 1:
        return UNBOUNDED
    if lo is not None:
        if lo < 0:
            lo //= least
        else:
            lo = 0 if most is None else lo // most
    if hi is not None:
        if hi >= 0:
            hi //= least
        else:
            hi = -1 if most is None else hi // most
    return lo, hi


def mod(dividend: Interval, divisor: Interval) -> Interval:
    """Interval of x mod y; unbounded unless y is known to be positive."""
    lo, hi = dividend
    least, most = divisor
    if least is None or least < 1:
        return UNBOUNDED
    if lo is not None and hi is not None and least == most and lo // least == hi // least:
        return lo % least, hi % least
    top = None if most is None else most - 1
    if lo is not None and lo >= 0 and hi is not None:
        top = hi if top is None else min(top, hi)
    return 0, top


def minimum(left: Interval, right: Interval) -> Interval:
    """Interval of min(x, y)."""
    lo = None if left[0] is None or right[0] is None else min(left[0], right[0])
    known = [end for end in (left[1], right[1]) if end is not None]
    return lo, min(known) if known else None


def maximum(left: Interval, right: Interval) -> Interval:
    """Interval of max(x, y)."""
    known = [end for end in (left[0], right[0]) if end is not None]
    hi = None if left[1] is None or right[1] is None else max(left[1], right[1])
    return max(known) if known else None, hi


def intersect(left: Interval, right: Interval) -> Interval:
    """What both intervals allow."""
    return maximum(left, (None, None) if right[0] is None else (right[0], None))[0], minimum(
        left, (None, None) if right[1] is None else (None, right[1])
    )[1]
