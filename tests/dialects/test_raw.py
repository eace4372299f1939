"""Fields read directly are what xDSL's public properties give."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block

from inductile.dialects.raw import op_behind, operands_of, ops_of, successors_of, type_of


def test_same_as_public_properties() -> None:
    one = arith.ConstantOp(IntegerAttr(1, i64))
    two = arith.ConstantOp(IntegerAttr(2, i64))
    add = arith.AddiOp(one, two)
    block = Block([one, two, add])
    assert ops_of(block) == list(block.ops) == [one, two, add]
    for op in block.ops:
        assert operands_of(op) == tuple(op.operands)
        assert op_behind(op) is op.next_op
        assert successors_of(op) == tuple(op.successors)
        assert [type_of(result) for result in op.results] == list(op.result_types)
    before = operands_of(add)
    add.operands[0] = two.result
    assert operands_of(add) == tuple(add.operands) == (two.result, two.result)
    assert before == (one.result, two.result)
    assert ops_of(Block()) == []
