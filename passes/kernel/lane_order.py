"""Whether Triton sees along which axis of a tile the places of an access are neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects import kernel
from ...dialects.sym import ONE, ZERO
from ..analysis.nests import Access


def hides_order(tiles: Mapping[kernel.ForOp, int], accesses: Sequence[Access]) -> bool:
    """Whether an access is at neighbours along no axis of a tile of several: `x[2*i]`, `x[i floordiv 2]`, a gather.

    Triton orders the axes of a tile by how many neighbours it sees along each. Where it sees none it takes the outer
    one, for each such access, and lanes that could read nearby places read rows apart. One axis has one order.
    """
    axes = [loop.axis.data for loop, tile in tiles.items() if tile > 1]
    if len(axes) < 2:
        return False
    strides = [[access.stride(axis) for axis in axes] for access in accesses]
    return any(along[0] is not ZERO and ONE not in along for along in strides)
