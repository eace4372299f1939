"""Products of quantised numbers at the places where programs call them. Light: programs from the cache load it."""

from __future__ import annotations

import weakref
from typing import Any

import torch


class PlacedProduct:
    """One of `fx_quantised_ops.PRODUCTS` at one place of a program: it remembers the weight that was packed there.

    To look that up again, behind torch's dispatcher, took 25 us of a call of 59, on one core of an EPYC.
    """

    def __init__(self, name: str) -> None:
        from .fx_quantised_ops import PRODUCTS

        self.name = name
        self._pack, self._multiply, self._whole = PRODUCTS[name]
        self._weight: weakref.ref[torch.Tensor] | None = None
        self._packed: torch.Tensor | None = None
        self._state: tuple[Any, ...] = ()

    def __call__(
        self, x: torch.Tensor, scale: float, zero_point: int, weight: torch.Tensor, scales: torch.Tensor,
        zeros: torch.Tensor, *others: Any,
    ) -> torch.Tensor:  # fmt: skip
        """The product."""
        if torch.is_grad_enabled() or weight.is_inference() or zeros.is_inference():
            return self._whole(x, scale, zero_point, weight, scales, zeros, *others)
        # written out, for a call of `state_of` takes as long as what it returns
        state = (
            x.shape, scales.data_ptr(), weight.data_ptr(), weight._version, zeros.data_ptr(), zeros._version,
        )  # fmt: skip
        if self._state != state or self._weight is None or self._weight() is not weight:
            packed = self._pack(x, scale, zero_point, weight, scales, zeros, *others)
            self._packed = None if 0 in (*x.shape, *weight.shape) else packed
            self._weight, self._state = weakref.ref(weight), state
        if self._packed is None:
            return self._whole(x, scale, zero_point, weight, scales, zeros, *others)
        return self._multiply(self._packed, x, scale, zero_point, weight, scales, zeros, *others)


_NAMES = ("inductile::quantised_", "inductile::requantised_", "inductile::activated_")


def placed(name: str) -> PlacedProduct | None:
    """A function of its own for a place where a program calls one of the products; None for other operators."""
    if not name.startswith(_NAMES):
        return None
    from .fx_quantised_ops import PRODUCTS

    return PlacedProduct(name) if name in PRODUCTS else None
