"""Weights that oneDNN arranges once, and the products that read them: `inductile::packed_product` and others.

    packed_matrix(matrix, rows)     the right operand of a product, for about so many rows of the left one
    packed_filter(weight, ...)      the weight of a convolution, for images of about a size
    packed_product(x, matrix, bias)
    packed_convolution(x, weight, bias, ..., activation, other, finite)    other is added in front of the activation;
                                    where `finite` is given, and true, no NaN reaches it, which the library's relu loses
    packed_convolution_(...)    the same, which may write other
    packed_recurrent_matrices(inputs, hidden, ...)    both matrices of a layer of an LSTM in one direction
    packed_lstm(x, inputs, hidden, biases, states, ...)    such a layer: all states, and the last ones
    mkl_matrix(matrix, rows)        the same as `packed_matrix` for MKL and just so many rows, of float32
    mkl_product(x, packed, matrix, bias)

As operators they mean a copy, and what ATen computes of it: so the interpreter runs them. At their places in a program
(`placed_function`) the copy is in oneDNN's own layout, a tensor without strides, which only the products there read; a
kept function makes it once. Uses the private ops `mkldnn::*` of torch builds with oneDNN, and `mkl::*`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch

from ..machines.libraries import LSTM, MKL

_NAMESPACE = "inductile"
_LIBRARY = torch.library.Library(_NAMESPACE, "FRAGMENT")
_WINDOW = "int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups"
_LIBRARY.define("packed_matrix(Tensor matrix, int rows) -> Tensor")
_LIBRARY.define(f"packed_filter(Tensor weight, {_WINDOW}, int[] size) -> Tensor")
_LIBRARY.define("packed_product(Tensor x, Tensor matrix, Tensor? bias) -> Tensor")
_LIBRARY.define("mkl_matrix(Tensor matrix, int rows) -> Tensor")
_LIBRARY.define("mkl_product(Tensor x, Tensor packed, Tensor matrix, Tensor? bias) -> Tensor")
_AND_THEN = "str activation, Tensor? other, Tensor? finite"
_LIBRARY.define(f"packed_convolution(Tensor x, Tensor weight, Tensor? bias, {_WINDOW}, {_AND_THEN}) -> Tensor")
_WRITTEN = _AND_THEN.replace("Tensor? other", "Tensor(a!) other")
_LIBRARY.define(f"packed_convolution_(Tensor x, Tensor weight, Tensor? bias, {_WINDOW}, {_WRITTEN}) -> Tensor")
_LAYER = "int hidden_size, bool reverse, bool has_biases, bool batch_first"
_LIBRARY.define(f"packed_recurrent_matrices(Tensor inputs, Tensor hidden, {_LAYER}) -> (Tensor, Tensor)")
_LIBRARY.define(
    "packed_lstm(Tensor x, Tensor inputs, Tensor hidden, Tensor bias, Tensor hidden_bias, Tensor state, Tensor cell, "
    f"{_LAYER}) -> (Tensor, Tensor, Tensor)"
)


@cache
def packed_elements() -> tuple[str, ...]:
    """The elements of weights that oneDNN can arrange on this machine, by their names in the IR, and MKL if it can."""
    names = (
        "_linear_pointwise", "_reorder_linear_weight", "_convolution_pointwise", "_reorder_convolution_weight",
        "_convolution_transpose_pointwise", "_reorder_convolution_transpose_weight", "_reorder_mkldnn_rnn_layer_weight",
        "_convolution_pointwise_",
    )  # fmt: skip
    known = all(torch._C._jit_get_schemas_for_operator(f"mkldnn::{name}") for name in names)
    if not known or not torch.backends.mkldnn.is_available():
        return ()
    ops = torch.ops.mkldnn
    supported = {"f32": lambda: True, "bf16": ops._is_mkldnn_bf16_supported, "f16": ops._is_mkldnn_fp16_supported}
    found = [name for name, ask in supported.items() if ask()]
    packs = all(
        torch._C._jit_get_schemas_for_operator(f"mkl::{n}") for n in ("_mkl_linear", "_mkl_reorder_linear_weight")
    )
    return (*found, MKL) if packs and torch.backends.mkl.is_available() else tuple(found)


_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda y: y,
    "relu": torch.relu,
    "hardswish": torch.nn.functional.hardswish,
    "swish": torch.nn.functional.silu,
}


def _matrix(matrix: torch.Tensor, rows: int) -> torch.Tensor:
    return matrix.clone()


def _filter(weight: torch.Tensor, *window: Any) -> torch.Tensor:
    return weight.clone()


def _product(x: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return torch.mm(x, matrix) if bias is None else torch.addmm(bias, x, matrix)


def _mkl_product(
    x: torch.Tensor, packed: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    return _product(x, matrix, bias)


def _convolution(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, activation: str,
    other: torch.Tensor | None, finite: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    made = torch.ops.aten.convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    made = _ACTIVATIONS[activation](made if other is None else made + other)
    return made.movedim(1, -1).contiguous().movedim(-1, 1)


def _recurrent_matrices(inputs: torch.Tensor, hidden: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return inputs.clone(), hidden.clone()


def _lstm(
    x: torch.Tensor, inputs: torch.Tensor, hidden: torch.Tensor, bias: torch.Tensor, hidden_bias: torch.Tensor,
    state: torch.Tensor, cell: torch.Tensor, hidden_size: int, reverse: bool, has_biases: bool, batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """One layer in one direction; a workspace is training's alone."""
    how = (reverse, [], LSTM, hidden_size, 1, has_biases, False, batch_first, False)
    layer = torch.ops.aten.mkldnn_rnn_layer.default
    return layer(x, inputs, hidden, bias, hidden_bias, state, cell, *how)[:3]


