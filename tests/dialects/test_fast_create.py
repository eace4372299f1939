"""An op that is made fast is the op that xDSL makes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, FloatAttr, IntAttr, StringAttr, f32
from xdsl.ir import Block, Operation, Region

from inductile.dialects import loop
from inductile.dialects.aten import TensorType
from inductile.dialects.fast_create import create
from inductile.dialects.sym import AxesAttr, const

HERE = FileLineColLoc(StringAttr("model.py"), IntAttr(3), IntAttr(1))


def number() -> Operation:
    return arith.ConstantOp.create(result_types=(f32,), properties={"value": FloatAttr(1.0, f32)})


def fields(op: Operation) -> dict[str, Any]:
    """Everything that an op holds, but for what names other objects by identity."""
    hidden = {"_operands", "_operand_uses", "results", "regions", "_successors"}
    return {name: value for name, value in vars(op).items() if name not in hidden}


@pytest.mark.parametrize("location", [None, HERE])
def test_same_fields_uses_and_results(location: FileLineColLoc | None) -> None:
    operand = number().results[0]
    slow = arith.AddfOp.create(operands=(operand, operand), result_types=(f32,), location=location)
    before = operand.uses.get_length()
    fast = create(arith.AddfOp, (operand, operand), (f32,), location=location)
    assert fields(fast) == fields(slow)
    assert fast.location == (location or UNKNOWN_LOC)
    assert tuple(fast.operands) == tuple(slow.operands) and len(fast.successors) == len(slow.successors) == 0
    assert operand.uses.get_length() == before + 2
    assert [(use.operation, use.index) for use in operand.uses][:2] == [(fast, 1), (fast, 0)]
    assert [(r.type, r.op, r.index) for r in fast.results] == [(f32, fast, 0)]
    fast.verify()


def test_operands_can_be_replaced_and_ops_erased() -> None:
    first, second = number(), number()
    fast = create(arith.NegfOp, (first.results[0],), (f32,))
    fast.operands[0] = second.results[0]
    assert first.results[0].first_use is None and second.results[0].has_one_use()
    fast.erase()
    assert second.results[0].first_use is None


def test_regions_belong_to_the_op_and_properties_are_its_own() -> None:
    value = number()
    region = Region(Block([value, loop.YieldOp.create(operands=(value.results[0],))]))
    type_ = TensorType.get((const(3),), f32)
    properties = {"axes": AxesAttr.of(("i0", const(3)))}
    op = create(loop.GenerateOp, (), (type_,), properties, (region,))
    assert region.parent is op and op.body is region
    op.verify()
    op.properties["on"] = loop.axis_names("a0")
    assert "on" not in properties


def test_create_of_our_classes_is_that_of_xdsl() -> None:
    type_ = TensorType.get((const(3),), f32)
    given: dict[str, Any] = {
        "result_types": [type_],
        "properties": {"axes": AxesAttr.of(("i0", const(3)))},
        "attributes": {"mark": StringAttr("here")},
        "location": HERE,
    }
    slow: Any = vars(Operation)["create"].__func__
    ways = (loop.GenerateOp.create, partial(slow, loop.GenerateOp))
    made, wanted = (create_by(regions=[Region(Block())], **given) for create_by in ways)
    assert type(made) is type(wanted) is loop.GenerateOp and fields(made) == fields(wanted)
    assert made.regions[0].parent is made and [r.type for r in made.results] == [type_]
    with pytest.raises(ValueError, match="already attached"):
        loop.GenerateOp.create(regions=made.regions, **given)
