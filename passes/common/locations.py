"""Locations of merged ops."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, NoneAttr, UnknownLoc


def merged(locations: Iterable[LocationAttr]) -> LocationAttr:
    """One location for ops that became one: each known part once."""
    parts: dict[LocationAttr, None] = {}
    for location in locations:
        if isinstance(location, FusedLoc):
            assert isinstance(location.locations, ArrayAttr)
            parts.update(dict.fromkeys(location.locations.data))
        elif not isinstance(location, UnknownLoc):
            parts[location] = None
    known = tuple(parts)
    if not known:
        return UnknownLoc()
    return known[0] if len(known) == 1 else FusedLoc(ArrayAttr(known), NoneAttr())
