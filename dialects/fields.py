"""Definitions of ops that are fast to ask: fields are read straight from where xDSL keeps them.

The accessors that xDSL 0.75 gives a class find out at each access what kind of field they are of: `op.source` is five
calls of Python, and passes read fields more often than they do anything else. `op_definition` is `irdl_op_definition`
with accessors that know it beforehand; they give the same. What they read is private, which the pinned version of xDSL
and a test against its own accessors make safe.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, TypeVar

from xdsl.ir import SSAValues
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, OpDef, irdl_op_definition
from xdsl.irdl.operations import (
    BeforeVariadicSingleAccessor,
    OptionalAttrAccessor,
    OptionalPropertyAccessor,
    PropertyAccessor,
    SameOptionalAccessor,
    SingleAttrAccessor,
    UniqueVariadicAccessor,
    VariadicAttrAccessor,
    VarIRConstruct,
)

from . import plain_classes  # noqa: F401 - before classes derive from those of xDSL
from .definitions import Holds, check_of
from .fast_create import create_op

OpT = TypeVar("OpT", bound=IRDLOperation)
_item = tuple.__getitem__  # that of xDSL's tuples of values is a call of Python
_BEGINS: dict[tuple[bytes, int], tuple[int, ...]] = {}
"""Where each group of operands begins and the last one ends, by the bytes of their sizes and the width of one."""


def op_definition(cls: type[OpT]) -> type[OpT]:
    """`irdl_op_definition` with such accessors, and a `create` that is as fast."""
    own_check = getattr(cls, "verify_", None)
    defined = irdl_op_definition(cls)
    defined.verify_ = _verifier(defined.get_irdl_definition(), own_check)  # pyright: ignore[reportAttributeAccessIssue]
    if "create" not in vars(defined):
        defined.create = classmethod(create_op)  # pyright: ignore[reportAttributeAccessIssue]
    for name, accessor in list(vars(defined).items()):
        make = _MAKERS.get(type(accessor))
        made = None if make is None else make(accessor)
        if made is not None:
            setattr(defined, name, made)
    return defined


def _verifier(definition: OpDef, own_check: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """What verifies an op: its definition, by a fast check where that holds, then what its class says."""
    made: list[Holds | None] = []

    def verify_(op: Any) -> None:
        if not made:
            made.append(check_of(definition))
        holds = made[0]
        if holds is None or not holds(op):
            definition.verify(op)
        if own_check is not None:
            own_check(op)

    return verify_


def _single(accessor: BeforeVariadicSingleAccessor) -> property | None:
    idx = accessor.idx
    if accessor.construct is VarIRConstruct.OPERAND:
        return property(lambda op: _item(op._operands, idx))
    if accessor.construct is VarIRConstruct.RESULT:
        return property(lambda op: _item(op.results, idx))
    return property(lambda op: op.regions[idx]) if accessor.construct is VarIRConstruct.REGION else None


def _unique_variadic(accessor: UniqueVariadicAccessor) -> property | None:
    idx, others = accessor.idx, accessor.num_defs - 1
    if accessor.construct is VarIRConstruct.OPERAND:
        return property(lambda op: SSAValues(_item(op._operands, slice(idx, idx + len(op._operands) - others))))
    if accessor.construct is VarIRConstruct.RESULT:
        return property(lambda op: SSAValues(_item(op.results, slice(idx, idx + len(op.results) - others))))
    return None


def _optional(accessor: SameOptionalAccessor) -> property | None:
    idx, count = accessor.idx, accessor.num_defs
    if accessor.construct is not VarIRConstruct.REGION:
        return None
    return property(lambda op: op.regions[idx] if len(op.regions) == count else None)


def _begins(op: Any) -> tuple[int, ...]:
    sizes = op.properties[AttrSizedOperandSegments.attribute_name]
    key = sizes.data.data, sizes.elt_type.width.data
    found = _BEGINS.get(key)
    if found is None:
        found = _BEGINS[key] = (0, *accumulate(sizes.get_values()))
    return found


_SizedAccessor = SingleAttrAccessor | OptionalAttrAccessor | VariadicAttrAccessor


def _is_known(accessor: _SizedAccessor) -> bool:
    is_operand = accessor.construct is VarIRConstruct.OPERAND
    return is_operand and isinstance(accessor.option, AttrSizedOperandSegments) and accessor.option.as_property


def _sized_single(accessor: SingleAttrAccessor) -> property | None:
    idx = accessor.idx
    return property(lambda op: _item(op._operands, _begins(op)[idx])) if _is_known(accessor) else None


def _sized_optional(accessor: OptionalAttrAccessor) -> property | None:
    idx = accessor.idx

    def read(op: Any) -> Any:
        begins = _begins(op)
        return None if begins[idx] == begins[idx + 1] else _item(op._operands, begins[idx])

    return property(read) if _is_known(accessor) else None


def _sized_variadic(accessor: VariadicAttrAccessor) -> property | None:
    idx = accessor.idx

    def read(op: Any) -> Any:
        begins = _begins(op)
        return SSAValues(_item(op._operands, slice(begins[idx], begins[idx + 1])))

    return property(read) if _is_known(accessor) else None


def _property(accessor: PropertyAccessor) -> property:
    name = accessor.property_name

    def write(op: Any, value: Any) -> None:
        op.properties[name] = value

    return property(lambda op: op.properties[name], write)


def _optional_property(accessor: OptionalPropertyAccessor) -> property:
    name, default = accessor.property_name, accessor.default_value

    def write(op: Any, value: Any) -> None:
        if value is None:
            op.properties.pop(name, None)
        else:
            op.properties[name] = value

    return property(lambda op: op.properties.get(name, default), write)


_MAKERS: dict[type, Callable[[Any], property | None]] = {
    BeforeVariadicSingleAccessor: _single,
    UniqueVariadicAccessor: _unique_variadic,
    SameOptionalAccessor: _optional,
    SingleAttrAccessor: _sized_single,
    OptionalAttrAccessor: _sized_optional,
    VariadicAttrAccessor: _sized_variadic,
    PropertyAccessor: _property,
    OptionalPropertyAccessor: _optional_property,
}
