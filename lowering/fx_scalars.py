"""Numbers in tensor arguments: FX writes `add.Tensor(x, 1)` where eager wraps the number in a tensor.

Such a call becomes the overload of the packet that takes a number there (`add.Scalar`), which computes the same. Where
there is none, the number becomes a 0-d tensor of the type that promotion gives.
"""

from __future__ import annotations

from functools import cache

from ..dialects.aten import AtenOp, op_class
from ..dialects.aten.schema import Schema
from ..dialects.aten.table import overloads_of, schema_of


@cache
def scalar_overload(name: str, numbers: frozenset[str]) -> type[AtenOp] | None:
    """The class of the overload that takes numbers for the tensor arguments `numbers` of `name` ("add.Tensor").

    All other arguments must be the same by name and kind. None when the packet has no such overload.
    """
    schema = schema_of(name)
    if schema is None:
        return None
    for other in overloads_of(schema.packet):
        candidate = schema_of(other)
        if candidate is not None and _takes_numbers(schema, candidate, numbers):
            found = op_class(f"aten.{other}")
            assert found is not None and issubclass(found, AtenOp)
            return found
    return None


def _takes_numbers(schema: Schema, other: Schema, numbers: frozenset[str]) -> bool:
    if len(schema.arguments) != len(other.arguments):
        return False
    for argument, candidate in zip(schema.arguments, other.arguments, strict=True):
        kind = "scalar" if argument.name in numbers else argument.kind
        if (argument.name, kind, argument.is_list) != (candidate.name, candidate.kind, candidate.is_list):
            return False
    return True
