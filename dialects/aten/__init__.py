"""The aten dialect: one op per ATen overload, generated from a table of schemas, and the tensor type."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Dialect, Operation

from .attributes import ATTRIBUTES
from .call import MUTATES, STARTS, TRITON_KERNEL, UNSAFE, CallOp
from .ops import CHECKED, AtenOp
from .ops import op_class as _overload_class
from .schema import Argument, Return, Schema, SchemaError
from .table import overload_names
from .types import OpaqueDtype, TensorType, element_type, torch_name
from .values import Device, Layout, MemoryFormat, Operator, Reference, Tuple


class AtenDialect(Dialect):
    """The dialect; its op classes are made as they are asked for, so listing them all takes a while."""

    @property
    def operations(self) -> Iterator[type[Operation]]:
        """All op classes."""
        yield CallOp
        for name in overload_names():
            found = _overload_class(f"aten.{name}")
            assert found is not None
            yield found


Aten = AtenDialect("aten", [], [TensorType, OpaqueDtype, *ATTRIBUTES])


def op_class(name: str) -> type[AtenOp] | type[CallOp] | None:
    """Op class of an overload such as `aten.add.Tensor`, or None when there is no such op."""
    return CallOp if name == CallOp.name else _overload_class(name)


__all__ = [
    "CHECKED",
    "MUTATES",
    "STARTS",
    "TRITON_KERNEL",
    "UNSAFE",
    "Argument",
    "Aten",
    "AtenOp",
    "CallOp",
    "Device",
    "Layout",
    "MemoryFormat",
    "OpaqueDtype",
    "Operator",
    "Reference",
    "Return",
    "Schema",
    "SchemaError",
    "TensorType",
    "Tuple",
    "element_type",
    "op_class",
    "torch_name",
]
