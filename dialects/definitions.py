"""What definitions of ops say, as checks that are fast where they hold.

xDSL 0.75 goes through a definition with generic code: a load of kernels takes a fifth of a millisecond. `holds` is made
once a class and answers whether an op is as its definition says, for constraints that name a class or an attribute. It
finds no faults: where it says no, or where a definition says more, xDSL's own check decides and tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AnyAttr, AttrSizedOperandSegments, BaseAttr, EqAttrConstraint, OpDef, RangeOf
from xdsl.irdl.constraints import EqIntConstraint, RangeConstraint, RangeLengthConstraint, VerificationContext
from xdsl.irdl.operations import (
    OperandDef,
    OptionalDef,
    OptPropertyDef,
    OptSingleBlockRegionDef,
    SingleBlockRegionDef,
    VariadicDef,
)
from xdsl.traits import OpTrait

Holds = Callable[[Any], bool]
_Range = tuple[int, int, Callable[[Attribute], bool] | None]
"""How many values a group has, from and to, and what each type has to be."""
_MANY = 1 << 30


class _OtherError(Exception):
    """A definition says something that is not known here."""


def check_of(definition: OpDef) -> Holds | None:
    """The check of a definition; None where xDSL's has to be asked each time."""
    try:
        return _check_of(definition)
    except _OtherError:
        return None


def _check_of(definition: OpDef) -> Holds:
    sized = [option for option in definition.options if isinstance(option, AttrSizedOperandSegments)]
    if len(sized) < len(definition.options) or not all(option.as_property for option in sized):
        raise _OtherError
    if definition.successors or definition.attributes:
        raise _OtherError
    operands, results = (_ranges(each) for each in (definition.operands, definition.results))
    least, most = _blocks(definition.regions)
    properties = {name: (isinstance(each, OptPropertyDef), each.constr) for name, each in definition.properties.items()}
    needed = {name for name, (optional, _) in properties.items() if not optional}
    traits = [trait for trait in definition.traits if type(trait).verify is not OpTrait.verify]

    def holds(op: Operation) -> bool:
        sizes = _sizes_of(op, len(operands)) if sized else _split(operands, len(op.operands))
        if sizes is None or not _fit(operands, sizes, [each.type for each in op.operands]):
            return False
        sizes = _split(results, len(op.results))
        if sizes is None or not _fit(results, sizes, [each.type for each in op.results]):
            return False
        if op.successors or not least <= len(op.regions) <= most:
            return False
        if any(len(region.blocks) != 1 for region in op.regions) or not op.properties.keys() >= needed:
            return False
        for name, value in op.properties.items():
            known = properties.get(name)
            if known is None:
                return False
            if type(known[1]) is not BaseAttr or not isinstance(value, known[1].attr):
                known[1].verify(value, VerificationContext())
        for trait in traits:
            trait.verify(op)
        return True

    return holds


def _ranges(definitions: Sequence[tuple[str, Any]]) -> list[_Range]:
    return [_range(each) for _, each in definitions]


def _range(definition: OperandDef | Any) -> _Range:
    constraint: RangeConstraint[Any] = definition.constr
    if not isinstance(definition, VariadicDef):
        if not isinstance(constraint, RangeLengthConstraint) or constraint.length != EqIntConstraint(1):
            raise _OtherError
        return 1, 1, _element(constraint.constraint)
    return 0, 1 if isinstance(definition, OptionalDef) else _MANY, _element(constraint)


def _element(constraint: RangeConstraint[Any]) -> Callable[[Attribute], bool] | None:
    """What each type of a group has to be; None for anything."""
    each = constraint.constr if isinstance(constraint, RangeOf) else None
    if isinstance(each, AnyAttr):
        return None
    if isinstance(each, BaseAttr):
        kind = each.attr
        return lambda attribute: isinstance(attribute, kind)
    if isinstance(each, EqAttrConstraint):
        wanted = each.attr
        return lambda attribute: attribute == wanted
    raise _OtherError


def _blocks(regions: Sequence[tuple[str, Any]]) -> tuple[int, int]:
    """How many regions an op has, each of one block, whatever its arguments are."""
    kinds = [type(each) for _, each in regions]
    known = all(kind in (SingleBlockRegionDef, OptSingleBlockRegionDef) for kind in kinds)
    optional = kinds.count(OptSingleBlockRegionDef)
    if not known or optional > 1 or any(each.entry_args != RangeOf(AnyAttr()) for _, each in regions):
        raise _OtherError
    return len(kinds) - optional, len(kinds)


def _sizes_of(op: Operation, count: int) -> list[int] | None:
    """The sizes of the groups of operands as the op spells them."""
    spelled = op.properties.get(AttrSizedOperandSegments.attribute_name)
    if not isinstance(spelled, DenseArrayBase) or spelled.elt_type != i32:
        return None
    sizes = list(spelled.get_values())
    return sizes if len(sizes) == count and sum(sizes) == len(op.operands) else None  # pyright: ignore


def _split(groups: Sequence[_Range], length: int) -> list[int] | None:
    """The sizes of groups of which at most one varies; None where the values are too many, too few, or ambiguous."""
    varying = [number for number, (least, most, _) in enumerate(groups) if least != most]
    if len(varying) > 1:
        return None
    sizes = [1] * len(groups)
    if varying:
        sizes[varying[0]] = length - len(groups) + 1
    return sizes if sum(sizes) == length and min(sizes, default=0) >= 0 else None


def _fit(groups: Sequence[_Range], sizes: Sequence[int], types: Sequence[Attribute]) -> bool:
    begins = accumulate(sizes, initial=0)
    for (least, most, is_right), size, begin in zip(groups, sizes, begins, strict=False):
        if not least <= size <= most:
            return False
        if is_right is not None and not all(map(is_right, types[begin : begin + size])):
            return False
    return True
