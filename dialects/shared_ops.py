"""Ops that the loop and the kernel level both have: what an index is, what a load reads, how a body ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import I64, IntegerType, LocationAttr, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsTerminator, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .access import segments
from .assembly import DYNAMIC, EXPR, AssemblyOp, Read, operands, prop
from .aten.types import scalar_type
from .sym import MapAttr, SymAttr


class IndexBase(AssemblyOp):
    """An index expression as an i64 value: `4*i0 + d0 (d0 = %j)`."""

    dynamic = var_operand_def(IntegerType)
    expr = prop_def(SymAttr)
    value = result_def(I64)
    traits = traits_def(Pure())
    SYNTAX: ClassVar = (prop("expr", EXPR), DYNAMIC)

    @classmethod
    def result_types_of(cls, read: Read) -> Sequence[Attribute]:
        """An i64."""
        return (i64,)


class YieldBase(AssemblyOp):
    """The end of a body: `%a, %b`."""

    values = var_operand_def()
    traits = traits_def(IsTerminator(), NoMemoryEffect())
    SYNTAX: ClassVar = (operands("values"),)


class LoadBase(AssemblyOp):
    """Read one element of its first operand, perhaps under a mask, with a value for outside."""

    dynamic = var_operand_def(IntegerType)
    mask = opt_operand_def(i1)
    other = opt_operand_def()
    map = prop_def(MapAttr)
    value = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def of(
        cls,
        source: SSAValue,
        index_map: MapAttr,
        dynamic: Sequence[SSAValue] = (),
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
        location: LocationAttr | None = None,
    ) -> Self:
        """Build without the generic builder, which costs twice as much."""
        masked = () if mask is None or other is None else (mask, other)
        n = 1 if masked else 0
        return cls.create(
            operands=(source, *dynamic, *masked),
            result_types=(scalar_type(source.type.element),),  # pyright: ignore
            properties={"map": index_map, "operandSegmentSizes": segments(1, len(dynamic), n, n)},
            location=location,
        )

    @classmethod
    def result_types_of(cls, read: Read) -> tuple[Attribute]:
        """An element of what is read."""
        (source,) = next(iter(read.operands.values()))
        return (scalar_type(source.type.element),)  # pyright: ignore

    def verify_(self) -> None:
        """Check that mask and value for outside come together, and fit."""
        if (self.mask is None) != (self.other is None):
            raise VerifyException("a masked load needs both a mask and a value for outside")
        if self.other is not None and self.other.type != self.value.type:
            raise VerifyException(f"the value for outside is {self.other.type}, not {self.value.type}")
