"""Constants through casts."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from ._dtypes import holds, integer_range, is_float


def converted(value: Any, source: Attribute, target: Attribute) -> int | float | bool | None:
    """A constant of type `source` cast to `target`, when it is exactly a value of both; None otherwise.

    Any number becomes a bool.
    """
    if not isinstance(value, int | float) or not holds(source, value):
        return None
    if isinstance(target, IntegerType) and integer_range(target) == (0, 1):
        return value != 0
    if not holds(target, value):
        return None
    return float(value) if is_float(target) else int(value)
