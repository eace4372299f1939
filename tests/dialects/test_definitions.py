"""Fast checks of definitions hold where xDSL's do, and what fails is told as xDSL tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import StringAttr, f32, i1, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Region
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
from xdsl.utils.exceptions import VerifyException

from inductile.dialects import fields
from inductile.dialects.access import segments
from inductile.dialects.definitions import check_of
from inductile.dialects.host import Host
from inductile.dialects.kernel import Kernel
from inductile.dialects.loop import Loop
from inductile.dialects.scalar import Scalar


class _Sized(IRDLOperation):
    name = "test.sized"
    first = operand_def(f32)
    maybe = opt_operand_def(i1)
    many = var_operand_def()
    out = result_def()
    text = prop_def(StringAttr)
    note = opt_prop_def(StringAttr)
    body = region_def("single_block")
    other = opt_region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


class _Plain(IRDLOperation):
    name = "test.plain"
    first = operand_def(f32)
    rest = var_operand_def(i32)
    outs = var_result_def()


def _pair(cls: type[IRDLOperation]) -> list[type[IRDLOperation]]:
    return [make(type(cls.__name__, (IRDLOperation,), dict(vars(cls)))) for make in _MAKERS]


_MAKERS: tuple[Callable[[Any], Any], ...] = (irdl_op_definition, fields.op_definition)
_VALUES = TestOp(result_types=[f32, i1, i32, i32]).results


def _problems(cls: type[IRDLOperation], **parts: Any) -> tuple[str, str]:
    """What xDSL's check and ours say of an op; nothing where it is valid."""
    found: list[str] = []
    for each in _pair(cls):
        regions = [Region(Block()) for _ in range(parts.get("regions", 0))]
        op = each.create(**{**parts, "regions": regions})
        try:
            op.verify_()
        except VerifyException as error:
            found.append(str(error))
        else:
            found.append("")
    return found[0], found[1]


_GOOD = {"operands": _VALUES[:3], "result_types": [f32], "regions": 1}
_TEXT = {"text": StringAttr("a"), "operandSegmentSizes": segments(1, 1, 1)}


@pytest.mark.parametrize(
    ("changed", "properties", "is_valid"),
    [
        ({}, {}, True),
        ({"operands": _VALUES[:1], "regions": 2}, {"operandSegmentSizes": segments(1, 0, 0)}, True),
        ({"operands": _VALUES}, {"operandSegmentSizes": segments(1, 1, 2)}, True),
        ({}, {"note": StringAttr("b")}, True),
        ({}, {"operandSegmentSizes": segments(1, 0, 1)}, False),
        ({}, {"operandSegmentSizes": segments(1, 2, 0)}, False),
        ({}, {"operandSegmentSizes": segments(1, 1)}, False),
        ({}, {"operandSegmentSizes": StringAttr("1, 1, 1")}, False),
        ({"operands": [_VALUES[1], _VALUES[1], _VALUES[2]]}, {}, False),
        ({"operands": [_VALUES[0], _VALUES[2], _VALUES[2]]}, {}, False),
        ({"result_types": []}, {}, False),
        ({"result_types": [f32, f32]}, {}, False),
        ({"regions": 0}, {}, False),
        ({"regions": 3}, {}, False),
        ({}, {"note": f32}, False),
        ({}, {"more": f32}, False),
    ],
)
def test_sized_groups(changed: dict[str, Any], properties: dict[str, Any], is_valid: bool) -> None:
    own, ours = _problems(_Sized, **{**_GOOD, **changed, "properties": {**_TEXT, **properties}})
    assert own == ours and (not own) == is_valid


def test_a_property_that_is_missing() -> None:
    own, ours = _problems(_Sized, **_GOOD, properties={"operandSegmentSizes": segments(1, 1, 1)})
    assert own == ours and "'text' expected" in own


@pytest.mark.parametrize(
    ("operands", "is_valid"), [([0], True), ([0, 2, 3], True), ([], False), ([1], False), ([0, 1], False)]
)
def test_groups_of_which_one_varies(operands: list[int], is_valid: bool) -> None:
    own, ours = _problems(_Plain, operands=[_VALUES[n] for n in operands], result_types=[f32, i1])
    assert own == ours and (not own) == is_valid


def test_most_definitions_have_a_fast_check() -> None:
    classes = [cls for dialect in (Host, Kernel, Loop, Scalar) for cls in dialect.operations]
    slow = [cls.name for cls in classes if check_of(cls.get_irdl_definition()) is None]  # pyright: ignore
    assert set(slow) <= {"host.func", "kernel.func"}, slow
