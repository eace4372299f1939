"""Fields of ops are read and written as through xDSL's own accessors."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import StringAttr, f32, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from inductile.dialects import fields
from inductile.dialects.access import segments
from inductile.dialects.host import Host
from inductile.dialects.kernel import Kernel
from inductile.dialects.loop import Loop
from inductile.dialects.scalar import Scalar


class _Sized(IRDLOperation):
    name = "test.sized"
    first = operand_def()
    maybe = opt_operand_def()
    many = var_operand_def()
    out = result_def()
    text = prop_def(StringAttr)
    note = opt_prop_def(StringAttr)
    body = region_def()
    other = opt_region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


class _Plain(IRDLOperation):
    name = "test.plain"
    first = operand_def()
    rest = var_operand_def()
    outs = var_result_def()


def _field(op: IRDLOperation, name: str) -> Any:
    return getattr(op, name)


def _set(op: IRDLOperation, name: str, value: Attribute | None) -> None:
    setattr(op, name, value)


def _both(cls: type[IRDLOperation]) -> tuple[type[IRDLOperation], type[IRDLOperation]]:
    copies = [type(cls.__name__, (IRDLOperation,), dict(vars(cls))) for _ in range(2)]
    return irdl_op_definition(copies[0]), fields.op_definition(copies[1])


def test_sized_groups() -> None:
    own, ours = _both(_Sized)
    values = TestOp(result_types=[f32, i32, f32, f32]).results
    for maybe, many, regions in ((0, 0, 1), (1, 0, 1), (0, 2, 2), (1, 2, 2)):
        made = [
            cls.create(
                operands=values[: 1 + maybe + many],
                result_types=[f32],
                properties={"text": StringAttr("a"), "operandSegmentSizes": segments(1, maybe, many)},
                regions=[Region(Block()) for _ in range(regions)],
            )
            for cls in (own, ours)
        ]
        for name in ("first", "maybe", "many", "text", "note"):
            assert getattr(made[1], name) == getattr(made[0], name), (name, maybe, many)
        for op in made:
            assert _field(op, "out") is op.results[0]
            assert _field(op, "body") is op.regions[0]
            assert _field(op, "other") is (op.regions[1] if regions == 2 else None)
            op.verify_()


def test_plain_groups_follow_changes() -> None:
    own, ours = _both(_Plain)
    values = TestOp(result_types=[f32, i32, f32]).results
    made = [cls.create(operands=values[:2], result_types=[f32, i32]) for cls in (own, ours)]
    for op in made:
        op.operands[1] = values[2]
        assert _field(op, "rest") == (values[2],)
        assert _field(op, "rest").types == (f32,)
        op.operands = values
        assert _field(op, "first") is values[0]
        assert _field(op, "rest") == values[1:]
        assert _field(op, "outs") == tuple(op.results)


def test_properties_are_written() -> None:
    _, ours = _both(_Sized)
    op = ours.create(properties={"text": StringAttr("a")}, regions=[Region()])
    _set(op, "text", StringAttr("b"))
    _set(op, "note", StringAttr("c"))
    assert op.properties == {"text": StringAttr("b"), "note": StringAttr("c")}
    _set(op, "note", None)
    assert op.properties == {"text": StringAttr("b")}


def test_all_fields_of_our_ops() -> None:
    for op in (each for dialect in (Host, Kernel, Loop, Scalar) for each in dialect.operations):
        left = [name for name, value in vars(op).items() if type(value).__name__.endswith("Accessor")]
        assert not left, (op.name, left)


def test_isinstance_looks_at_real_subclasses() -> None:
    own, ours = _both(_Sized)
    made = ours.create(properties={"text": StringAttr("a")}, regions=[Region()])
    assert isinstance(made, ours)
    assert isinstance(made, IRDLOperation)
    assert not isinstance(made, own)
    assert not isinstance("text", ours)
    assert issubclass(type("Below", (ours,), {}), ours)
    assert not issubclass(own, ours)
