"""The walk over the ops of a kernel: each kind of op has one method that writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from xdsl.ir import Operation

from ...dialects import kernel


class Walk:
    """Writes ops in order, each by the method that `METHODS` names; a scalar op by `scalar`."""

    METHODS: ClassVar[dict[type[Operation], str]] = {
        kernel.ForOp: "loop",
        kernel.ReduceOp: "reduce",
        kernel.ScanOp: "scan",
        kernel.LoadOp: "load",
        kernel.StoreOp: "store",
        kernel.LocalOp: "local",
        kernel.IndexOp: "index",
        kernel.AssertOp: "check",
        kernel.BarrierOp: "barrier",
        kernel.AwaitOp: "wait",
        kernel.ReleaseOp: "release",
        kernel.YieldOp: "end",
    }

    def ops(self, ops: Iterable[Operation]) -> None:
        """Write ops in order."""
        for op in ops:
            getattr(self, self.METHODS.get(type(op), "scalar"))(op)

    def scalar(self, op: Operation) -> None:
        """Write an op that computes one value."""
        raise NotImplementedError
