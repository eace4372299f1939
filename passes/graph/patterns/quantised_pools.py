"""Maxima of quantised numbers: the order of numbers is that of their steps, so that nothing is dequantised for them.

    q = cast(clamp(round(max_pool(dequantised(x)) * inverse) + zero_point, low, high))

is max_pool(x) where both quantisations are the same.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation, SSAValue

from ....machines import HOST
from .._pattern import Pattern, PatternBuilder, PatternCall
from .._replacement import ReplacementBuilder, type_of
from . import quantised
from .requantised import integer, quantised_again

#: how far a scale times the inverse of another one is from 1 where both are equal, at most
_ROUNDING = 1e-6
_MOST = 255


def _maximum(
    aten: PatternBuilder, x: Any, scale: Any, zero_point: Any, size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: Any, inverse: Any, result_zero_point: Any, low: Any, high: Any,
) -> PatternCall:  # fmt: skip
    wide = quantised.numbers(aten, x, scale, zero_point)
    pooled = aten.max_pool2d_with_indices(wide, size, stride, padding, dilation, ceil_mode)
    found = {"inverse": inverse, "result_zero_point": result_zero_point, "low": low, "high": high}
    return quantised_again(aten, pooled, "", found)


def _pool(
    aten: ReplacementBuilder, root: SSAValue, x: SSAValue, size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: Any, **numbers: Any,
) -> SSAValue:  # fmt: skip
    value = root
    for _ in range(5):  # cast, clamp, zero point, rounding, scale
        assert isinstance(value.owner, Operation)
        value = value.owner.operands[0]
    assert isinstance(value.owner, Operation)
    types = [type_of(root), value.owner.results[1].type]
    return aten.max_pool2d_with_indices(x, size, stride, padding, dilation, ceil_mode, types=types)[0]


def _objection(
    root: SSAValue, x: SSAValue, scale: Any, zero_point: Any, inverse: Any, result_zero_point: Any, low: Any, high: Any,
    **window: Any,
) -> str | None:  # fmt: skip
    if type_of(root).device != HOST:
        return "nobody has measured that for its device"
    numbers = (scale, zero_point, inverse, result_zero_point, low, high)
    if any(each is None or isinstance(each, SSAValue) for each in numbers):
        return "scales and zero points are not all numbers"
    if type_of(root).element != quantised.UNSIGNED or type_of(x).element != quantised.UNSIGNED:
        return "the numbers are not unsigned ones of 8 bits"
    if abs(float(scale) * float(inverse) - 1) > _ROUNDING or integer(zero_point) != integer(result_zero_point):
        return "its result is quantised otherwise than what it reads"
    if integer(low) != 0 or integer(high) != _MOST:
        return "its result is clamped"
    return None


QUANTISED_MAXIMUM = Pattern("quantised_maximum", _maximum, _pool, _objection, is_exact=True, may_repeat=True)
