"""What eager's kernels refuse, though the op's meta function takes it: an ATen call says so.

Only what a kernel of ours would take needs an entry. One too many costs a call, never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute

from ...dialects.aten.ops import AtenOp
from ...dialects.aten.types import ELEMENT_TYPES, TensorType, torch_name
from .dtypes import BOOL, F16, U8, integer_limits, is_float, is_integer

#: unsigned integers for which torch has few kernels
_WIDE_UNSIGNED = frozenset(ELEMENT_TYPES[name] for name in ("uint16", "uint32", "uint64"))

#: packets with kernels for them; so have those whose result is a float, to which the operands are converted first
_OF_WIDE_UNSIGNED = frozenset({
    "_to_copy", "all", "any", "bitwise_and", "bitwise_or", "bitwise_xor", "cat", "clone", "constant_pad_nd", "copy",
    "cumsum", "embedding", "eq", "fill", "flip", "full", "full_like", "gather", "index", "index_select", "isclose",
    "isnan", "lift_fresh_copy", "mul", "ne", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "prod",
    "repeat", "roll", "scalar_tensor", "scatter", "select_scatter", "slice_scatter", "stack", "sum", "where", "zero",
    "zeros", "zeros_like",
})  # fmt: skip

#: those of them whose operands are promoted to one type, which torch does not for wide unsigned integers
_PROMOTING = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "eq", "isclose", "mul", "ne"})

Refuses = Callable[[Attribute], bool]


def _all_but_floats(element: Attribute) -> bool:
    return not is_float(element)


def _all_but_floats_and_bytes(element: Attribute) -> bool:
    return not is_float(element) and element != U8


def _bool(element: Attribute) -> bool:
    return element == BOOL


#: packet, or overload, -> the element types of the result that eager's kernel refuses
_RESULTS: dict[str, Refuses] = {
    **dict.fromkeys((
        "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_log_softmax_backward_data", "_prelu_kernel",
        "_softmax_backward_data", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d",
        "adaptive_max_pool3d", "hardshrink", "hypot", "igamma", "igammac", "lerp", "max_pool2d_with_indices_backward",
        "max_pool3d_with_indices_backward", "nextafter", "nll_loss_forward", "nll_loss2d_forward",
        "aten.round.decimals",
    ), _all_but_floats),
    **dict.fromkeys((
        "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_bilinear2d",
        "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_trilinear3d",
    ), _all_but_floats_and_bytes),
    **dict.fromkeys((
        "abs", "addcmul", "ceil", "clamp", "floor", "gcd", "max_pool2d_with_indices", "max_pool3d_with_indices", "pow",
        "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "relu", "round", "threshold", "trunc",
    ), _bool),
    **dict.fromkeys(("gcd", "lcm"), lambda element: not is_integer(element)),
    "avg_pool3d": lambda element: element == F16,
}  # fmt: skip

#: packet -> the element types of any operand that eager's kernel refuses
_OPERANDS: dict[str, Refuses] = {"bucketize": _bool}

#: packet -> arguments that eager converts to the type of the result, where a number out of its range is an error
_NUMBERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("full", "full_like", "new_full"), ("fill_value",)),
    **dict.fromkeys(("fill", "masked_fill", "constant_pad_nd", "index_fill", "scatter", "addcmul"), ("value",)),
    **dict.fromkeys(("add", "sub", "rsub"), ("alpha",)),
    "clamp": ("min", "max"), "clamp_min": ("min",), "clamp_max": ("max",), "hardtanh": ("min_val", "max_val"),
    "scalar_tensor": ("s",), "where": ("self", "other"),
}  # fmt: skip


def refused(op: AtenOp) -> str | None:
    """Why eager's kernel refuses an op that a kernel of ours would take, or None."""
    operands = [value.type.element for value in op.operands if isinstance(value.type, TensorType)]
    results = [value.type.element for value in op.results if isinstance(value.type, TensorType)]
    refuses = _RESULTS.get(op.packet) or _RESULTS.get(op.target)
    if (refuses is not None and refuses(results[0])) or any(map(_OPERANDS.get(op.packet, _none), operands)):
        return f"eager does not compute it of {torch_name(results[0])}"
    numbers = [name for name in _NUMBERS.get(op.packet, ()) if name in op.schema.by_name]
    if numbers and is_integer(results[0]) and not all(_fits(op.arg(name), results[0]) for name in numbers):
        return f"a number is out of the range of {torch_name(results[0])}"
    has_kernels = op.packet in _OF_WIDE_UNSIGNED and (op.packet not in _PROMOTING or len(set(operands)) < 2)
    return None if has_kernels else _few_kernels(operands, results)


def _none(_: Attribute) -> bool:
    return False


def _few_kernels(operands: Sequence[Attribute], results: Sequence[Attribute]) -> str | None:
    if _WIDE_UNSIGNED.isdisjoint((*operands, *results)) or (results and all(map(is_float, results))):
        return None
    return "eager has few kernels of wide unsigned integers"


def _fits(value: Any, element: Attribute) -> bool:
    """Whether a number is in the range of an integer type; so is a tensor, whose elements are cast.

    A negative number wraps in an unsigned type, where its amount is in the range.
    """
    if type(value) not in (int, float):
        return True
    low, high = integer_limits(element)
    return (low or -high) <= value <= high
