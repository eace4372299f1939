"""Which ops are decomposed before they reach the aten level, and why.

The table decides op count, rounding and coverage, so it is curated: an op stands here when no lowering of ours says it
better. What the lowering handles by families (softmax, norms, activations) is not decomposed, so that one op stays one
op in remarks and traces. Composite ops that torch itself always decomposes need no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import torch
from torch._decomp import get_decompositions

from ..errors import UserError
from ..machines import eager
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


def _grid_sampler(decomposition: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Eager's sums, which start at 0.0 where the decomposition adds products only, and its places that are no numbers.

    Clamped and reflected, such a place is the first element. Outside of the source elements are zeros, which eager's
    CPU kernel multiplies with weights that are NaN. How far from the source a place may be before its reflection is
    all rounding depends on the formula, and eager's CPU kernel has another: it stays the op.
    """

    @wraps(decomposition)
    def adjusted(
        source: torch.Tensor, grid: torch.Tensor, interpolation: int, padding: int, align_corners: bool
    ) -> torch.Tensor:
        if padding == _REFLECTION and eager(source.device.type).reflects_its_own_way:
            return NotImplemented
        if padding and interpolation != _BICUBIC:
            is_number = torch.isfinite(grid) if padding == _REFLECTION else ~torch.isnan(grid)
            grid = torch.where(is_number, grid, -1.0)
        result = decomposition(source, grid, interpolation, padding, align_corners) + 0.0
        if padding == _ZEROS and interpolation == _BILINEAR and eager(source.device.type).weighs_what_is_outside:
            return result + (grid * 0.0).sum(-1).unsqueeze(1)
        return result

    return adjusted


def _in_format_of_input(decomposition: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A result that is channels last where the input looks so, as eager's kernel on the CPU gives it."""

    @wraps(decomposition)
    def adjusted(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        result = decomposition(self, *args, **kwargs)
        if not eager(self.device.type).shuffles_keep_format or not looks_channels_last(self):
            return result
        return result.clone(memory_format=torch.channels_last if self.dim() == 4 else torch.channels_last_3d)

    return adjusted


#: modes of grid_sampler_2d: of interpolation and of padding
_BILINEAR, _BICUBIC = 0, 2
_ZEROS, _REFLECTION = 0, 2


def _declining(refuses: Callable[[torch.Tensor], bool]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Leaves tensors to the op that eager's kernel refuses and the decomposition would take, so that it says so."""

    def adjust(decomposition: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(decomposition)
        def adjusted(first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            return NotImplemented if refuses(first) else decomposition(first, *args, **kwargs)

        return adjusted

    return adjust


_of_bools = _declining(lambda tensor: tensor.dtype == torch.bool)


def _addmv(decomposition: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves a product times 0 to the op: BLAS does not read its factors, which may be NaN."""
    of_numbers = _of_bools(decomposition)

    @wraps(decomposition)
    def adjusted(self: torch.Tensor, *args: Any, alpha: Any = 1, **kwargs: Any) -> Any:
        if type(alpha) in (int, float) and alpha == 0:
            return NotImplemented
        return of_numbers(self, *args, alpha=alpha, **kwargs)

    return adjusted


_of_floats = _declining(lambda tensor: not tensor.is_floating_point())
_of_wide_floats = _declining(
    lambda tensor: (
        not tensor.is_floating_point()
        or (tensor.dtype == torch.float16 and eager(tensor.device.type).refuses_float16_margins)
    )
)

#: packet -> what makes torch's decomposition mean what eager computes
ADJUSTED: dict[str, Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]] = {
    "channel_shuffle": _in_format_of_input,
    "grid_sampler_2d": _grid_sampler,
    **dict.fromkeys(("dot", "mv", "trace", "vdot"), _of_bools),
    "addmv": _addmv,
    "im2col": _of_floats,
    **dict.fromkeys(("multi_margin_loss", "multilabel_margin_loss_forward"), _of_wide_floats),
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


def _batch_norm_backward(
    grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any,
    save_mean: Any, save_invstd: Any, train: bool, eps: float, output_mask: Any,
) -> Any:  # fmt: skip
    """The gradient by the statistics of the batch without the running ones, which it does not read.

    An argument of a backward graph is saved: two tensors a layer, which the host allocates and autograd keeps.
    """
    if not train or (running_mean is None and running_var is None):
        return NotImplemented
    gradient = torch.ops.aten.native_batch_norm_backward.default
    return gradient(grad_out, input, weight, None, None, save_mean, save_invstd, train, eps, output_mask)


#: packet -> its default overload, with less to read
LIGHTER: dict[str, Callable[..., Any]] = {"native_batch_norm_backward": _batch_norm_backward}


def decompositions(extra: Iterable[str] = ()) -> dict[Any, Callable[..., Any]]:
    """torch's decompositions for `DECOMPOSED`, adjusted, for a caller's `extra` packets, `COMPUTED` and `LIGHTER`."""
    packets = [getattr(torch.ops.aten, name, None) for name in (*DECOMPOSED, *extra)]
    table = get_decompositions([packet for packet in packets if packet is not None])
    for name, adjust in ADJUSTED.items():
        for overload in (op for op in table if getattr(op, "overloadpacket", None) is getattr(torch.ops.aten, name)):
            table[overload] = adjust(table[overload])
    for view, computed in COMPUTED.items():
        table[getattr(torch.ops.aten, view).default] = _of_numbers_too(getattr(torch.ops.aten, computed).default)
    for name, lighter in LIGHTER.items():
        table.setdefault(getattr(torch.ops.aten, name).default, lighter)
    return table


def of_overloads(given: Mapping[Any, Callable[..., Any]] | None) -> dict[Any, Callable[..., Any]]:
    """A table of a user by overloads: an op without one stands for all of its. UserError for what is no op, or none."""
    if given is not None and not isinstance(given, Mapping):
        remedy = "it takes a dictionary, {torch.ops.NAMESPACE.OP: function}"
        raise UserError(f"option 'decompositions' is {given!r}", remedy)
    table: dict[Any, Callable[..., Any]] = {}
    for op, function in (given or {}).items():
        overload = getattr(op, "_opoverload", op)  # of a `torch.library.custom_op`
        if isinstance(op, torch._ops.OpOverloadPacket):
            table |= {getattr(op, name): function for name in op.overloads()}
        elif isinstance(overload, torch._ops.OperatorBase):
            table[overload] = function
        else:
            raise UserError(f"option 'decompositions' has the key {op!r}", "write torch.ops.NAMESPACE.OP")
        if not callable(function):
            raise UserError(f"option 'decompositions' has {function!r} for {op}", "it takes a function for each op")
    return table
