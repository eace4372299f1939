"""Combining what a body yields, for the reduces and scans of the loop and the kernel level."""

from __future__ import annotations

from typing import Any

import torch
from xdsl.ir import Operation

from ...dialects import kernel
from .errors import InterpretationError, describe
from .frame import Frame, combine_region
from .monoids import Combiner, Values, combined, fold, running, softmax_sums, start


def combiner_of(frame: Frame, op: Any) -> Combiner:
    """The combiner of a reduce or scan; a custom one's identity is the op's `init`."""
    names = [name.data for name in op.combiners]
    factor = getattr(op, "factor", None)  # reductions of kernels may have one
    if factor is not None:
        return combined(names, {"softmax_sum": softmax_sums(factor.value.data)})
    if names != ["custom"]:
        return combined(names)
    init = tuple(frame.scalar(v) for v in op.init)
    return Combiner(len(init), combine_region(frame, op.combine.block), lambda _: init)


def _elements(combiner: Combiner, inner: Frame, yielded: Values, shape: tuple[int, ...]) -> Values:
    """What an inner frame yields, one dimension in front of `shape`; the identity in lanes that do not exist."""
    values, identity = start(combiner, yielded, shape)
    active = inner.domain.active
    if active is not None:
        values = tuple(torch.where(active, v, e) for v, e in zip(values, identity, strict=True))
    return tuple(v.expand(inner.domain.shape).reshape(-1, *shape) for v in values)


class Accumulator:
    """A reduction over lanes of a frame, fed piece by piece in order."""

    def __init__(self, frame: Frame, op: Any) -> None:
        self.op: Operation = op
        self.combiner = combiner_of(frame, op)
        self.shape = frame.domain.shape
        goes_on = isinstance(op, kernel.ReduceOp) and op.goes_on
        self.total: Values | None = tuple(frame.scalar(v) for v in op.init) if goes_on else None
        precision = frame.machine.precision
        self.empty: Values = tuple(
            torch.empty(0, dtype=precision.scalar(r.type), device=frame.domain.device) for r in op.results
        )

    def add(self, inner: Frame, yielded: Values) -> None:
        """Combine the lanes of an inner frame, whose domain has reduced axes in front of the enclosing lanes."""
        part = fold(self.combiner, _elements(self.combiner, inner, yielded, self.shape))
        self.total = part if self.total is None else self.combiner.combine(self.total, part)

    def result(self) -> Values:
        """The reduction; the identity where nothing was added."""
        _, identity = start(self.combiner, self.empty, self.shape)
        if self.total is None:
            values = identity
        else:
            values = self.combiner.combine(identity, self.total)
            self._check_identity(values, self.total)
        return tuple(v.to(e.dtype) for v, e in zip(values, self.empty, strict=True))

    def _check_identity(self, combined: Values, total: Values) -> None:
        for got, wanted in zip(combined, total, strict=True):
            if not torch.allclose(got.double(), wanted.double(), rtol=1e-5, atol=0, equal_nan=True):
                raise InterpretationError(f"{describe(self.op)}: init is not an identity of the combine region")


def scan(frame: Frame, op: Any, elements: Values, shape: torch.Size) -> Values:
    """Inclusive scan of elements along their leading dimension, in their own dtypes again."""
    combiner = combiner_of(frame, op)
    values, identity = start(combiner, elements, shape[1:])
    lanes = tuple(v.expand(shape) for v in values)
    if not shape[0]:
        return tuple(v.expand(shape) for v in elements)
    prefix = combiner.combine(identity, running(combiner, lanes))
    return tuple(v.to(e.dtype) for v, e in zip(prefix, elements, strict=True))


class Scanner:
    """An inclusive scan over lanes of a frame, fed piece by piece in order."""

    def __init__(self, frame: Frame, op: Any) -> None:
        self.combiner = combiner_of(frame, op)
        self.shape = frame.domain.shape
        self.carry: Values | None = None

    def add(self, inner: Frame, yielded: Values) -> Values:
        """Running values in the lanes of an inner frame, whose domain has the scanned axis in front."""
        if self.carry is None:
            _, self.carry = start(self.combiner, yielded, self.shape)
        elements = _elements(self.combiner, inner, yielded, self.shape)
        prefix = self.combiner.combine(self.carry, running(self.combiner, elements))
        self.carry = tuple(v[-1] for v in prefix)
        return tuple(v.to(y.dtype) for v, y in zip(prefix, yielded, strict=True))
