"""Element types of results, where an op's arguments say them."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ComplexType
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
    expected = _expected(op)
    if expected is None or not isinstance(type_, TensorType) or type_.element == expected:
        return None
    return f"result 0 holds {torch_name(expected)}, and not {torch_name(type_.element)}"


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