@cache
def _entry(packet: str, overload: str) -> Callable[..., torch.Tensor]:
    """What an op of oneDNN calls: its frame and the look-ups of its name take 1.5 us, of 25 for a small convolution.

    Uses `_op` of an `OpOverload`.
    """
    return getattr(getattr(torch.ops.mkldnn, packet), overload)._op


def pack_recurrent_matrices(
    inputs: torch.Tensor, hidden: torch.Tensor, hidden_size: int, reverse: bool, has_biases: bool, batch_first: bool
) -> Sequence[torch.Tensor]:
    """The matrices of a layer of an LSTM as oneDNN reads them; `mkldnn_rnn_layer` takes either."""
    pack = torch.ops.mkldnn._reorder_mkldnn_rnn_layer_weight.default
    return pack(inputs, hidden, hidden_size, reverse, has_biases, batch_first)


def pack_matrix(matrix: torch.Tensor, rows: int) -> torch.Tensor:
    """The right operand of a product as oneDNN reads it."""
    return torch.ops.mkldnn._reorder_linear_weight.default(matrix.t(), rows)


_LINES = 3
"""Dimensions of a batch of images of one dimension with channels."""


def pack_filter(
    weight: torch.Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int, size: Sequence[int],
) -> torch.Tensor:  # fmt: skip
    """The weight of a convolution as oneDNN reads it, of a line as that of an image of one row."""
    if weight.dim() == _LINES:
        weight, size = weight.unsqueeze(2), (*size[:2], 1, size[2])
        stride, padding, dilation, output_padding = (1, *stride), (0, *padding), (1, *dilation), (0, *output_padding)
    if transposed:
        pack = torch.ops.mkldnn._reorder_convolution_transpose_weight.default
        return pack(weight, padding, output_padding, stride, dilation, groups, size)
    return torch.ops.mkldnn._reorder_convolution_weight.default(weight, padding, stride, dilation, groups, size)


