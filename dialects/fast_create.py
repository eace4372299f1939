"""Making ops at a quarter of the cost of `Operation.create`.

A graph of a thousand ATen ops becomes some ten thousand ops, and making them is much of the work of a compile.
`Operation.create` goes through a setter for operands and successors, looks up default properties in the op's
definition, and checks names; this does the same assignments directly. It knows fields of xDSL's `Operation` that are
private, which the pinned version of xDSL and a test against `Operation.create` make safe.
"""
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use
from xdsl.ir.core import SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

OpT = TypeVar("OpT", bound=Operation)

_NO_PROPERTIES: dict[str, Attribute] = {}
_DEFAULTS: dict[type[Operation], dict[str, Attribute]] = {}


def _defaults(cls: type[Operation]) -> dict[str, Attribute]:
    """The properties that ops of a class have unless they are given."""
    found: dict[str, Attribute] = {}
    if IRDLOperation in cls.__mro__:  # an abstract class asks all its subclasses before it says no
        for name, definition in cls.get_irdl_definition().properties.items():
            if not isinstance(definition, OptionalDef) and definition.default_value is not None:
                found[name] = definition.default_value
    _DEFAULTS[cls] = found
    return found


def create(
    cls: type[OpT],
    operands: tuple[SSAValue, ...],
    result_types: tuple[Attribute, ...],
    properties: Mapping[str, Attribute] = _NO_PROPERTIES,
    regions: tuple[Region, ...] = (),
    location: LocationAttr | None = None,
) -> OpT:
    """An op as `cls.create` makes it; the regions must have no parent."""
    op = cls.__new__(cls)
    uses: list[Use] = []
    for position, value in enumerate(operands):
        use = Use(op, position)
        value.add_use(use)
        uses.append(use)
    op._operands = SSAValues(operands)
    op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(type_, op, position) for position, type_ in enumerate(result_types)])
    defaults = _DEFAULTS.get(cls)
    op.properties = {**(_defaults(cls) if defaults is None else defaults), **properties}
    op.attributes = {}
    op.location = UNKNOWN_LOC if location is None else location
    op._successors = ()
    op._successor_uses = ()
    op.regions = regions
    for region in regions:
        region.parent = op
    return op


def create_op(
    cls: type[OpT],
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = _NO_PROPERTIES,
    attributes: Mapping[str, Attribute] = _NO_PROPERTIES,
    location: LocationAttr | None = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> OpT:
    """`Operation.create` by `create`; what that does not do is left to xDSL, a region that has a parent as well."""
    if successors or any(region.parent is not None for region in regions):
        return _CREATE(
            cls,
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            location=location,
            successors=successors,
            regions=regions,
        )
    op = create(cls, tuple(operands), tuple(result_types), properties, tuple(regions), location)
    if attributes:
        op.attributes = dict(attributes)
    return op


_CREATE: Callable[..., Any] = vars(Operation)["create"].__func__
