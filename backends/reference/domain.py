"""Iteration domains: axes as broadcasting index tensors, and cutting a domain into pieces that fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import torch

from ...dialects.sym import Expr
from ...dialects.sym.containers import Axis
from ...records import dataclass
from .errors import InterpretationError

#: most lanes that are evaluated at once, unless one loop alone has more
LANES = 1 << 20

Span = tuple[int, int]


@dataclass(frozen=True)
class Domain:
    """The lanes over which a body is evaluated at once.

    An inner axis is put *in front* of the dimensions of the outer ones, so that values of an outer body broadcast to
    an inner one as they are.
    """

    device: torch.device
    symbols: Mapping[str, int | torch.Tensor]
    """Values of symbols; an axis is an int64 tensor that broadcasts to `shape`."""
    shape: tuple[int, ...] = ()
    active: torch.Tensor | None = None
    """Where the lane exists, for domains that are not rectangular; None: everywhere."""

    @property
    def lanes(self) -> int:
        """Number of lanes, whether active or not."""
        return prod(self.shape)

    def along(self, name: str, lo: int | torch.Tensor, steps: Span, hi: int | torch.Tensor | None = None) -> Domain:
        """The domain with the inner axis `name` at `lo + k` for k in `steps`; lanes at or above `hi` are inactive."""
        first, last = steps
        count = last - first
        offsets = torch.arange(first, last, device=self.device).reshape(count, *[1] * len(self.shape))
        index = offsets + lo
        active = self.active
        if hi is not None:
            inside = index < hi
            active = inside if active is None else active & inside
        return Domain(self.device, {**self.symbols, name: index}, (count, *self.shape), active)

    def at(self, name: str, value: int | torch.Tensor, active: torch.Tensor | None) -> Domain:
        """The same lanes at one value of an axis that is run one step after the other."""
        return Domain(self.device, {**self.symbols, name: value}, self.shape, active)

    def nest(self, axes: Sequence[Axis], sizes: Sequence[int | torch.Tensor], spans: Sequence[Span]) -> Domain:
        """The domain inside a nest, the first axis in front; `spans` says which part of each axis.

        A size that is a tensor differs from lane to lane.
        """
        domain = self
        for (name, _), size, span in reversed(list(zip(axes, sizes, spans, strict=True))):
            domain = domain.along(name, 0, span, size if isinstance(size, torch.Tensor) else None)
        return domain

    def evaluate(self, expr: Expr, dynamic: Mapping[str, torch.Tensor] | None = None) -> int | torch.Tensor:
        """Value of an index expression in each lane."""
        return value_of(expr, {**self.symbols, **dynamic} if dynamic else self.symbols)

    def tensor(self, value: int | torch.Tensor) -> torch.Tensor:
        """An index as an int64 tensor."""
        return torch.as_tensor(value, dtype=torch.int64, device=self.device)


def value_of(expr: Expr, values: Mapping[str, Any]) -> Any:
    """The value of an expression. InterpretationError where it divides by zero, SymError for an unknown symbol."""
    try:
        return expr.evaluate(values)
    except (ZeroDivisionError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "ZeroDivisionError" not in str(error):
            raise
        raise InterpretationError(f"the index expression {expr} divides by zero") from error


def pieces(sizes: Sequence[int], limit: int) -> Iterator[tuple[Span, ...]]:
    """Cut a box into boxes of at most `limit` elements (or one), in row-major order of their elements."""
    if not sizes:
        yield ()
        return
    inner = prod(sizes[1:])
    step = max(1, limit // max(inner, 1))
    for lo in range(0, sizes[0], step):
        span = (lo, min(lo + step, sizes[0]))
        for rest in pieces(sizes[1:], limit):
            yield (span, *rest)