def multiply_packed(x: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """A product with what `pack_matrix` made."""
    return _entry("_linear_pointwise", "default")(x, matrix, bias, "none", [], "")


def pack_for_mkl(matrix: torch.Tensor, rows: int) -> torch.Tensor:
    """The right operand of a product as MKL reads it for so many rows."""
    return torch.ops.mkl._mkl_reorder_linear_weight.default(matrix.t(), rows)


def multiply_by_mkl(
    x: torch.Tensor, packed: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """A product with what `pack_for_mkl` made of a matrix."""
    return torch.ops.mkl._mkl_linear.default(x, packed, matrix.t(), bias, x.shape[0])


def convolve_packed(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, activation: str = "none",
    other: torch.Tensor | None = None, finite: torch.Tensor | None = None, *, writes: bool = False,
) -> torch.Tensor:  # fmt: skip
    """A convolution with what `pack_filter` made; channels last. It `writes` over what it adds, or does not."""
    if finite is not None and not finite.item():  # the library's relu makes 0 of NaN
        window = (stride, padding, dilation, transposed, output_padding, groups)
        return convolve_packed(x, weight, bias, *window, "none", other, writes=writes).relu_()
    if x.dim() == _LINES:
        window = ((1, *stride), (0, *padding), (1, *dilation), transposed, (0, *output_padding), groups)
        other = None if other is None else other.unsqueeze(2)
        how = (activation, other, finite)
        return convolve_packed(x.unsqueeze(2), weight, bias, *window, *how, writes=writes).squeeze(2)
    if transposed:
        call = _entry("_convolution_transpose_pointwise", "default")
        return call(x, weight, bias, padding, output_padding, stride, dilation, groups, activation, [], "")
    window = (padding, stride, dilation, groups)
    if other is None:
        return _entry("_convolution_pointwise", "default")(x, weight, bias, *window, activation, [], "")
    how = ("add", 1.0, None if activation == "none" else activation, [], "")
    if writes and other.is_contiguous(memory_format=_LAST[other.dim()]):
        return _entry("_convolution_pointwise_", "binary")(other, x, weight, bias, *window, *how)
    return _entry("_convolution_pointwise", "binary")(x, other, weight, bias, *window, *how)


_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
"""Dimensions of images -> their layout with channels last."""


def _fake_mkl_product(
    x: torch.Tensor, packed: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    return _fake_product(x, matrix, bias)


def _fake_product(x: torch.Tensor, matrix: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return x.new_empty((x.shape[0], matrix.shape[1]))


def _fake_lstm(
    x: torch.Tensor, inputs: torch.Tensor, hidden: torch.Tensor, bias: torch.Tensor, hidden_bias: torch.Tensor,
    state: torch.Tensor, cell: torch.Tensor, hidden_size: int, *how: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    shape = (*x.shape[:2], hidden_size)
    return x.new_empty(shape), torch.empty_like(state), torch.empty_like(cell)


for _name, _function, _fake in (
    ("packed_matrix", _matrix, _matrix),
    ("packed_filter", _filter, _filter),
    ("packed_product", _product, _fake_product),
    ("packed_convolution", _convolution, _convolution),
    ("packed_convolution_", _convolution, _convolution),
    ("packed_recurrent_matrices", _recurrent_matrices, _recurrent_matrices),
    ("packed_lstm", _lstm, _fake_lstm),
    ("mkl_matrix", _matrix, _matrix),
    ("mkl_product", _mkl_product, _fake_mkl_product),
):
    _LIBRARY.impl(_name, _function, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{_NAMESPACE}::{_name}", _fake, lib=_LIBRARY)

_PLACED: dict[str, Callable[..., Any]] = {
    "inductile::packed_matrix": pack_matrix,
    "inductile::packed_filter": pack_filter,
    "inductile::packed_product": multiply_packed,
    "inductile::packed_convolution": convolve_packed,
    "inductile::packed_convolution_": partial(convolve_packed, writes=True),
    "inductile::packed_recurrent_matrices": pack_recurrent_matrices,
    "inductile::packed_lstm": _lstm,
    "inductile::mkl_matrix": pack_for_mkl,
    "inductile::mkl_product": multiply_by_mkl,
}


def placed_function(name: str) -> Callable[..., Any] | None:
    """What runs one of the operators at a place of a program; None for other names."""
    return _PLACED.get(name)
