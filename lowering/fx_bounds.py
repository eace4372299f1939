"""How large the elements of what convolutions make can be: ops on numbers of float64, run once for frozen weights.

    bound_constant(number)
    bound_sum(a, b), bound_product(a, b)
    bound_convolution(image, weight, bias, transposed)     of an image whose elements are no larger than a number
    finite_limit(bounds, measured)    `measured` if all bounds are finite, else -1: nothing is that small

What is larger than `_MOST` is infinite here, for an algorithm of a library may add it up on its way to what is smaller,
and so is all that comes of it. A weight with a NaN or an infinity in it has no finite bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

_NAMESPACE = "inductile"
_LIBRARY = torch.library.Library(_NAMESPACE, "FRAGMENT")
_LIBRARY.define("bound_constant(float number) -> Tensor")
_LIBRARY.define("bound_sum(Tensor a, Tensor b) -> Tensor")
_LIBRARY.define("bound_product(Tensor a, Tensor b) -> Tensor")
_LIBRARY.define("bound_convolution(Tensor image, Tensor weight, Tensor? bias, bool transposed) -> Tensor")
_LIBRARY.define("finite_limit(Tensor[] bounds, float measured) -> Tensor")

_ROUNDED = 1.01
"""More than what rounding adds to a sum, and to its result in 16 bits."""
_MOST = 1e34
"""Less than the largest number of float32 and of bfloat16 by more than an algorithm adds up beside a sum."""


def _bound(number: torch.Tensor) -> torch.Tensor:
    return number * _ROUNDED if bool(number <= _MOST) else torch.full_like(number, torch.inf)


def _constant(number: float) -> torch.Tensor:
    return torch.tensor(number, dtype=torch.float64)


def _sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _bound(a + b)


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return _bound(a * b)


def _convolution(
    image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool
) -> torch.Tensor:
    """The sum of magnitudes that one element of the result can meet; of transposed groups, of all of them."""
    channel = 1 if transposed else 0
    others = [dim for dim in range(weight.dim()) if dim != channel]
    found = image * weight.abs().sum(others, dtype=torch.float64).amax()
    return _bound(found if bias is None else found + bias.abs().amax().double())


def _limit(bounds: Sequence[torch.Tensor], measured: float) -> torch.Tensor:
    is_finite = all(bool(bound.isfinite()) for bound in bounds)
    return torch.tensor(measured if is_finite else -1.0, dtype=torch.float32)


def _fake_number(*_: object) -> torch.Tensor:
    return torch.empty((), dtype=torch.float64)


def _fake_limit(bounds: Sequence[torch.Tensor], measured: float) -> torch.Tensor:
    return torch.empty((), dtype=torch.float32)


for _name, _function, _fake in (
    ("bound_constant", _constant, _fake_number),
    ("bound_sum", _sum, _fake_number),
    ("bound_product", _product, _fake_number),
    ("bound_convolution", _convolution, _fake_number),
    ("finite_limit", _limit, _fake_limit),
):
    _LIBRARY.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{_NAMESPACE}::{_name}", _fake, lib=_LIBRARY)
