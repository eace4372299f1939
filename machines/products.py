"""How fast a library multiplies matrices on a target: the form of what was measured; `known.py` has the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LAUNCH = 4000.0
"""Nanoseconds between two kernels of a library, with the call that starts them; on an H200, torch 2.11."""


@dataclass(frozen=True)
class ProductRates:
    """Operations a nanosecond of products of one element type, two for each multiplication.

    by_alignment: bytes that all rows of the three matrices begin at multiples of -> the rate
    source:       where the numbers come from
    """

    by_alignment: Mapping[int, float]
    source: str
