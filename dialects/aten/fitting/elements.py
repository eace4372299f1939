"""Element types of results, where an op's arguments say them."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ComplexType, IntegerType
from xdsl.ir import Attribute, SSAValue

from ..ops import AtenOp
from ..types import ELEMENT_TYPES, TensorType, torch_name

_FLOATS = frozenset(ELEMENT_TYPES[name] for name in ("float16", "bfloat16", "float32", "float64"))
_BOOL, _I64 = ELEMENT_TYPES["bool"], ELEMENT_TYPES["int64"]
_INDICES = frozenset(ELEMENT_TYPES[name] for name in ("int64", "int32", "uint8", "bool", "int8", "int16"))

#: packets whose first result has the element type of their first tensor
_OF_FIRST = frozenset({
    "_reshape_alias", "_unsafe_view", "alias", "amax", "amin", "clone", "constant_pad_nd", "copy", "cummax", "cummin",
    "detach", "diag_embed", "diagonal", "diagonal_scatter", "embedding", "expand", "fill", "flatten", "flip", "gather",
    "index", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "lift",
    "lift_fresh", "lift_fresh_copy", "masked_fill", "masked_scatter", "permute", "repeat", "reshape", "reshape_as",
    "roll", "scatter", "scatter_add", "scatter_reduce", "select", "select_scatter", "slice", "slice_scatter", "split",
    "split_with_sizes", "squeeze", "t", "take", "transpose", "tril", "triu", "unbind", "unflatten", "unfold",
    "unsafe_split", "unsafe_split_with_sizes", "unsqueeze", "view", "view_as", "zero",
})  # fmt: skip
#: packets that compute truth values
_OF_BOOL = frozenset({
    "_is_all_true", "_is_any_true", "eq", "ge", "gt", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "le", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "ne", "signbit",
})  # fmt: skip
_OF_INDICES = frozenset({"argmax", "argmin", "count_nonzero"})
#: packets that compute floats of whatever they are given
_OF_FLOATS = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "deg2rad", "digamma", "erf", "erfc",
    "erfinv", "exp", "exp2", "expm1", "float_power", "gelu", "hypot", "i0", "igamma", "igammac", "lgamma", "log",
    "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logit", "logsumexp", "mean", "mish", "polygamma", "rad2deg",
    "reciprocal", "rsqrt", "sigmoid", "silu", "sin", "sinc", "sinh", "softplus", "sqrt", "std", "tan", "tanh",
    "true_divide", "var", "xlogy",
})  # fmt: skip
#: packets that take integers and truth values alone
_OF_INTEGERS = frozenset({
    "__and__", "__lshift__", "__or__", "__rshift__", "__xor__", "bitwise_and", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "gcd", "lcm",
})  # fmt: skip
#: pointwise ops whose result is no float of the type of their operands
_OTHER = _OF_BOOL | {"complex", "float_power", "frexp", "ldexp", "polar", "bucketize", "view_as_complex"}


def misfit_of_elements(op: AtenOp) -> str | None:
    """Where the element type of the first result, or of an index, cannot be what it is."""
    for name, element in _operands(op):
        if name in ("mask", "condition") and element not in (_BOOL, ELEMENT_TYPES["uint8"]):
            return f"'{name}' holds {torch_name(element)}, and not bool"
        if name in ("index", "indices") and element not in _INDICES:
            return f"'{name}' holds {torch_name(element)}, which is no index"
    type_ = op.results[0].type if op.results else None
    if not isinstance(type_, TensorType):
        return None
    expected = _expected(op)
    if expected is not None and type_.element != expected:
        return f"result 0 holds {torch_name(expected)}, and not {torch_name(type_.element)}"
    return _misfit_of_kinds(op, type_.element) if expected is None else None


def _kind(element: Attribute) -> int:
    """Truth values are below integers, and these below floats, in what torch promotes to."""
    if isinstance(element, IntegerType):
        return 0 if element.width.data == 1 else 1
    return 2


def _misfit_of_kinds(op: AtenOp, result: Attribute) -> str | None:
    """Where the result is of a lower kind than what it is computed from."""
    kinds = [_kind(element) for _, element in _operands(op)]
    makes_float = (
        op.packet in _OF_FLOATS or op.packet.startswith("special_") or op.schema.name in ("div.Tensor", "div.Scalar")
    )
    if op.packet in _OF_INTEGERS and (2 in kinds or _kind(result) == 2):
        return "it computes of integers and truth values alone"
    promotes = op.schema.is_pointwise and op.packet not in _OTHER and op.packet not in _OF_FIRST
    lowest = 2 if makes_float else max(kinds, default=0) if promotes else 0
    if _kind(result) < lowest:
        return f"result 0 holds {torch_name(result)}, which is less than what it is computed from"
    return None


def _operands(op: AtenOp) -> Iterator[tuple[str, Attribute]]:
    """The tensors of an op: name of the argument, element type."""
    for argument in op.schema.tensors:
        values = op.arg(argument.name)
        for value in values if isinstance(values, tuple) else (values,):
            if isinstance(value, SSAValue) and isinstance(value.type, TensorType):
                yield argument.name, value.type.element


def _expected(op: AtenOp) -> Attribute | None:
    """The element type of the first result, where the arguments say it in a simple way."""
    packet = op.packet.removesuffix("_copy")
    given = op.arg("dtype") if "dtype" in op.schema.by_name else None
    if given is not None:
        return None if isinstance(given, ComplexType) else given  # norms of complex numbers are floats
    if packet in _OF_BOOL:
        return _BOOL
    if packet in _OF_INDICES:
        return _I64
    elements = [element for _, element in _operands(op)]
    if packet in _OF_FIRST and elements and op.schema.overload != "dtype":
        return elements[0]
    if not op.schema.is_pointwise or packet in _OTHER or any(isinstance(each, ComplexType) for each in elements):
        return None
    if any(isinstance(op.arg(each.name), complex) for each in op.schema.arguments if not each.is_tensor):
        return None
    floats = {element for element in elements if element in _FLOATS}
    return floats.pop() if len(floats) == 1 else None
