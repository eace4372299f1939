"""Which ops are decomposed before they reach the aten level, and why.

The table decides op count, rounding and coverage, so it is curated: an op stands here when no lowering of ours says it
better. What the lowering handles by families (softmax, norms, activations) is not decomposed, so that one op stays one
op in remarks and traces. Composite ops that torch itself always decomposes need no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._decomp import get_decompositions

_WHY_BACKWARD = "the gradient is pointwise or a reduction once written out, and fuses"
_WHY_COMPOSITE = "a composition of lowered ops; as one op it would be an ATen call"
_WHY_VIEW = "a copy of a view: as view and copy it fuses"

#: packet -> reason. All overloads of a packet that torch has a decomposition for.
DECOMPOSED: dict[str, str] = {
    # compositions
    "addcdiv": _WHY_COMPOSITE,
    "addcmul": _WHY_COMPOSITE,
    "aminmax": _WHY_COMPOSITE,
    "binary_cross_entropy": _WHY_COMPOSITE,
    "binary_cross_entropy_with_logits": _WHY_COMPOSITE,
    "channel_shuffle": _WHY_COMPOSITE,
    "count_nonzero": _WHY_COMPOSITE,
    "deg2rad": _WHY_COMPOSITE,
    "dist": _WHY_COMPOSITE,
    "huber_loss": _WHY_COMPOSITE,
    "l1_loss": _WHY_COMPOSITE,
    "mse_loss": _WHY_COMPOSITE,
    "smooth_l1_loss": _WHY_COMPOSITE,
    "soft_margin_loss": _WHY_COMPOSITE,
    "multi_margin_loss": _WHY_COMPOSITE,
    "multilabel_margin_loss_forward": _WHY_COMPOSITE,
    "nansum": _WHY_COMPOSITE,
    "nll_loss_forward": _WHY_COMPOSITE,
    "nll_loss2d_forward": _WHY_COMPOSITE,
    "norm": _WHY_COMPOSITE,
    "pixel_shuffle": _WHY_COMPOSITE,
    "pixel_unshuffle": _WHY_COMPOSITE,
    "rad2deg": _WHY_COMPOSITE,
    "renorm": _WHY_COMPOSITE,
    "rrelu_with_noise": _WHY_COMPOSITE,
    "trace": _WHY_COMPOSITE,
    "triu_indices": _WHY_COMPOSITE,
    "tril_indices": _WHY_COMPOSITE,
    "glu": _WHY_COMPOSITE,
    "im2col": _WHY_COMPOSITE,
    "col2im": _WHY_COMPOSITE,
    "grid_sampler_2d": _WHY_COMPOSITE,
    "_euclidean_dist": _WHY_COMPOSITE,
    "linspace": _WHY_COMPOSITE,
    "logspace": _WHY_COMPOSITE,
    "mv": _WHY_COMPOSITE,
    "addmv": _WHY_COMPOSITE,
    "addr": _WHY_COMPOSITE,
    "dot": _WHY_COMPOSITE,
    "vdot": _WHY_COMPOSITE,
    # gradients
    "_log_softmax_backward_data": _WHY_BACKWARD,
    "_softmax_backward_data": _WHY_BACKWARD,
    "binary_cross_entropy_backward": _WHY_BACKWARD,
    "glu_backward": _WHY_BACKWARD,
    "huber_loss_backward": _WHY_BACKWARD,
    "l1_loss_backward": _WHY_BACKWARD,
    "mse_loss_backward": _WHY_BACKWARD,
    "native_batch_norm_backward": _WHY_BACKWARD,
    "native_group_norm_backward": _WHY_BACKWARD,
    "native_layer_norm_backward": _WHY_BACKWARD,
    "nll_loss_backward": _WHY_BACKWARD,
    "nll_loss2d_backward": _WHY_BACKWARD,
    "select_backward": _WHY_BACKWARD,
    "slice_backward": _WHY_BACKWARD,
    "smooth_l1_loss_backward": _WHY_BACKWARD,
    "soft_margin_loss_backward": _WHY_BACKWARD,
    "unfold_backward": _WHY_BACKWARD,
    "value_selecting_reduction_backward": _WHY_BACKWARD,
    # copies of views
    "split_with_sizes_copy": _WHY_VIEW,
    "unfold_copy": _WHY_VIEW,
    "view_copy": _WHY_VIEW,
}


def decompositions(extra: Iterable[str] = ()) -> dict[Any, Callable[..., Any]]:
    """torch's decompositions for `DECOMPOSED` and for the `extra` packets that a caller names."""
    packets = [getattr(torch.ops.aten, name, None) for name in (*DECOMPOSED, *extra)]
    return get_decompositions([packet for packet in packets if packet is not None])
