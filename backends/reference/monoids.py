"""Monoids: what a pair of operands combines to, and folds and scans built on that alone.

A value of a monoid is a tuple of tensors, one a component. Sums and products of floats are held in float64 until
the end, so that a result carries one rounding whatever the order; everything else is exact in its own type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch

from ...dialects.parametric import parametric
from ...records import dataclass
from .precision import accumulator

Tensor = torch.Tensor
Values: TypeAlias = "tuple[Tensor, ...]"


@dataclass(frozen=True)
class Combiner:
    """An associative operation on `arity` components with its identity for given dtypes."""

    arity: int
    combine: Callable[[Values, Values], Values]
    identity: Callable[[tuple[torch.dtype, ...]], tuple[float | int | bool | Tensor, ...]]
    accumulates: bool = False
    """Whether floats are held in float64 while combining."""


def _lowest(dtype: torch.dtype) -> float | int | bool:
    if dtype == torch.bool:
        return False
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype: torch.dtype) -> float | int | bool:
    if dtype == torch.bool:
        return True
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def _add(x: Values, y: Values) -> Values:
    # i1 adds modulo 2, like arith.addi
    return (x[0] ^ y[0] if x[0].dtype == torch.bool else x[0] + y[0],)


def _multiply(x: Values, y: Values) -> Values:
    return (x[0] & y[0] if x[0].dtype == torch.bool else x[0] * y[0],)


def _isnan(x: Tensor) -> Tensor:
    return torch.isnan(x)  # all false for integers


@parametric
def _argument(x: Values, y: Values, better: Callable[[Tensor, Tensor], Tensor]) -> Values:
    nan_x, nan_y = _isnan(x[0]), _isnan(y[0])
    equal = (x[0] == y[0]) | (nan_x & nan_y)
    first = (nan_x & ~nan_y) | (~nan_y & better(x[0], y[0])) | (equal & (x[1] <= y[1]))
    return torch.where(first, x[0], y[0]), torch.where(first, x[1], y[1])


def _welford(x: Values, y: Values) -> Values:
    """Chan, Golub, LeVeque: updating formulae for computing sample variances (1979).

    `delta * n_x / n` is written as the distance to the new mean, so that m2 is NaN where the mean is.
    """
    (mean_x, m2_x, n_x), (mean_y, m2_y, n_y) = x, y
    n = n_x + n_y
    delta = mean_y - mean_x
    mean = mean_x + delta * (n_y / n)
    m2 = m2_x + m2_y + delta * (mean_y - mean) * n_y
    both = (mean, m2, n)
    either = tuple(torch.where(n_x == 0, b, a) for a, b in zip(x, y, strict=True))
    alone = (n_x == 0) | (n_y == 0)
    return tuple(torch.where(alone, e, b) for e, b in zip(either, both, strict=True))


def _logsumexp(x: Values, y: Values) -> Values:
    top = torch.maximum(x[0], y[0])

    def rescaled(m: Tensor, s: Tensor) -> Tensor:
        # where m == top the factor is 1, also for infinities, whose difference is NaN
        return torch.where(m == top, s, s * torch.exp(m - top))

    return top, rescaled(*x) + rescaled(*y)


def _softmax_sum(x: Values, y: Values, times: float = 1.0) -> Values:
    top = torch.maximum(x[0], y[0])

    def factor(m: Tensor) -> Tensor:
        # what is -inf weighs nothing, though nothing else is there; NaN beside it stays
        return torch.where(m == float("-inf"), 0, torch.exp((m - top) * times))

    left, right = factor(x[0]), factor(y[0])
    return top, *(a * left + b * right for a, b in zip(x[1:], y[1:], strict=True))


#: the named monoids of `dialects/loop/monoids.py`
COMBINERS: dict[str, Combiner] = {
    "sum": Combiner(1, _add, lambda d: (0,), accumulates=True),
    "prod": Combiner(1, _multiply, lambda d: (1,), accumulates=True),
    "max": Combiner(1, lambda x, y: (torch.maximum(x[0], y[0]),), lambda d: (_lowest(d[0]),)),
    "min": Combiner(1, lambda x, y: (torch.minimum(x[0], y[0]),), lambda d: (_highest(d[0]),)),
    "any": Combiner(1, lambda x, y: (x[0] | y[0],), lambda d: (False,)),
    "all": Combiner(1, lambda x, y: (x[0] & y[0],), lambda d: (True,)),
    "xor": Combiner(1, lambda x, y: (x[0] ^ y[0],), lambda d: (0,)),
    # The identity's index is the largest, so that a real -inf wins against it.
    "argmax": Combiner(2, _argument(torch.gt), lambda d: (_lowest(d[0]), _highest(d[1]))),
    "argmin": Combiner(2, _argument(torch.lt), lambda d: (_highest(d[0]), _highest(d[1]))),
    "welford": Combiner(3, _welford, lambda d: (0, 0, 0), accumulates=True),
    "logsumexp": Combiner(2, _logsumexp, lambda d: (_lowest(d[0]), 0), accumulates=True),
    "softmax_sum": Combiner(3, _softmax_sum, lambda d: (_lowest(d[0]), 0, 0), accumulates=True),
}


def softmax_sums(times: float) -> Combiner:
    """`softmax_sum` over exp(times*(x - m))."""
    return replace(COMBINERS["softmax_sum"], combine=lambda x, y: _softmax_sum(x, y, times))


def combined(names: Sequence[str], others: Mapping[str, Combiner] | None = None) -> Combiner:
    """The product of named monoids, each taking its arity of components in turn; `others` in place of those known."""
    parts = [(others or {}).get(name, COMBINERS[name]) for name in names]
    if len(parts) == 1:
        return parts[0]
    ends = [sum(p.arity for p in parts[: k + 1]) for k in range(len(parts))]
    spans = [(p, slice(end - p.arity, end)) for p, end in zip(parts, ends, strict=True)]

    def combine(x: Values, y: Values) -> Values:
        return tuple(v for part, span in spans for v in part.combine(x[span], y[span]))

    def identity(dtypes: tuple[torch.dtype, ...]) -> tuple[float | int | bool | Tensor, ...]:
        return tuple(v for part, span in spans for v in part.identity(dtypes[span]))

    return Combiner(ends[-1], combine, identity, any(p.accumulates for p in parts))


def start(combiner: Combiner, values: Values, shape: Sequence[int]) -> tuple[Values, Values]:
    """Components in the dtypes they are combined in, and the identity broadcast to `shape`."""
    dtypes = tuple(v.dtype for v in values)
    wide = tuple(v.to(accumulator(v.dtype)) if combiner.accumulates else v for v in values)
    identity = tuple(
        torch.as_tensor(e, device=v.device).to(v.dtype).expand(tuple(shape))
        for e, v in zip(combiner.identity(dtypes), wide, strict=True)
    )
    return wide, identity


def fold(combiner: Combiner, values: Values) -> Values:
    """Combine along the leading dimension, keeping order: a balanced tree over neighbours. At least one element."""
    while (count := values[0].shape[0]) > 1:
        paired = count // 2 * 2
        merged = combiner.combine(tuple(v[0:paired:2] for v in values), tuple(v[1:paired:2] for v in values))
        values = tuple(torch.cat([m, v[paired:]]) for m, v in zip(merged, values, strict=True))
    return tuple(v[0] for v in values)


def running(combiner: Combiner, values: Values) -> Values:
    """Inclusive scan along the leading dimension: each element combined with what stands 1, 2, 4, ... before."""
    distance = 1
    while distance < values[0].shape[0]:
        merged = combiner.combine(tuple(v[:-distance] for v in values), tuple(v[distance:] for v in values))
        values = tuple(torch.cat([v[:distance], m]) for m, v in zip(merged, values, strict=True))
        distance *= 2
    return values
