"""`inductile::either(first, second)`: two ways to compute the same, of which a pass behind autograd keeps one.

`graph-choose-products` decides by measurements. What nobody decides about is the first one.
"""

from __future__ import annotations

import torch

_LIBRARY = torch.library.Library("inductile", "FRAGMENT")
_LIBRARY.define("either(Tensor first, Tensor second) -> Tensor")


def _either(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return first.clone()


def _fake(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(first)


_LIBRARY.impl("either", _either, "CompositeExplicitAutograd")
torch.library.register_fake("inductile::either", _fake, lib=_LIBRARY)

EITHER = torch.ops.inductile.either.default
