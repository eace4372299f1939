"""Ops of the host level that own memory: allocations, views and the ends of lives."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..access import parse_ssa
from ..assembly import EXPR, NUMBER, AssemblyOp, Part, Read, clause, flag, operand, operands, prop, types
from ..aten.types import TensorType
from ..fields import op_definition
from ..sym import SymAttr


def _read_pool(parser: Parser, into: Read) -> None:
    if parser.parse_optional_keyword("in") is not None:
        into.operands["pool"] = (parse_ssa(parser),)
        parser.parse_keyword("at")
        into.properties["offset"] = EXPR.read(parser)


def _print_pool(printer: Printer, op: EmptyOp) -> None:
    if op.offset is not None:
        printer.print_string(" in ")
        printer.print_ssa_value(op.pool[0])
        printer.print_string(f" at {op.offset.data}")


@op_definition
class EmptyOp(AssemblyOp):
    """Allocate a tensor of undefined content: `%y = host.empty : T`.

    After `host-plan-memory` one that lives in the function's pool says where, in bytes:
    `host.empty in %pool at 4096*s0 : T`. With `place 3` behind the offset it is the tensor of place 3, as all that says
    so: `host-share-places` numbers them. A pool that is `kept`, `host.empty kept : T`, is memory that the program keeps
    between calls; while a call uses it no other does.
    """

    name = "host.empty"
    pool = var_operand_def()
    offset = opt_prop_def(SymAttr)
    kept = opt_prop_def(UnitAttr)
    place = opt_prop_def(IntegerAttr)
    out = result_def(base(TensorType))
    SYNTAX: ClassVar = (flag("kept"), Part(_read_pool, _print_pool), clause("place", NUMBER), types())

    @staticmethod
    def of(
        result_type: Attribute,
        pool: SSAValue | None = None,
        offset: SymAttr | None = None,
        location: LocationAttr | None = None,
        kept: bool = False,
    ) -> EmptyOp:
        """Build from the result type and, for a planned one, the pool and its offset in bytes."""
        properties: dict[str, Attribute] = {} if offset is None else {"offset": offset}
        if kept:
            properties["kept"] = UnitAttr()
        return EmptyOp.create(
            operands=() if pool is None else (pool,),
            properties=properties,
            result_types=(result_type,),
            location=location,
        )

    def verify_(self) -> None:
        """Check that pool and offset come together, on one device; what lies in a pool is not kept by itself."""
        if self.kept is not None and self.offset is not None:
            raise VerifyException("a planned tensor is kept with its pool")
        if (len(self.pool) == 1) != (self.offset is not None):
            raise VerifyException("a planned tensor has one pool and an offset")
        for pool in self.pool:
            _check_device(pool, self.out)


@op_definition
class ViewOp(AssemblyOp):
    """Other sizes and strides over the same memory, nothing moves: `%v = host.view %x offset 4*s0 : T`.

    The offset is in elements of the result, from the first element of the source. One of planned memory may have the
    number of a place of the pool, as planned memory has: `host.view %a offset 0 place 3 : T`.
    """

    name = "host.view"
    source = operand_def(base(TensorType))
    offset = prop_def(SymAttr)
    place = opt_prop_def(IntegerAttr)
    out = result_def(base(TensorType))
    SYNTAX: ClassVar = (operand("source"), prop("offset", EXPR, "offset"), clause("place", NUMBER), types())

    @staticmethod
    def of(source: SSAValue, offset: SymAttr, result_type: Attribute, location: LocationAttr | None = None) -> ViewOp:
        """Build from the source, the offset in elements, and a type that gives sizes and strides."""
        return ViewOp.create(
            operands=(source,), properties={"offset": offset}, result_types=(result_type,), location=location
        )

    def verify_(self) -> None:
        """Check that it is on the device of its source."""
        _check_device(self.source, self.out)


def _check_device(memory: SSAValue, value: SSAValue) -> None:
    kinds = (memory.type, value.type)
    devices = [kind.device for kind in kinds if isinstance(kind, TensorType)]
    if len(set(devices)) > 1:
        raise VerifyException(f"a tensor on {devices[1]} does not lie in memory on {devices[0]}")


@op_definition
class FreeOp(AssemblyOp):
    """End the life of values on the host, after their last use: `host.free %a, %b`."""

    name = "host.free"
    values = var_operand_def()
    SYNTAX: ClassVar = (operands("values"),)
