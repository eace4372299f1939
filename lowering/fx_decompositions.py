"""Which ops are decomposed before they reach the aten level, and why.

The table decides op count, rounding and coverage, so it is curated: an op stands here when no lowering of ours says it
better. What the lowering handles by families (softmax, norms, activations) is not decomposed, so that one op stays one
op in remarks and traces. Composite ops that torch itself always decomposes need no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import torch
from torch._decomp import get_decompositions

from .fx_stride_families import looks_channels_last

_WHY_BACKWARD = "the gradient is pointwise or a reduction once written out, and fuses"
_WHY_COMPOSITE = "a composition of lowered ops; as one op it would be an ATen call"

#: packet -> reason. All overloads of a packet that torch has a decomposition for.
DECOMPOSED: dict[str, str] = {
    # compositions
    "binary_cross_entropy_with_logits": _WHY_COMPOSITE,
    "channel_shuffle": _WHY_COMPOSITE,
    "dist": _WHY_COMPOSITE,
    "multi_margin_loss": _WHY_COMPOSITE,
    "multilabel_margin_loss_forward": _WHY_COMPOSITE,
    "pixel_shuffle": _WHY_COMPOSITE,
    "pixel_unshuffle": _WHY_COMPOSITE,
    "renorm": _WHY_COMPOSITE,
    "trace": _WHY_COMPOSITE,
    "triu_indices": _WHY_COMPOSITE,
    "tril_indices": _WHY_COMPOSITE,
    "im2col": _WHY_COMPOSITE,
    "col2im": _WHY_COMPOSITE,
    "grid_sampler_2d": _WHY_COMPOSITE,
    "_euclidean_dist": _WHY_COMPOSITE,
    "linalg_cross": _WHY_COMPOSITE,
    "linspace": _WHY_COMPOSITE,
    "logspace": _WHY_COMPOSITE,
    "mv": _WHY_COMPOSITE,
    "addmv": _WHY_COMPOSITE,
    "addr": _WHY_COMPOSITE,
    "dot": _WHY_COMPOSITE,
    "vdot": _WHY_COMPOSITE,
    # gradients
    "unfold_backward": _WHY_BACKWARD,
}


def _without_negative_zero(decomposition: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A sum that starts at 0.0, as the loops of eager's kernel do, where the decomposition adds products only."""

    @wraps(decomposition)
    def adjusted(*args: Any, **kwargs: Any) -> torch.Tensor:
        return decomposition(*args, **kwargs) + 0.0

    return adjusted


def _in_format_of_input(decomposition: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A result that is channels last where the input looks so, as eager's kernel on the CPU gives it."""

    @wraps(decomposition)
    def adjusted(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        result = decomposition(self, *args, **kwargs)
        if self.device.type != "cpu" or not looks_channels_last(self):
            return result
        return result.clone(memory_format=torch.channels_last if self.dim() == 4 else torch.channels_last_3d)

    return adjusted


#: packet -> what makes torch's decomposition mean what eager computes
ADJUSTED: dict[str, Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]] = {
    "channel_shuffle": _in_format_of_input,
    "grid_sampler_2d": _without_negative_zero,
}

#: views that only set a bit of the tensor, which the memory that a kernel reads does not show: packet -> the same
#: computed. Graphs are functional and AOTAutograd makes outputs that alias inputs itself, so no view is missed.
COMPUTED: dict[str, str] = {"_conj": "_conj_physical", "_neg_view": "neg"}


def _of_numbers_too(computed: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """An op that autograd may also give a number of the program, where eager has wrapped it in a tensor of 64 bits."""

    @wraps(computed)
    def adjusted(value: torch.Tensor | complex) -> torch.Tensor:
        if not isinstance(value, torch.Tensor):
            value = torch.scalar_tensor(value, dtype=torch.complex128 if isinstance(value, complex) else torch.float64)
        return computed(value)

    return adjusted


def decompositions(extra: Iterable[str] = ()) -> dict[Any, Callable[..., Any]]:
    """torch's decompositions for `DECOMPOSED`, adjusted, for the `extra` packets of a caller, and `COMPUTED`."""
    packets = [getattr(torch.ops.aten, name, None) for name in (*DECOMPOSED, *extra)]
    table = get_decompositions([packet for packet in packets if packet is not None])
    for name, adjust in ADJUSTED.items():
        for overload in (op for op in table if getattr(op, "overloadpacket", None) is getattr(torch.ops.aten, name)):
            table[overload] = adjust(table[overload])
    for view, computed in COMPUTED.items():
        table[getattr(torch.ops.aten, view).default] = _of_numbers_too(getattr(torch.ops.aten, computed).default)
    return table
