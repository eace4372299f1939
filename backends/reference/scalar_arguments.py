"""Which number an ATen op makes of a Python float, for runs that compute in float64.

In its own precision an op converts a float argument to the dtype of its tensors, or to float32 where it computes
f16 and bf16 in float32. That rounding is a part of what the program says, unlike the rounding of results.
"""

from __future__ import annotations

import torch
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute

from ...dialects.aten import AtenOp, TensorType
from .precision import torch_dtype

#: packets that convert their numbers to the dtype of their tensors first; measured on bf16 against float32
_CONVERTED = frozenset({
    "add", "sub", "rsub", "fmod", "remainder", "eq", "ne", "lt", "le", "gt", "ge", "where", "clamp", "clamp_min",
    "clamp_max", "hardtanh", "threshold", "masked_fill", "fill", "full", "full_like", "new_full", "index_fill",
    "scatter", "constant_pad_nd", "maximum", "minimum",
})  # fmt: skip

_NARROW = (Float16Type, BFloat16Type, Float32Type)


def rounded(op: AtenOp, name: str, value: float) -> float:
    """The argument `name` of an op as its own precision sees it."""
    element = _element(op)
    if not isinstance(element, _NARROW):
        return value
    converted = op.packet in _CONVERTED and name != "alpha"
    return torch.tensor(value, dtype=torch_dtype(element) if converted else torch.float32).item()


def limits(op: AtenOp) -> dict[str, float]:
    """What `nan_to_num` puts in place of infinities where it does not say: the limits of its own type."""
    element = _element(op)
    if op.packet != "nan_to_num" or element is None:
        return {}
    of_type = torch.finfo(torch_dtype(element))
    return {"posinf": of_type.max, "neginf": of_type.min}


def _element(op: AtenOp) -> Attribute | None:
    """Element type of the first float tensor that an op reads, or else of its result."""
    types = [v.type for v in op.operands] + [r.type for r in op.results]
    return next((t.element for t in types if isinstance(t, TensorType) and isinstance(t.element, _NARROW)), None)
