"""Fields read directly are what xDSL's public properties give."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Block, Region

from inductile.dialects.raw import (
    erase_unused,
    hint_of,
    maker_of,
    op_behind,
    operands_of,
    ops_in,
    ops_of,
    set_hint,
    successors_of,
    type_of,
    users_of,
)


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
        assert all(maker_of(result) is result.owner is op for result in op.results)
    assert maker_of(Block(arg_types=[i64]).args[0]) is None
    before = operands_of(add)
    add.operands[0] = two.result
    assert operands_of(add) == tuple(add.operands) == (two.result, two.result)
    assert before == (one.result, two.result)
    assert ops_of(Block()) == []


def test_users_as_by_uses() -> None:
    one = arith.ConstantOp(IntegerAttr(1, i64))
    assert users_of(one.result) == []
    twice, once = arith.AddiOp(one, one), arith.AddiOp(one, arith.ConstantOp(IntegerAttr(2, i64)))
    assert users_of(one.result) == [use.operation for use in one.result.uses]
    assert sorted(map(id, users_of(one.result))) == sorted(map(id, (twice, twice, once)))


def test_nested_ops_as_by_walk() -> None:
    """Through several regions, several blocks of one, and empty ones."""
    condition = arith.ConstantOp(IntegerAttr(1, i1))
    other = arith.ConstantOp(IntegerAttr(3, i64))
    blocks = [Block([condition]), Block(), Block([other])]
    inner = scf.ExecuteRegionOp.create(regions=[Region(blocks), Region()])
    outer = scf.ExecuteRegionOp.create(regions=[Region(Block([inner]))])
    assert ops_in(outer) == list(outer.walk())
    assert len(ops_in(outer)) == 4
    assert ops_in(condition) == [condition]


def test_erased_as_by_the_block() -> None:
    """Nothing knows of the op any more; one whose result is used stays."""
    one = arith.ConstantOp(IntegerAttr(1, i64))
    add = arith.AddiOp(one, one)
    block = Block([one, add])
    with pytest.raises(ValueError, match="its results are used"):
        erase_unused(one)
    erase_unused(add)
    assert (ops_of(block), add.parent, users_of(one.result)) == ([one], None, [])
    erase_unused(one)
    assert (ops_of(block), block.last_op) == ([], None)


def test_hints_are_those_that_the_setter_keeps() -> None:
    value, other = (arith.ConstantOp.from_int_and_width(1, 32).result for _ in range(2))
    value.name_hint = "total_3"
    set_hint(other, hint_of(value))
    assert hint_of(value) == value.name_hint == other.name_hint == "total"
