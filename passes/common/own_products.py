"""Operators of ours that multiply by a library: what is known of them, where nothing is of other people's."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects.aten import CallOp

_NAMES = ("inductile::activated_", "inductile::packed_", "inductile::quantised_", "inductile::requantised_")


def is_own_product(op: Operation) -> bool:
    """Whether an op calls one whose results are memory of their own, and which keeps nothing that it was given."""
    return isinstance(op, CallOp) and op.target.startswith(_NAMES) and op.writes is None
