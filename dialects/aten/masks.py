"""Gradients that an op's `output_mask` leaves out."""

from __future__ import annotations

from collections.abc import Sequence

#: packet -> numbers of the gradients that it computes whatever the mask says
_ALWAYS = {"grid_sampler_2d_backward": (1,), "grid_sampler_3d_backward": (1,)}


def left_out(packet: str, mask: Sequence[bool]) -> list[int]:
    """Numbers of the results of an op that are no tensors, by its mask."""
    always = _ALWAYS.get(packet, ())
    return [number for number, is_wanted in enumerate(mask) if not is_wanted and number not in always]
