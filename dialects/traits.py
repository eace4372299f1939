"""Traits of ops of several dialects."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsolatedFromAbove


class Isolated(IsolatedFromAbove):
    """Isolated from above, as `passes/verification.py` checks it for every op while it walks the module.

    xDSL's check climbs from each operand to the op, once more for all ops inside and at a cost that grows with depth.
    """

    def verify(self, op: Operation) -> None:
        """Nothing: the walk does it."""
